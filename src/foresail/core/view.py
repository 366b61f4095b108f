"""The one global view, folded from the log: `fold(events) -> View`.

Everything in it is derived from events, and everything derived is kept up to date by the fold, so that a question
costs the same at ten trials and at ten thousand. Policies and searches read it; nobody but `fold` writes to it.

What does not stay: attempts that have ended (their time is added to their trial), and metrics other than the
goal's (they are in the log).
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from foresail.core import events as ev
from foresail.core.goal import Mode
from foresail.core.plan import Verdict
from foresail.core.spec import StudySpec
from foresail.core.words import AttemptId, Config, Outcome, Status, TrialId
from foresail.errors import InternalError


class Checkpoint:
    """A saved state of a trial. `value`: the goal's metric at its step, if it was reported."""

    __slots__ = ("bytes", "path", "step", "trial", "value")

    def __init__(self, trial: TrialId, step: int, path: str, size: int, value: float | None) -> None:
        self.trial, self.step, self.path, self.bytes, self.value = trial, step, path, size, value


class Attempt:
    """A live attempt: granted and not yet ended.

    `step`: of its latest report; `previous`: of the one before; `heard_s`: when it last said anything; `silent`: it is
    asked to leave because it says nothing; `known`: highest step that its trial had reported when
    it was granted, so that steps above are new; `driver`: number of the driver that started it.
    """

    __slots__ = (
        "checkpoint_s",
        "cores",
        "driver",
        "ending",
        "granted_s",
        "heard_s",
        "id",
        "known",
        "number",
        "previous",
        "resume_step",
        "saved_step",
        "silent",
        "started_s",
        "step",
        "trial",
    )

    def __init__(self, event: ev.AttemptGranted, *, known: int, driver: int) -> None:
        self.id, self.trial, self.number = event.attempt, event.trial, event.number
        self.cores = event.cores
        self.granted_s = self.heard_s = event.at_s
        self.started_s: float | None = None
        self.step = self.previous = self.resume_step = event.resume_step
        self.saved_step = -1
        self.known, self.driver = known, driver
        self.ending = self.silent = False
        self.checkpoint_s = 0.0


