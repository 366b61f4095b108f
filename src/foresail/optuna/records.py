"""What a log tells, in an Optuna storage: live beside the driver, or all of it at once.

A trial's parameters are those that it asked for, where it was an Optuna objective, else its configuration. Its value is
what the objective returned, else the best that was reported. Suspended trials stand as running; when the study has
ended for good, those that are left count as pruned. Steps are Optuna's, one lower than Foresail's.
"""

from __future__ import annotations

import datetime
import json
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import json_to_distribution
from optuna.trial import FrozenTrial, TrialState

from foresail.core import events as ev
from foresail.core.spec import StudySpec
from foresail.core.view import View, fold
from foresail.core.words import Status, TrialId, trial_of
from foresail.errors import CallerError
from foresail.optuna.knobs import distribution_of
from foresail.optuna.work import NOTE, SETTINGS, metric_names, ways
from foresail.space import Space

_STATES = {
    Status.COMPLETED: TrialState.COMPLETE,
    Status.ENDED: TrialState.PRUNED,
    Status.DIVERGED: TrialState.FAIL,
    Status.FAILED: TrialState.FAIL,
}
ID = "foresail:trial"


@dataclass
class Record:
    """What Optuna keeps of a trial. `reported`: values of several objectives, which Optuna has no reports for."""

    began: datetime.datetime | None = None
    params: dict[str, Any] = field(default_factory=dict)
    distributions: dict[str, Any] = field(default_factory=dict)
    curve: dict[int, float] = field(default_factory=dict)
    reported: list[float] = field(default_factory=list)
    returned: list[float] | None = None
    pruned: bool = False
    user_attrs: dict[str, Any] = field(default_factory=dict)


class Records:
    """Folds a log into records, one a trial."""

    def __init__(self, spec: StudySpec) -> None:
        self.trials: list[Record] = []
        self.metrics, self.directions = [spec.goal.metric], [f"{spec.goal.mode}imize"]
        self._space = Space.from_dict(spec.space)
        self._is_objective = SETTINGS in spec.entry.env
        self._origin = datetime.datetime.now()
        if self._is_objective:
            self.directions = json.loads(spec.entry.env[SETTINGS])["directions"]
            self.metrics = metric_names(len(self.directions))

    def take(self, event: ev.Event) -> None:
        """One more event."""
        match event:
            case ev.DriverStarted(at_s=at_s, wall_time=wall_time) if wall_time:
                began = datetime.datetime.fromisoformat(wall_time).astimezone().replace(tzinfo=None)
                self._origin = began - datetime.timedelta(seconds=at_s)
            case ev.TrialProposed(config=config):
                self.trials.append(Record() if self._is_objective else _of_config(self._space, config))
            case ev.AttemptGranted(trial=trial):
                record = self.trials[trial]
                record.began = record.began or self.when(event.at_s)
            case ev.PointReported(attempt=attempt, step=step, metrics=metrics):
                self._point(self.trials[trial_of(attempt)], step, metrics)
            case ev.Noted(attempt=attempt, notes=notes) if NOTE in notes:
                _note(self.trials[trial_of(attempt)], notes[NOTE])

    def when(self, at_s: float) -> datetime.datetime:
        """A moment of the study as local time: study time since the driver of that moment started."""
        return self._origin + datetime.timedelta(seconds=at_s)

    def _point(self, record: Record, step: int, metrics: Mapping[str, float]) -> None:
        if len(self.metrics) > 1:
            record.reported = [metrics[name] for name in self.metrics if name in metrics]
        elif self.metrics[0] in metrics:
            record.curve[step - 1] = metrics[self.metrics[0]]

    def ending(self, trial: TrialId, status: Status) -> tuple[TrialState, list[float] | None]:
        """How Optuna says that a trial ended, and its values."""
        record = self.trials[trial]
        state = TrialState.PRUNED if record.pruned else _STATES.get(status, TrialState.PRUNED)
        finite = [value for value in record.curve.values() if math.isfinite(value)]
        if state is TrialState.PRUNED and not finite and not record.pruned:
            state = TrialState.FAIL
        if state is not TrialState.COMPLETE:
            return state, None
        values = record.returned or record.reported
        if not values and finite:
            values = [max(finite) if self.directions == ["maximize"] else min(finite)]
        return (state, values) if values and all(map(math.isfinite, values)) else (TrialState.FAIL, None)


def _of_config(space: Space, config: Mapping[str, Any]) -> Record:
    knobs = {name: space.knobs[name] for name in config if name in space.knobs}
    return Record(
        params={name: config[name] for name in knobs},
        distributions={name: distribution_of(knob) for name, knob in knobs.items()},
    )


def _note(record: Record, note: Mapping[str, Any]) -> None:
    for name, (number, written) in note.get("params", {}).items():
        distribution = json_to_distribution(written)
        record.distributions[name] = distribution
        record.params[name] = distribution.to_external_repr(number)
    record.returned = note.get("values", record.returned)
    record.pruned = record.pruned or note.get("state") == "PRUNED"
    record.user_attrs |= note.get("user_attrs", {})


