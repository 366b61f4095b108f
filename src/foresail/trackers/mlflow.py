"""MLflow: an experiment for the study, a run for each trial. `place` is the tracking URI, or MLflow's own setting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from foresail.core import events as ev
from foresail.core.view import View
from foresail.core.words import Status, trial_of
from foresail.errors import MissingExtraError
from foresail.trackers.following import WallClock

_TAG = "foresail.trial"
_STATES = {Status.COMPLETED: "FINISHED", Status.ENDED: "KILLED", Status.DIVERGED: "FAILED", Status.FAILED: "FAILED"}
_MOST = 1000
"""Metrics in one call, as MLflow allows."""


def make(kind: str, place: str, storage: Path, view: View) -> MLflow:
    """A tracker of this study."""
    return MLflow(place, view.spec.name)


class MLflow:
    """Speaks MLflow's client API; a resumed study finds its runs by their tags."""

    keeps_all = False

    def __init__(self, uri: str, study: str) -> None:
        try:
            from mlflow import MlflowClient
        except ImportError:
            raise MissingExtraError("MLflow", "mlflow") from None
        self._client: Any = MlflowClient(tracking_uri=uri or None)
        found = self._client.get_experiment_by_name(study)
        self._experiment = found.experiment_id if found else self._client.create_experiment(study)
        self._clock = WallClock()
        self._runs: dict[int, str] = {}

    def take(self, view: View, events: Sequence[ev.Event]) -> None:
        """Points as metrics, together for each trial; configurations as parameters; ends."""
        waiting: dict[int, list[Any]] = {}
        for event in events:
            self._clock.heed(event)
            if isinstance(event, ev.PointReported):
                waiting.setdefault(trial_of(event.attempt), []).extend(self._metrics(event))
            elif isinstance(event, ev.TrialEnded):
                self._send(view, event.trial, waiting.pop(event.trial, []), event.at_s)
                self._end(event)
        for trial, metrics in waiting.items():
            self._send(view, trial, metrics, view.now_s)

    def _metrics(self, event: ev.PointReported) -> list[Any]:
        from mlflow.entities import Metric

        at_ms = round(1000 * self._clock.at(event.at_s))
        finite = {name: value for name, value in event.metrics.items() if math.isfinite(value)}
        return [Metric(name, value, at_ms, event.step) for name, value in finite.items()]

    def _send(self, view: View, trial: int, metrics: list[Any], at_s: float) -> None:
        run = self._run(view, trial, at_s)
        for begin in range(0, len(metrics), _MOST):
            self._client.log_batch(run, metrics=metrics[begin : begin + _MOST])

    def _run(self, view: View, trial: int, at_s: float) -> str:
        if trial not in self._runs:
            found = self._client.search_runs([self._experiment], filter_string=f"tags.`{_TAG}` = '{trial}'")
            if found:
                self._runs[trial] = found[0].info.run_id
            else:
                self._runs[trial] = self._begin(view, trial, at_s)
        return self._runs[trial]

    def _begin(self, view: View, trial: int, at_s: float) -> str:
        from mlflow.entities import Param

        begun_ms = round(1000 * self._clock.at(at_s))
        run = self._client.create_run(
            self._experiment, start_time=begun_ms, tags={_TAG: str(trial)}, run_name=f"trial {trial}"
        )
        params = [Param(name, str(value)) for name, value in view.trials[trial].config.items()]
        self._client.log_batch(run.info.run_id, params=params)
        return str(run.info.run_id)

    def _end(self, event: ev.TrialEnded) -> None:
        run = self._runs.pop(event.trial)
        self._client.set_tag(run, "foresail.status", event.status.value)
        self._client.set_tag(run, "foresail.why", event.detail)
        at_ms = round(1000 * self._clock.at(event.at_s))
        self._client.set_terminated(run, _STATES[event.status], at_ms)

    def close(self) -> None:
        """Nothing is kept back; runs of suspended trials stay open."""
