"""Weights & Biases: a run for each trial in the project `place` (the study's name if not given), grouped by the study.

Where it goes (online, offline) is wandb's own setting: WANDB_MODE=offline writes into ./wandb, for `wandb sync`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from foresail.core import events as ev
from foresail.core.view import View
from foresail.core.words import Status, trial_of
from foresail.errors import MissingExtraError


def make(kind: str, place: str, storage: Path, view: View) -> Wandb:
    """A tracker of this study."""
    return Wandb(place or re.sub(r"[^A-Za-z0-9._-]+", "-", view.spec.name), storage.resolve())


class Wandb:
    """Keeps a run open for each trial that is not over; a resumed study goes on in the same runs."""

    keeps_all = False

    def __init__(self, project: str, storage: Path) -> None:
        try:
            import wandb
        except ImportError:
            raise MissingExtraError("Weights & Biases", "wandb") from None
        self._wandb: Any = wandb
        self._project, self._group = project, storage.stem
        self._runs: dict[int, Any] = {}

    def take(self, view: View, events: Sequence[ev.Event]) -> None:
        """Points under their steps; configurations; ends."""
        for event in events:
            match event:
                case ev.PointReported(attempt=attempt, step=step, metrics=metrics):
                    self._run(view, trial_of(attempt)).log(metrics, step=step)
                case ev.TrialEnded(trial=trial, status=status, detail=detail):
                    run = self._run(view, trial)
                    run.summary["foresail_status"], run.summary["foresail_why"] = status.value, detail
                    run.finish(exit_code=0 if status in (Status.COMPLETED, Status.ENDED) else 1)
                    del self._runs[trial]

    def _run(self, view: View, trial: int) -> Any:
        if trial not in self._runs:
            self._runs[trial] = self._wandb.init(
                project=self._project,
                group=self._group,
                id=f"{self._group}-{trial}",
                name=f"trial-{trial}",
                config=dict(view.trials[trial].config),
                resume="allow",
                reinit="create_new",
                settings=self._wandb.Settings(silent=True, console="off"),
            )
        return self._runs[trial]

    def close(self) -> None:
        """Runs of suspended trials are put away; a resumed study goes on in them."""
        for run in self._runs.values():
            run.finish()
        self._runs.clear()
