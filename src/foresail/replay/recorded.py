"""A study that Foresail has recorded, as a trace: its own curves, in the order of its own proposals.

What was not trained is not known: a trial that was ended early ends there in the replay too, so a policy that would
have gone on with it sees less than it would have seen. Trials without a single point are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from foresail.core import events as ev
from foresail.core.spec import StudySpec
from foresail.core.words import AttemptId, Config, Outcome, TrialId, attempt_id
from foresail.errors import CallerError
from foresail.executors.replay import Fate, Recording
from foresail.replay.columns import REPEAT, told_apart
from foresail.replay.trace import Trace, targets_of
from foresail.space import Int, Space


@dataclass(slots=True)
class Curve:
    """What one trial did. Seconds are of the wall clock, from one report to the next, over all attempts."""

    config: Config
    steps: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    max_steps: int | None = None


@dataclass(slots=True)
class _Life:
    """An attempt: when it was granted, when it last reported."""

    trial: TrialId
    number: int
    granted_s: float
    reported_s: float | None = None
    asked_s: float | None = None
    delay_s: float = 0.0


@dataclass
class Reading:
    """What is gathered from a log.

    `starts_s`, `restarts_s`: from a grant to the first step of the attempt; `leaves_s`: from the last that it did to
    its end; `kills_s`: from a kill to it; `late`: how many have reported once more after they were asked to leave, less
    the others.
    """

    spec: StudySpec | None = None
    curves: list[Curve] = field(default_factory=list)
    lives: dict[AttemptId, _Life] = field(default_factory=dict)
    starts_s: list[float] = field(default_factory=list)
    restarts_s: list[float] = field(default_factory=list)
    leaves_s: list[float] = field(default_factory=list)
    kills_s: list[float] = field(default_factory=list)
    late: int = 0
    gone: dict[AttemptId, tuple[float, float | None, float | None]] = field(default_factory=dict)
    workers: int = 0

    def take(self, event: ev.Event) -> None:
        match event:
            case ev.StudyCreated(spec=spec):
                self.spec = spec
            case ev.TrialProposed(config=config):
                self.curves.append(Curve(config))
            case ev.AttemptGranted(attempt=attempt, trial=trial, number=number, at_s=at_s):
                self.lives[attempt] = _Life(trial, number, at_s)
                self.workers = max(self.workers, len(self.lives))
            case ev.HorizonDeclared(attempt=attempt, max_steps=steps) if attempt in self.lives:
                self.curves[self.lives[attempt].trial].max_steps = steps
            case ev.PointReported() if event.attempt in self.lives:
                self._point(event, self.lives[event.attempt])
            case ev.AttemptEnding(attempt=attempt, at_s=at_s) if attempt in self.lives:
                self.lives[attempt].asked_s = at_s
            case ev.AttemptEnded(attempt=attempt):
                self._ended(event, self.lives.pop(attempt, None))

    def _ended(self, event: ev.AttemptEnded, life: _Life | None) -> None:
        if life is None or life.reported_s is None:
            return
        if event.outcome is Outcome.KILLED and life.asked_s is not None:
            self.kills_s.append(event.at_s - life.asked_s)
            self.gone[event.attempt] = life.delay_s, None, event.at_s - life.asked_s
            return
        if event.outcome is Outcome.YIELDED and life.asked_s is not None:
            self.late += 1 if life.reported_s > life.asked_s else -1
        self.leaves_s.append(event.at_s - life.reported_s)
        self.gone[event.attempt] = life.delay_s, event.at_s - life.reported_s, None

    def _point(self, event: ev.PointReported, life: _Life) -> None:
        assert self.spec is not None
        if life.reported_s is None:
            delay_s = max(0.0, event.at_s - life.granted_s - event.seconds)
            life.delay_s = delay_s
            (self.starts_s if life.number == 1 else self.restarts_s).append(delay_s)
        spent_s = event.seconds if life.reported_s is None else event.at_s - life.reported_s
        life.reported_s = event.at_s
        value, curve = event.metrics.get(self.spec.goal.metric), self.curves[life.trial]
        if value is None or (curve.steps and event.step <= curve.steps[-1]):
            return
        curve.steps.append(event.step)
        curve.values.append(value)
        curve.seconds.append((curve.seconds[-1] if curve.seconds else 0.0) + spent_s)


def read_events(events: Iterable[ev.Event], *, where: Path | str) -> Trace:
    """The trace of a log.

    Raises:
        CallerError: the log tells of no study, or of no point.
    """
    reading = Reading()
    for event in events:
        reading.take(event)
    spec, curves = reading.spec, [curve for curve in reading.curves if curve.steps]
    if spec is None or not curves:
        raise CallerError(f"{where}: no trial has reported a point", do="replay a study that has trained something")
    configs = told_apart(curve.config for curve in curves)
    return Trace(
        name=spec.name,
        metric=spec.goal.metric,
        mode=spec.goal.mode,
        space=_space(Space.from_dict(spec.space), configs),
        configs=configs,
        curves=tuple(Recording(c.steps, c.values, c.seconds, c.max_steps or spec.max_steps) for c in curves),
        targets=targets_of((curve.values for curve in curves), spec.goal.mode),
        starts_s=tuple(reading.starts_s),
        restarts_s=tuple(reading.restarts_s),
        leaves_s=tuple(reading.leaves_s),
        kills_s=tuple(reading.kills_s),
        prompt=reading.late <= 0,
        fates=_fates(reading),
        study=spec,
        workers=max(1, reading.workers),
    )


def _fates(reading: Reading) -> dict[AttemptId, Fate]:
    """Of each attempt, under the number that its trial has in the trace."""
    usual_s, killed_s = (fmean(seconds) if seconds else 0.0 for seconds in (reading.leaves_s, reading.kills_s))
    place: dict[int, int] = {}
    for trial, curve in enumerate(reading.curves):
        if curve.steps:
            place[trial] = len(place)
    found = {}
    for attempt, (delay_s, leave_s, kill_s) in reading.gone.items():
        which, _, number = attempt.partition("-")
        if int(which) not in place:  # it has never reported the goal's metric
            continue
        fate = Fate(
            delay_s, 1.0, math.inf, usual_s if leave_s is None else leave_s, killed_s if kill_s is None else kill_s
        )
        found[attempt_id(TrialId(place[int(which)]), int(number))] = fate
    return found


def _space(space: Space, configs: Sequence[Config]) -> Space:
    most = max((int(config[REPEAT]) for config in configs if REPEAT in config), default=0)
    return Space.of({**space.knobs, REPEAT: Int(0, most)}, forbid=space.forbid) if most else space