class Mirror:
    """A watcher that keeps an Optuna study up to date with a log. `first`: number of trial 0 in that study."""

    def __init__(self, study: optuna.Study, spec: StudySpec, first: int) -> None:
        self._study, self._storage = study, study._storage
        self._records = Records(spec)
        there = study.get_trials(deepcopy=False)[first:]
        self._ids = {trial.number - first: trial._trial_id for trial in there}
        self._over = {trial.number - first for trial in there if trial.state.is_finished()}
        self.finished: list[FrozenTrial] = []

    def __call__(self, view: View, events: Iterable[ev.Event]) -> None:
        """Take what is new, or all of it again after a restart. `finished` then holds the trials that ended in it."""
        self.finished = []
        for event in events:
            self._records.take(event)
            self._write(view, event)

    def _write(self, view: View, event: ev.Event) -> None:
        match event:
            case ev.TrialProposed(trial=trial) if trial not in self._ids:
                template = self._template(trial)
                self._ids[trial] = self._storage.create_new_trial(self._study._study_id, template_trial=template)
            case ev.PointReported(attempt=attempt, step=step):
                number = trial_of(attempt)
                curve = self._records.trials[number].curve
                if step - 1 in curve and number not in self._over:
                    self._storage.set_trial_intermediate_value(self._ids[number], step - 1, curve[step - 1])
            case ev.Noted(attempt=attempt):
                self._params(trial_of(attempt))
            case ev.TrialEnded(trial=trial, status=status):
                self._finish(trial, status)
            case ev.StudyEnded(end=end) if end != "stopped":
                for left in view.trials:
                    if left.ended is None:
                        self._finish(left.id, Status.SUSPENDED)

    def _template(self, number: TrialId) -> FrozenTrial:
        record = self._records.trials[number]
        frozen = _frozen(record, TrialState.RUNNING, None, begun=datetime.datetime.now(), ended=None)
        frozen._system_attrs = {ID: number}
        return frozen

    def _params(self, number: TrialId) -> None:
        if number in self._over:
            return  # what has ended there cannot be changed any more
        record, known = self._records.trials[number], self._storage.get_trial(self._ids[number])
        for name, distribution in record.distributions.items():
            if name not in known.distributions:
                inner = distribution.to_internal_repr(record.params[name])
                self._storage.set_trial_param(self._ids[number], name, inner, distribution)
        for name, value in record.user_attrs.items():
            if name not in known.user_attrs:
                self._storage.set_trial_user_attr(self._ids[number], name, value)

    def _finish(self, number: TrialId, status: Status) -> None:
        if number not in self._over:
            state, values = self._records.ending(number, status)
            self._storage.set_trial_state_values(self._ids[number], state, values)
            self._over.add(number)
            self.finished.append(self._storage.get_trial(self._ids[number]))


def _frozen(
    record: Record,
    state: TrialState,
    values: Sequence[float] | None,
    *,
    begun: datetime.datetime | None,
    ended: datetime.datetime | None,
) -> FrozenTrial:
    return FrozenTrial(
        number=-1,
        trial_id=-1,
        state=state,
        value=None,
        values=values,
        datetime_start=begun,
        datetime_complete=ended,
        params=record.params,
        distributions=record.distributions,
        user_attrs=record.user_attrs,
        system_attrs={},
        intermediate_values=record.curve,
    )


# --- all of a log at once ----------------------------------------------------------------------------------------


def write_study(events: Sequence[ev.Event], to: Path) -> str:
    """Write the study into an Optuna storage at `to`, SQLite or, where the name ends in .log or .journal, a journal.

    Returns:
        The study's name there. Another one of that name is left alone.

    Raises:
        CallerError: the storage has a study of that name.
    """
    view = fold(events)
    records, ends = Records(view.spec), _ends(events)
    for event in events:
        records.take(event)
    storage = open_storage(to)
    if view.spec.name in {study.study_name for study in storage.get_all_studies()}:
        raise CallerError(f"{to} has a study {view.spec.name!r} already", do="name another file")
    study = optuna.create_study(study_name=view.spec.name, storage=storage, directions=ways(records.directions))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study.set_metric_names(list(records.metrics))
    for trial in view.trials:
        record = records.trials[trial.id]
        state, values = records.ending(trial.id, trial.ended or Status.SUSPENDED)
        if trial.ended is None and view.ended is None:
            state = TrialState.RUNNING if trial.attempts else TrialState.WAITING
        record.user_attrs |= {"foresail_status": view.status(trial).value, "foresail_why": trial.detail}
        ended = records.when(ends.get(trial.id, view.now_s)) if state.is_finished() else None
        began = None if state is TrialState.WAITING else record.began or ended
        study.add_trial(_frozen(record, state, values, begun=began, ended=ended))
    return str(view.spec.name)


def _ends(events: Iterable[ev.Event]) -> dict[TrialId, float]:
    return {event.trial: event.at_s for event in events if isinstance(event, ev.TrialEnded)}


def open_storage(to: Path) -> Any:
    """The Optuna storage of a file."""
    from optuna.storages import JournalStorage, RDBStorage
    from optuna.storages.journal import JournalFileBackend

    if to.suffix in (".log", ".journal"):
        return JournalStorage(JournalFileBackend(str(to)))
    return RDBStorage(f"sqlite:///{to}")
