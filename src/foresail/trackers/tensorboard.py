"""TensorBoard: a run for each trial in the folder `place` ("runs" if not given), with its hyperparameters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from foresail.core import events as ev
from foresail.core.view import Trial, View
from foresail.core.words import Status, trial_of
from foresail.errors import MissingExtraError
from foresail.trackers.following import WallClock


def make(kind: str, place: str, storage: Path, view: View) -> TensorBoard:
    """A tracker of this study."""
    return TensorBoard(Path(place or "runs") / view.spec.name, view.spec.goal.metric)


class TensorBoard:
    """Writes event files by TensorBoard's own writer; TensorFlow and PyTorch are not needed."""

    keeps_all = False

    def __init__(self, folder: Path, metric: str) -> None:
        try:
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError:
            raise MissingExtraError("TensorBoard", "tensorboard") from None
        self._make, self._folder, self._metric = EventFileWriter, folder, metric
        self._clock = WallClock()
        self._writers: dict[int, Any] = {}

    def take(self, view: View, events: Sequence[ev.Event]) -> None:
        """Points as scalars; the configuration when the trial begins; the outcome when it ends."""
        for event in events:
            self._clock.heed(event)
            match event:
                case ev.AttemptGranted(trial=trial, number=1):
                    self._write(trial, event.at_s, 0, _begins(view.trials[trial], self._metric))
                case ev.PointReported(attempt=attempt, step=step, metrics=metrics):
                    self._write(trial_of(attempt), event.at_s, step, _scalars(metrics))
                case ev.TrialEnded(trial=trial, status=status):
                    self._write(trial, event.at_s, 0, _ends(status))
                    self._writers.pop(trial).close()

    def _write(self, trial: int, at_s: float, step: int, summary: Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        if trial not in self._writers:
            self._writers[trial] = self._make(str(self._folder / f"trial-{trial}"))
        event = Event(wall_time=self._clock.at(at_s), step=step, summary=summary)
        self._writers[trial].add_event(event)

    def close(self) -> None:
        """Write out what is left."""
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()


def _scalars(metrics: dict[str, float]) -> Any:
    from tensorboard.compat.proto.summary_pb2 import Summary

    return Summary(value=[Summary.Value(tag=name, simple_value=value) for name, value in metrics.items()])


def _begins(trial: Trial, metric: str) -> Any:
    """What the page of hyperparameters reads: which there are, which metric, and those of this trial."""
    from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2

    infos = [api_pb2.HParamInfo(name=name) for name in trial.config]
    scored = [api_pb2.MetricInfo(name=api_pb2.MetricName(tag=metric))]
    experiment = api_pb2.Experiment(hparam_infos=infos, metric_infos=scored)
    session = plugin_data_pb2.SessionStartInfo()
    for name, value in trial.config.items():
        if isinstance(value, str | bool):
            setattr(session.hparams[name], "bool_value" if isinstance(value, bool) else "string_value", value)
        else:
            session.hparams[name].number_value = value
    summary = _hparams(metadata.EXPERIMENT_TAG, plugin_data_pb2.HParamsPluginData(experiment=experiment))
    started = plugin_data_pb2.HParamsPluginData(session_start_info=session)
    summary.MergeFrom(_hparams(metadata.SESSION_START_INFO_TAG, started))
    return summary


def _ends(status: Status) -> Any:
    from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2

    good = status in (Status.COMPLETED, Status.ENDED)
    ended = plugin_data_pb2.SessionEndInfo(status=api_pb2.STATUS_SUCCESS if good else api_pb2.STATUS_FAILURE)
    return _hparams(metadata.SESSION_END_INFO_TAG, plugin_data_pb2.HParamsPluginData(session_end_info=ended))


def _hparams(tag: str, data: Any) -> Any:
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.hparams import metadata

    return Summary(value=[Summary.Value(tag=tag, metadata=metadata.create_summary_metadata(data))])