class Trial:
    """One configuration and its whole history, as far as decisions need it."""

    __slots__ = (
        "_first",
        "_steps",
        "attempt",
        "attempts",
        "best_step",
        "best_value",
        "config",
        "detail",
        "device_s",
        "ended",
        "failures",
        "fruitless",
        "id",
        "max_steps",
        "origin",
        "reached",
        "room",
        "saved",
        "seconds",
        "shortages",
        "told",
        "values",
        "verdict",
    )

    def __init__(self, event: ev.TrialProposed, max_steps: int | None) -> None:
        self.id = event.trial
        self.config: Config = event.config
        self.origin = event.origin
        self.max_steps = max_steps
        self._first = 1  # its first step with a point
        self._steps: array[int] | None = None  # None while no step was left out
        self.values: array[float] = array("d")
        self.reached = 0  # highest step that reported anything, the goal's metric or not
        self.seconds = 0.0  # training time up to `reached`; steps trained again after a crash count once
        self.device_s = 0.0  # of ended attempts: time that cores were held, times cores
        self.best_value: float | None = None
        self.best_step = 0
        self.attempt: AttemptId | None = None
        self.attempts = 0
        self.failures = 0
        self.shortages = 0  # attempts that ran out of memory
        self.room: int | None = None  # most attempts on a machine that it may be one of, since memory ran out
        self.fruitless = 0  # attempts in a row that went unasked, did not fail, and brought no new step
        self.told = 0  # points of the goal's metric, those of steps trained again included: tells curves apart
        self.saved: tuple[Checkpoint, ...] = ()  # checkpoints on disk, oldest first
        self.ended: Status | None = None
        self.detail = ""
        self.verdict: Verdict | None = None

    @property
    def steps(self) -> Sequence[int]:
        """Steps with a point, rising."""
        return range(self._first, self._first + len(self.values)) if self._steps is None else self._steps

    @property
    def last_step(self) -> int:
        if self._steps is None:
            return self._first + len(self.values) - 1 if self.values else 0
        return self._steps[-1]

    @property
    def last_value(self) -> float | None:
        return self.values[-1] if self.values else None

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The one to resume from: of the latest step, the newest of these."""
        return max(reversed(self.saved), key=lambda c: c.step, default=None)

    @property
    def step_s(self) -> float | None:
        """Seconds of training per step, over all steps so far; None before the first report."""
        return self.seconds / self.reached if self.reached > 0 else None

    def value_at(self, step: int) -> float:
        """Value at the last point up to and including `step`; NaN where there is none."""
        if step >= self.last_step:
            return self.values[-1] if self.values else math.nan
        upto = bisect_left(self.steps, step + 1)
        return self.values[upto - 1] if upto else math.nan

    def best_until(self, step: int, mode: Mode) -> float | None:
        """Best finite value up to and including `step`."""
        upto = bisect_left(self.steps, step + 1)
        finite = [v for v in self.values[:upto] if math.isfinite(v)]
        if not finite:
            return None
        return max(finite) if mode == "max" else min(finite)


class View:
    """The state of a study. Read it; only `fold` writes."""

    def __init__(self) -> None:
        self.spec: StudySpec = None  # type: ignore[assignment]  # until StudyCreated, which is always first
        self.now_s = 0.0
        self.events = 0
        self.drivers = 0
        self.cores: tuple[int, ...] = ()
        self.machines: tuple[tuple[int, ...], ...] = ()  # the same, by machine
        self.free_cores: list[int] = []
        self.trials: list[Trial] = []
        self.attempts: dict[AttemptId, Attempt] = {}
        self.waiting: dict[TrialId, None] = {}
        self.suspended: dict[TrialId, None] = {}
        self.counts: dict[Status, int] = dict.fromkeys(Status, 0)
        self.best: tuple[TrialId, int, float] | None = None
        self.decisions = 0
        self.device_s = 0.0  # of ended attempts
        self.points = 0
        self.exhausted = ""
        self.ending: ev.StudyEnding | None = None
        self.ended: ev.StudyEnded | None = None
        self.checkpoints: dict[str, Checkpoint] = {}
        self.checkpoint_bytes = 0
        self.stop_requested = False
        self.first_failures: list[str] = []

    # --- questions -------------------------------------------------------------------------------------------

    def trial(self, trial: TrialId) -> Trial:
        return self.trials[trial]

    def trial_of(self, attempt: AttemptId) -> Trial:
        return self.trials[self.attempts[attempt].trial]

    def status(self, trial: Trial) -> Status:
        """Derived from facts; nothing sets it."""
        if trial.ended is not None:
            return trial.ended
        if trial.attempt is not None:
            return Status.YIELDING if self.attempts[trial.attempt].ending else Status.RUNNING
        return Status.SUSPENDED if trial.attempts else Status.WAITING

    @property
    def device_s_used(self) -> float:
        """Core-seconds held so far, live attempts included."""
        live = sum((self.now_s - a.granted_s) * len(a.cores) for a in self.attempts.values())
        return self.device_s + live

    @property
    def slots(self) -> int:
        """Trials that may run at a time."""
        resources = self.spec.resources
        each = max(1, resources.cores_per_trial)
        fit = sum(len(machine) // each for machine in self.machines)
        return fit if resources.workers is None else min(fit, resources.workers)

    @property
    def left_s(self) -> float | None:
        """Study time until the deadline; None without one."""
        within_s = self.spec.goal.within_s
        return None if within_s is None else max(0.0, within_s - self.now_s)

    def neighbours(self, cores: Sequence[int]) -> list[Attempt]:
        """Live attempts on the machine that has these cores."""
        machine: set[int] = next((set(machine) for machine in self.machines if cores[0] in machine), set())
        return [attempt for attempt in self.attempts.values() if attempt.cores[0] in machine]

    @property
    def can_open(self) -> bool:
        """Whether a further configuration may be proposed."""
        limit = self.spec.goal.trials
        return not self.exhausted and self.ending is None and (limit is None or len(self.trials) < limit)

    def is_stale(self, event: ev.Event) -> bool:
        """The one fence: news of an attempt that is over, or of a step that has been seen from this attempt."""
        match event:
            case ev.PointReported(attempt=attempt, step=step):
                live = self.attempts.get(attempt)
                return live is None or step <= live.step
            case ev.AttemptStarted(attempt=attempt) | ev.HorizonDeclared(attempt=attempt) | ev.Noted(attempt=attempt):
                return attempt not in self.attempts
            case ev.CheckpointSaved(attempt=attempt, step=step, path=path):
                live = self.attempts.get(attempt)
                return live is None or step <= live.saved_step or path in self.checkpoints
            case ev.AttemptEnded(attempt=attempt):
                return attempt not in self.attempts
            case ev.CheckpointDeleted(path=path):
                return path not in self.checkpoints
            case _:
                return False


def fold(events: Iterable[ev.Event], view: View | None = None) -> View:
    """The view after `events`. A given `view` is carried on (and is the one returned)."""
    view = View() if view is None else view
    for event in events:
        apply(view, event)
    return view


def apply(view: View, event: ev.Event) -> None:
    """Carry `view` over one event.

    Raises:
        InternalError: the event cannot follow; the message carries the trial's story.
    """
    if event.at_s < view.now_s:
        raise InternalError(f"time fell from {view.now_s} to {event.at_s} at {event}")
    view.now_s = event.at_s
    view.events += 1
    handler = _HANDLERS.get(type(event))
    if handler is None:
        return
    try:
        handler(view, event)
    except (KeyError, IndexError) as error:
        raise InternalError(f"{event} cannot follow: {error!r} is not known at event {view.events}") from error


# --- one function an event ---------------------------------------------------------------------------------------


def _study_created(view: View, event: ev.StudyCreated) -> None:
    view.spec = event.spec


def _driver_started(view: View, event: ev.DriverStarted) -> None:
    view.cores, view.machines = event.cores, (event.cores,)
    view.drivers += 1
    held = {core for attempt in view.attempts.values() for core in attempt.cores}
    view.free_cores = [core for core in event.cores if core not in held]
    view.stop_requested = False
    if view.ending is not None and view.ending.end == "stopped":
        view.ending = view.ended = None


def _machines_changed(view: View, event: ev.MachinesChanged) -> None:
    view.machines = event.machines
    view.cores = tuple(core for machine in event.machines for core in machine)
    held = {core for attempt in view.attempts.values() for core in attempt.cores}
    view.free_cores = [core for core in view.cores if core not in held]


def _stop_requested(view: View, event: ev.StopRequested) -> None:
    view.stop_requested = True


def _attempt_started(view: View, event: ev.AttemptStarted) -> None:
    attempt = view.attempts[event.attempt]
    attempt.started_s = attempt.heard_s = event.at_s


def _horizon_declared(view: View, event: ev.HorizonDeclared) -> None:
    view.trial_of(event.attempt).max_steps = event.max_steps


def _point_reported(view: View, event: ev.PointReported) -> None:
    attempt = view.attempts[event.attempt]
    trial = view.trials[attempt.trial]
    step = event.step
    attempt.previous, attempt.step = attempt.step, step
    attempt.heard_s = event.at_s
    if step > trial.reached:
        trial.reached = step
        trial.seconds += event.seconds
    goal = view.spec.goal
    value = event.metrics.get(goal.metric)
    if value is None:
        return
    view.points += 1
    trial.told += 1
    if step > trial.last_step:
        _grow(trial, step, value)
    else:
        _rewrite(trial, step, value, goal.mode)
        if view.best is not None and view.best[:2] == (trial.id, step):
            _find_best(view)
    if math.isfinite(value):
        _note_best(view, trial, step, value)


def _grow(trial: Trial, step: int, value: float) -> None:
    if trial._steps is not None:
        trial._steps.append(step)
    elif not trial.values:
        trial._first = step
    elif step != trial._first + len(trial.values):
        trial._steps = array("q", trial.steps)
        trial._steps.append(step)
    trial.values.append(value)


def _rewrite(trial: Trial, step: int, value: float, mode: Mode) -> None:
    """A step trained again after a crash: its point is replaced; the rest of the curve is kept."""
    steps = trial.steps
    at = bisect_left(steps, step)
    if steps[at] == step:
        trial.values[at] = value
    else:
        trial._steps = array("q", steps)
        trial._steps.insert(at, step)
        trial.values.insert(at, value)
    if trial.best_step == step:
        trial.best_value, trial.best_step = None, 0
        for s, v in zip(trial.steps, trial.values, strict=True):
            if math.isfinite(v) and (trial.best_value is None or _better(v, trial.best_value, mode)):
                trial.best_value, trial.best_step = v, s


def _better(a: float, b: float, mode: Mode) -> bool:
    return a > b if mode == "max" else a < b


def _note_best(view: View, trial: Trial, step: int, value: float) -> None:
    mode = view.spec.goal.mode
    if trial.best_value is None or _better(value, trial.best_value, mode):
        trial.best_value, trial.best_step = value, step
    if trial.ended is Status.DIVERGED:
        return
    if view.best is None or _better(value, view.best[2], mode):
        view.best = (trial.id, step, value)


def _checkpoint_saved(view: View, event: ev.CheckpointSaved) -> None:
    attempt = view.attempts[event.attempt]
    trial = view.trials[attempt.trial]
    steps = trial.steps
    at = bisect_left(steps, event.step)
    known = at < len(steps) and steps[at] == event.step
    value = trial.values[at] if known else None
    checkpoint = Checkpoint(trial.id, event.step, event.path, event.bytes, value)
    attempt.checkpoint_s += event.seconds
    attempt.saved_step = event.step
    attempt.heard_s = event.at_s
    view.checkpoints[event.path] = checkpoint
    view.checkpoint_bytes += event.bytes
    trial.saved = (*trial.saved, checkpoint)


def _checkpoint_deleted(view: View, event: ev.CheckpointDeleted) -> None:
    gone = view.checkpoints.pop(event.path)
    view.checkpoint_bytes -= gone.bytes
    trial = view.trials[gone.trial]
    trial.saved = tuple(c for c in trial.saved if c is not gone)


def _attempt_ended(view: View, event: ev.AttemptEnded) -> None:
    attempt = view.attempts.pop(event.attempt)
    trial = view.trials[attempt.trial]
    held_s = (event.at_s - attempt.granted_s) * len(attempt.cores)
    trial.device_s += held_s
    view.device_s += held_s
    trial.attempt = None
    view.free_cores = sorted([*view.free_cores, *(c for c in attempt.cores if c in view.cores)])
    if attempt.silent and event.outcome is not Outcome.COMPLETED:
        trial.failures += 1
        trial.detail = f"it said nothing for {view.spec.silence_limit_s:.6g} s"
    elif event.outcome in (Outcome.FAILED, Outcome.OUT_OF_MEMORY, Outcome.LOST):
        trial.failures += event.outcome is not Outcome.LOST
        trial.detail = event.detail
        if event.outcome is Outcome.OUT_OF_MEMORY:
            trial.shortages += 1
            trial.room = max(1, len(view.neighbours(attempt.cores)))
        if event.outcome is Outcome.FAILED and not trial.values:
            view.first_failures.append(event.detail)
    _count_fruitless(view, trial, attempt, event.outcome)
    if trial.ended is None:
        view.suspended[trial.id] = None


def _count_fruitless(view: View, trial: Trial, attempt: Attempt, outcome: Outcome) -> None:
    """Attempts that died with their driver, or that we ended, tell nothing about the trial."""
    if attempt.step > attempt.known:
        trial.fruitless = 0
    elif outcome in (Outcome.LOST, Outcome.KILLED, Outcome.YIELDED):
        trial.fruitless += not attempt.ending and attempt.driver == view.drivers


def _trial_proposed(view: View, event: ev.TrialProposed) -> None:
    if event.trial != len(view.trials):
        raise InternalError(f"trial {event.trial} proposed, {len(view.trials)} expected")
    view.trials.append(Trial(event, view.spec.max_steps))
    view.waiting[event.trial] = None


def _search_exhausted(view: View, event: ev.SearchExhausted) -> None:
    view.exhausted = event.why


def _planned(view: View, event: ev.Planned) -> None:
    view.decisions = event.decision + 1
    for verdict in event.verdicts:
        view.trials[verdict.trial].verdict = verdict


def _attempt_granted(view: View, event: ev.AttemptGranted) -> None:
    trial = view.trials[event.trial]
    if trial.attempt is not None or trial.ended is not None:
        raise InternalError(f"attempt {event.attempt} granted to trial {trial.id}, which is {view.status(trial)}")
    missing = [core for core in event.cores if core not in view.free_cores]
    if missing:
        raise InternalError(f"cores {missing} granted to attempt {event.attempt} are not free: {view.free_cores}")
    view.free_cores = [core for core in view.free_cores if core not in event.cores]
    view.attempts[event.attempt] = Attempt(event, known=trial.reached, driver=view.drivers)
    trial.attempt = event.attempt
    trial.attempts = event.number
    view.waiting.pop(trial.id, None)
    view.suspended.pop(trial.id, None)


def _attempt_ending(view: View, event: ev.AttemptEnding) -> None:
    view.attempts[event.attempt].ending = True


def _attempt_silent(view: View, event: ev.AttemptSilent) -> None:
    view.attempts[event.attempt].silent = True


def _trial_ended(view: View, event: ev.TrialEnded) -> None:
    trial = view.trials[event.trial]
    if trial.ended is not None:
        raise InternalError(f"trial {trial.id} ended twice: {trial.ended}, then {event.status}")
    trial.ended = event.status
    trial.detail = event.detail or trial.detail
    view.counts[event.status] += 1
    view.waiting.pop(trial.id, None)
    view.suspended.pop(trial.id, None)
    if event.status is Status.DIVERGED and view.best is not None and view.best[0] == trial.id:
        _find_best(view)


def _find_best(view: View) -> None:
    """Rare: the best trial diverged, or its best step was trained again with another value."""
    view.best = None
    for trial in view.trials:
        if trial.ended is not Status.DIVERGED and trial.best_value is not None:
            _note_best(view, trial, trial.best_step, trial.best_value)


def _study_ending(view: View, event: ev.StudyEnding) -> None:
    view.ending = event


def _study_ended(view: View, event: ev.StudyEnded) -> None:
    view.ended = event


_HANDLERS: dict[type, Callable[[View, Any], None]] = {
    ev.StudyCreated: _study_created,
    ev.DriverStarted: _driver_started,
    ev.MachinesChanged: _machines_changed,
    ev.StopRequested: _stop_requested,
    ev.AttemptStarted: _attempt_started,
    ev.HorizonDeclared: _horizon_declared,
    ev.PointReported: _point_reported,
    ev.CheckpointSaved: _checkpoint_saved,
    ev.CheckpointDeleted: _checkpoint_deleted,
    ev.AttemptEnded: _attempt_ended,
    ev.TrialProposed: _trial_proposed,
    ev.SearchExhausted: _search_exhausted,
    ev.Planned: _planned,
    ev.AttemptGranted: _attempt_granted,
    ev.AttemptEnding: _attempt_ending,
    ev.AttemptSilent: _attempt_silent,
    ev.TrialEnded: _trial_ended,
    ev.StudyEnding: _study_ending,
    ev.StudyEnded: _study_ended,
}
