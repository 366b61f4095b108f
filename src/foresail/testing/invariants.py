"""What must hold at every event of every history. Each rule has a name, and has caught a deliberate bug of that kind.

`Witness` keeps its own books: from the facts that the executor handed over and the events that were appended, by the
simplest code that can be right, and compares the engine's view, its decisions and its commands with them. The list,
with the bug that each rule has caught: docs/invariants.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from string import Formatter
from typing import TYPE_CHECKING, Any

from foresail.core import events as ev
from foresail.core.commands import Command, DeleteCheckpoint, Launch
from foresail.core.plan import Verdict
from foresail.core.reason import SENTENCES
from foresail.core.spec import StudySpec
from foresail.core.view import Trial, View, apply
from foresail.core.words import Act, AttemptId, Outcome, Status, TrialId
from foresail.engine.controller import Controller
from foresail.engine.verify import verify
from foresail.testing.digest import view_digest
from foresail.testing.world import World

if TYPE_CHECKING:
    from foresail.testing.history import Case

LEGAL: dict[Status, frozenset[Status]] = {
    Status.WAITING: frozenset({Status.RUNNING, Status.ENDED}),
    Status.RUNNING: frozenset(Status) - {Status.WAITING},
    Status.YIELDING: frozenset(Status) - {Status.WAITING, Status.RUNNING},
    Status.SUSPENDED: frozenset({Status.RUNNING, Status.ENDED, Status.FAILED, Status.COMPLETED}),
}
"""Where a trial may go from where it stands; what has ended stays where it is."""

COMPARED_EVERY = 16
"""Whole views are compared so many waits apart, and whenever a driver comes or leaves."""

PAUSING = ("asha", "pop", "hypersched", "pasha", "freezethaw")
"""Policies that may leave a trial suspended for good."""

SLACK_S = 10.0
"""Beyond budget and grace: from the kill to the news of it."""


class Broken(AssertionError):
    """An invariant did not hold: its name, and what was seen."""

    def __init__(self, name: str, what: str, event: object = None) -> None:
        self.name = name
        super().__init__(f"{name}: {what}" + (f"; at {event}" if event is not None else ""))


@dataclass
class Life:
    """One attempt in the books."""

    trial: TrialId
    cores: tuple[int, ...]
    step: int
    granted_s: float
    heard_s: float
    since_driver: int
    news: bool = False
    ending: bool = False


@dataclass
class Books:
    """The study as counted by hand."""

    machine: tuple[int, ...] = ()
    drivers: int = 0
    now_s: float = 0.0
    live: dict[AttemptId, Life] = field(default_factory=dict)
    attempts: dict[TrialId, int] = field(default_factory=dict)
    curves: dict[TrialId, dict[int, float]] = field(default_factory=dict)
    ended: dict[TrialId, Status] = field(default_factory=dict)
    wish: dict[TrialId, Verdict] = field(default_factory=dict)
    owed: set[TrialId] = field(default_factory=set)
    saved: dict[str, tuple[TrialId, int, float | None]] = field(default_factory=dict)
    failures: dict[TrialId, int] = field(default_factory=dict)
    fruitless: dict[TrialId, int] = field(default_factory=dict)
    rooms: dict[TrialId, int] = field(default_factory=dict)
    device_s: float = 0.0
    ending: ev.StudyEnding | None = None
    over: ev.StudyEnded | None = None
    end_due_s: float | None = None

    def finite(self, trial: TrialId) -> list[float]:
        return [v for v in self.curves[trial].values() if math.isfinite(v)]


class Witness:
    """Sees what passes between the driver, the store and the executor."""

    def __init__(self, case: Case, world: World, fresh: Callable[[StudySpec], Controller]) -> None:
        self.case, self.world, self._fresh = case, world, fresh
        self.books = Books()
        self.view = View()
        self._controller: Controller | None = None
        self._offered: list[ev.Fact] = []
        self._doomed: set[str] = set()
        self._bests: set[TrialId | None] = set()  # trials that were the best since the driver last waited
        self._stopped = False
        self._appends = self._settled = 0
        self.counts: dict[str, int] = {}

    # --- from the seams --------------------------------------------------------------------------------------

    def driver_comes(self, controller: Controller) -> None:
        self._controller = controller
        self._offered.clear()
        if view_digest(controller.view) != view_digest(self.view):
            raise Broken("fold_equals_live", "the view that was loaded is not the one that was lived")

    def driver_left(self) -> None:
        self._same_view()
        self._controller = None

    def wants_stop(self) -> bool:
        """A person's Ctrl-C, once."""
        due = bool(self.case.stop_after) and self._appends > self.case.stop_after and not self._stopped
        self._stopped |= due
        return due

    def heard(self, facts: Sequence[ev.Fact]) -> Sequence[ev.Fact]:
        self._offered += facts
        return facts

    def appended(self, events: Sequence[ev.Event]) -> None:
        self._appends += 1
        for event in events:
            self._event(event)
        self._nothing_swallowed(events)

    def performed(self, command: Command) -> None:
        self.counts[type(command).__name__] = self.counts.get(type(command).__name__, 0) + 1
        match command:
            case Launch(attempt=attempt):
                if attempt not in self.books.live:
                    raise Broken("granted_before_launched", f"{attempt} is launched and no grant is recorded")
            case DeleteCheckpoint(path=path):
                self._may_go(path)

    def settled(self, in_time: bool) -> None:
        """The driver is about to wait: all that it had to do is done."""
        if not in_time:
            raise Broken("study_ends", f"it goes on for ever; {self._story()}")
        if self.world.crowded:
            raise Broken("cores_really_free", self.world.crowded)
        if self.world.misled:
            raise Broken("resumes_from_what_is_there", self.world.misled)
        self._bests = {self.view.best[0] if self.view.best else None}
        self._wishes_done()
        self._living_are_known()
        self._nobody_is_silent()
        self._in_budget()
        self._settled += 1
        if self._settled % COMPARED_EVERY == 0:
            self._same_view()

    def _same_view(self) -> None:
        if self._controller is not None and view_digest(self._controller.view) != view_digest(self.view):
            raise Broken("fold_equals_live", "the log folds to another view than the driver holds")

    def over(self, log: Sequence[ev.Event]) -> None:
        """The study has ended."""
        books = self.books
        if books.live:
            raise Broken("nothing_left_running", f"{sorted(books.live)} live on after the end")
        for trial in self.view.trials:
            self._same_curve(trial, None)
        self._nobody_forgotten()
        difference = verify(log, self._fresh(self.case.spec))
        if difference is not None:
            raise Broken(
                "log_verifies", f"event {difference.at}: recorded {difference.recorded}, decided {difference.decided}"
            )

    # --- one event -------------------------------------------------------------------------------------------

    def _event(self, event: ev.Event) -> None:
        books, view = self.books, self.view
        before = {t.id: view.status(t) for t in self._concerned(event)}
        if event.at_s < books.now_s:
            raise Broken("time_rises", f"from {books.now_s} to {event.at_s}", event)
        books.now_s = event.at_s
        if isinstance(event, ev.AttemptGranted):
            self._grant_is_right(event)
        self._enter(event)
        apply(view, event)
        for trial, status in before.items():
            self._legal(trial, status, event)
        self._bests.add(view.best[0] if view.best else None)
        self._cores_add_up(event)
        self._best_is_best(event)
        self._counts_add_up(event)
        for t in self._concerned(event):
            self._same_curve(t, event)

    def _concerned(self, event: ev.Event) -> list[Trial]:
        match event:
            case ev.AttemptGranted(trial=trial) | ev.TrialEnded(trial=trial):
                return [self.view.trials[trial]]
            case ev.TrialProposed():
                return []
            case (
                ev.AttemptStarted(attempt=a)
                | ev.PointReported(attempt=a)
                | ev.AttemptEnding(attempt=a)
                | ev.AttemptEnded(attempt=a)
            ):
                return [self.view.trials[self.books.live[a].trial]] if a in self.books.live else []
            case _:
                return []

    def _enter(self, event: ev.Event) -> None:
        books = self.books
        match event:
            case ev.DriverStarted(cores=cores):
                books.machine, books.drivers = cores, books.drivers + 1
                if books.ending is not None and books.ending.end == "stopped":
                    books.ending = books.over = books.end_due_s = None
            case ev.TrialProposed(trial=trial):
                books.curves[trial], books.attempts[trial] = {}, 0
            case ev.Planned(verdicts=verdicts):
                for verdict in verdicts:
                    self._verdict_is_right(verdict, event)
                    books.wish[verdict.trial] = verdict
                    (books.owed.add if verdict.act is Act.RUN else books.owed.discard)(verdict.trial)
            case ev.AttemptGranted():
                books.live[event.attempt] = Life(
                    event.trial, event.cores, event.resume_step, event.at_s, event.at_s, books.drivers
                )
                books.attempts[event.trial] += 1
                books.owed.add(event.trial)
            case ev.AttemptStarted(attempt=attempt):
                books.live[attempt].heard_s = event.at_s
            case ev.AttemptSilent(attempt=attempt):
                self._silence_is_right(books.live[attempt], event)
            case ev.AttemptEnding(attempt=attempt):
                books.live[attempt].ending = True
            case ev.PointReported():
                self._point(event)
            case ev.CheckpointSaved(attempt=attempt, step=step, path=path):
                if path not in self.world.files:
                    raise Broken("checkpoints_are_real", f"{path} was deleted", event)
                books.live[attempt].heard_s = event.at_s
                trial = books.live[attempt].trial
                books.saved[path] = (trial, step, books.curves[trial].get(step))
            case ev.CheckpointDeleted(path=path):
                del books.saved[path]
            case ev.AttemptEnded():
                self._attempt_ended(event)
            case ev.TrialEnded(trial=trial, status=status):
                if trial in books.ended:
                    raise Broken("ended_is_final", f"trial {trial} ended twice", event)
                books.ended[trial] = status
            case ev.StudyEnding():
                books.ending = event
                if event.end == "stopped":
                    books.owed.clear()
                books.end_due_s = event.at_s + self.case.spec.grace_s + SLACK_S + 2 * self.case.temper.late_s
            case ev.StudyEnded():
                books.over = event

    def _point(self, event: ev.PointReported) -> None:
        life = self.books.live.get(event.attempt)
        if life is None or event.step <= life.step:
            raise Broken("fence_holds", "a point of the past was let in", event)
        known = self.books.curves[life.trial]
        life.step, life.heard_s = event.step, event.at_s
        value = event.metrics.get(self.case.spec.goal.metric)
        if value is not None:
            known[event.step] = value

    def _attempt_ended(self, event: ev.AttemptEnded) -> None:
        books = self.books
        life = books.live.pop(event.attempt, None)
        if life is None:
            raise Broken("fence_holds", "an attempt ended twice", event)
        books.device_s += (event.at_s - life.granted_s) * len(life.cores)
        if event.outcome is Outcome.OUT_OF_MEMORY:
            books.rooms[life.trial] = max(1, len(self._beside(life.cores)))
        if event.outcome in (Outcome.FAILED, Outcome.OUT_OF_MEMORY):
            books.failures[life.trial] = books.failures.get(life.trial, 0) + 1

    # --- the rules -------------------------------------------------------------------------------------------

    def _grant_is_right(self, event: ev.AttemptGranted) -> None:
        books, spec = self.books, self.case.spec
        held = {core for life in books.live.values() for core in life.cores}
        least, count = spec.resources.cores_per_trial, len(event.cores)
        fits = count >= least if spec.policy.options.get("elastic") else count == least
        if not set(event.cores) <= set(books.machine) or not fits:
            raise Broken("cores_of_this_machine", f"{event.cores} of {books.machine}", event)
        if held & set(event.cores) or len(set(event.cores)) != len(event.cores):
            raise Broken("cores_held_once", f"{event.cores} are held", event)
        if any(life.trial == event.trial for life in books.live.values()):
            raise Broken("one_life_at_a_time", f"trial {event.trial} is alive", event)
        if event.trial in books.ended:
            raise Broken("ended_is_final", f"trial {event.trial} is {books.ended[event.trial]}", event)
        wish = books.wish.get(event.trial)
        if wish is None or wish.act is not Act.RUN:
            raise Broken("planned_before_granted", f"the last verdict is {wish}", event)
        if books.ending is not None:
            raise Broken("no_start_after_the_end", f"{books.ending.end}", event)
        workers = spec.resources.workers
        if workers is not None and len(books.live) >= workers:
            raise Broken("no_more_than_workers", f"{len(books.live)} alive, {workers} allowed", event)
        if books.failures.get(event.trial, 0) > spec.retries:
            raise Broken("retries_are_bounded", f"{books.failures[event.trial]} failures", event)
        best = max((s for s in books.saved.values() if s[0] == event.trial), key=lambda s: s[1], default=None)
        if event.resume_step != (best[1] if best else 0):
            raise Broken("resumes_from_the_latest", f"{best} is saved", event)

        beside = self._beside(event.cores)
        rooms = [books.rooms[t] for t in (event.trial, *(life.trial for life in beside)) if t in books.rooms]
        if len(beside) >= min(rooms, default=len(beside) + 1):
            raise Broken("memory_is_remembered", f"{len(beside)} neighbours, and there is room for {rooms}", event)

    def _beside(self, cores: tuple[int, ...]) -> list[Life]:
        """Who is alive on the present machine, if these cores are of it."""
        machine = self.books.machine if cores[0] in self.books.machine else ()
        return [life for life in self.books.live.values() if life.cores[0] in machine]

    def _silence_is_right(self, life: Life, event: ev.AttemptSilent) -> None:
        limit_s = self.case.spec.silence_limit_s
        if limit_s is None or event.at_s < life.heard_s + limit_s:
            raise Broken("the_silent_alone_are_ended", f"heard at {life.heard_s}, allowed: {limit_s} s", event)

    def _nobody_is_silent(self) -> None:
        limit_s, now_s = self.case.spec.silence_limit_s, self.world.now_s()
        for attempt, life in self.books.live.items():
            if limit_s is not None and not life.ending and now_s >= life.heard_s + limit_s:
                raise Broken("silence_is_ended", f"{attempt} was heard at {life.heard_s}, it is {now_s}")

    def _verdict_is_right(self, verdict: Verdict, event: ev.Event) -> None:
        try:
            sentence = verdict.reason.sentence()
        except (KeyError, ValueError) as error:
            raise Broken("reasons_can_be_read", f"{verdict}: {error!r}", event) from error
        wanted = {field for _, field, _, _ in Formatter().parse(SENTENCES[verdict.reason.rule]) if field}
        if not sentence or (wanted and wanted.isdisjoint(verdict.reason.numbers)):
            raise Broken("reasons_can_be_read", f"{verdict} says nothing", event)
        if verdict.trial in self.books.ended:
            raise Broken("ended_is_final", f"a verdict on trial {verdict.trial}, which is over", event)

    def _legal(self, trial: TrialId, before: Status, event: ev.Event) -> None:
        after = self.view.status(self.view.trials[trial])
        if after is not before and after not in LEGAL.get(before, frozenset()):
            raise Broken("lifecycle_is_legal", f"trial {trial} went from {before} to {after}", event)

    def _cores_add_up(self, event: ev.Event) -> None:
        held = [core for life in self.books.live.values() for core in life.cores]
        if len(held) != len(set(held)):
            raise Broken("cores_held_once", f"{held}", event)
        free = sorted(set(self.books.machine) - set(held))
        if self.view.free_cores != free:
            raise Broken("free_cores_add_up", f"{self.view.free_cores}, but {free} are free", event)

    def _best_is_best(self, event: ev.Event) -> None:
        books, sign = self.books, 1.0 if self.case.spec.goal.mode == "max" else -1.0
        values = [
            (sign * v, trial, step)
            for trial, curve in books.curves.items()
            if books.ended.get(trial) is not Status.DIVERGED
            for step, v in curve.items()
            if math.isfinite(v)
        ]
        best = self.view.best
        if best is None:
            if values:
                raise Broken("best_is_best", f"none, but there is {max(values)}", event)
        elif not values or sign * best[2] != max(values)[0] or (sign * best[2], best[0], best[1]) not in values:
            raise Broken("best_is_best", f"{best}, but {max(values, default=None)} is better", event)

    def _counts_add_up(self, event: ev.Event) -> None:
        view, books = self.view, self.books
        for status in (Status.COMPLETED, Status.ENDED, Status.DIVERGED, Status.FAILED):
            if view.counts[status] != sum(s is status for s in books.ended.values()):
                raise Broken("counts_add_up", f"{status}: {view.counts[status]}", event)
        running = {life.trial for life in books.live.values()}
        open_ = {t for t in books.curves if t not in books.ended and t not in running}
        if set(view.waiting) != {t for t in open_ if not books.attempts[t]}:
            raise Broken("counts_add_up", f"waiting: {list(view.waiting)}", event)
        if set(view.suspended) != {t for t in open_ if books.attempts[t]}:
            raise Broken("counts_add_up", f"suspended: {list(view.suspended)}", event)

    def _same_curve(self, trial: Trial, event: ev.Event | None) -> None:
        mine = sorted(self.books.curves[trial.id].items())
        theirs = list(zip(trial.steps, trial.values, strict=True))
        if repr(mine) != repr(theirs):
            raise Broken("no_point_is_lost", f"trial {trial.id} has {theirs}, was told {mine}", event)

    def _nothing_swallowed(self, events: Sequence[ev.Event]) -> None:
        """Facts that were offered and pass the fence are in the log: replayed on the books."""
        recorded = {id(event) for event in events}
        steps: dict[AttemptId, int] = {}
        for fact in self._offered:
            if isinstance(fact, ev.PointReported) and id(fact) in recorded:
                steps[fact.attempt] = max(steps.get(fact.attempt, 0), fact.step)
        gone = {e.attempt for e in events if isinstance(e, ev.AttemptEnded)}
        for fact in self._offered:
            if id(fact) in recorded or not isinstance(fact, ev.PointReported):
                continue
            life = self.books.live.get(fact.attempt)
            if life is not None and fact.attempt not in gone and fact.step > life.step:
                raise Broken("no_point_is_lost", "a point of a live attempt was refused", fact)
        self._offered.clear()

    def _may_go(self, path: str) -> None:
        """The latest and the best of who may go on, and the best of all, are never deleted."""
        books, sign = self.books, 1.0 if self.case.spec.goal.mode == "max" else -1.0
        if path not in books.saved:
            return
        trial, step, value = books.saved[path]
        self._doomed.add(path)
        left = [s for p, s in books.saved.items() if s[0] == trial and p not in self._doomed]
        if trial not in books.ended and step > max((s[1] for s in left), default=0):
            raise Broken("checkpoints_that_are_needed_stay", f"{path} is the latest of trial {trial}")
        needed = trial not in books.ended or self._bests == {trial}
        best = max((sign * s[2] for s in left if s[2] is not None and math.isfinite(s[2])), default=-math.inf)
        if needed and value is not None and math.isfinite(value) and sign * value > best:
            raise Broken("checkpoints_that_are_needed_stay", f"{path} is the best of trial {trial}")

    def _wishes_done(self) -> None:
        books = self.books
        for attempt, life in books.live.items():
            wish = books.wish[life.trial]
            over = life.trial in books.ended or books.ending is not None
            if (over or wish.act is not Act.RUN) and not life.ending:
                raise Broken("wishes_become_commands", f"{attempt} should leave and was not asked: {wish}")
            worker = self.world.workers.get(attempt)
            if life.ending and worker is not None and worker.alive and not worker.asked:
                raise Broken("wishes_reach_the_world", f"{attempt} is to leave, and its process was never told")
        for trial, wish in books.wish.items():
            if wish.act is Act.END and trial not in books.ended:
                raise Broken("wishes_become_commands", f"trial {trial} should be over")
        self._diverged_are_over()

    def _diverged_are_over(self) -> None:
        books = self.books
        for trial, curve in books.curves.items():
            reached = books.ending is not None and books.ending.end == "target"
            if trial not in books.ended and not reached and any(not math.isfinite(v) for v in curve.values()):
                raise Broken("diverged_is_over", f"trial {trial}: {curve}")

    def _living_are_known(self) -> None:
        """Who lives in the books lives in the world, or the news of its end is under way."""
        for attempt in self.books.live:
            worker = self.world.workers.get(attempt)
            if worker is None or (not worker.watched and self._controller is not None):
                raise Broken("the_living_are_adopted", f"{attempt} holds cores, and nobody watches it")
        for attempt, worker in self.world.workers.items():
            if worker.alive and attempt not in self.books.live:
                raise Broken("nothing_left_running", f"{attempt} runs, and the books say that it is over")

    def _in_budget(self) -> None:
        books, goal = self.books, self.case.spec.goal
        now_s = self.world.now_s()
        late_s = SLACK_S
        if books.ending is None and goal.within_s is not None and now_s > goal.within_s + 1e-6:
            raise Broken("budgets_hold", f"{now_s} s, and the deadline was {goal.within_s}")
        used = books.device_s + sum((now_s - x.granted_s) * len(x.cores) for x in books.live.values())
        if books.ending is None and goal.device_s is not None and used > goal.device_s + 1e-6:
            raise Broken("budgets_hold", f"{used} core-seconds of {goal.device_s}")
        if books.over is None and books.end_due_s is not None and now_s > books.end_due_s + late_s:
            raise Broken("budgets_hold", f"the study was to end at {books.ending}, and is not over at {now_s}")

    def _nobody_forgotten(self) -> None:
        """A study that ends since there is nothing left to do has done what it wished."""
        books = self.books
        if books.ending is None or books.ending.end not in ("trials", "exhausted", "nothing_left"):
            return
        for trial in books.owed - set(books.ended):
            raise Broken("nobody_is_forgotten", f"trial {trial} was to run and never did: {books.wish[trial]}")
        left = [trial for trial in books.curves if trial not in books.ended]
        if left and self.case.spec.policy.name not in PAUSING:
            raise Broken("nobody_is_forgotten", f"trials {left} were left where they stood")
        if any(not n for t, n in books.attempts.items() if t not in books.ended):
            raise Broken("nobody_is_forgotten", "a trial never had its turn")

    def _story(self) -> dict[str, Any]:
        return {"t": self.world.t, "live": list(self.books.live), "ending": self.books.ending, "over": self.books.over}


def names() -> Iterable[str]:
    """Every rule's name, as `Broken` says it."""
    import inspect
    import re

    return sorted(set(re.findall(r'Broken\(\s*"(\w+)"', inspect.getsource(Witness))))
