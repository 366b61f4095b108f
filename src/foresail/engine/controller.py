"""The engine: facts in, decisions and commands out. No I/O, no clock, no thread.

`feed` takes one fact and answers with everything that follows from it: the events to append (the fact first) and the
commands to perform once they are appended. What follows depends on the log alone, so a log can be checked by feeding
its facts to a fresh controller (`engine/verify.py`), and a study resumes by folding it (`load`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from foresail.core import events as ev
from foresail.core.commands import Command, DeleteCheckpoint
from foresail.core.plan import Plan
from foresail.core.view import View, apply
from foresail.core.words import Act, TrialId
from foresail.engine.ends import after_attempt, diverged, due_end, next_deadline_s, silent
from foresail.engine.reconcile import Move, ask_to_leave, reconcile, remind, usable
from foresail.engine.retention import over_budget, superseded
from foresail.errors import InternalError
from foresail.policies.policy import AnyPolicy
from foresail.search.proposals import Proposals

MAX_ROUNDS = 8
"""A plan that asks for new configurations is made again when they are there; more rounds than this are a bug."""
_ALWAYS = (ev.Ticked, ev.AttemptEnded, ev.MachinesChanged)
"""Facts after which the engine decides without being asked by the policy."""


@dataclass(slots=True)
class Step:
    """What followed from one fact."""

    events: list[ev.Event] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)


class Controller:
    """Holds the view, the policy's index and the search's; changes them only by applying events."""

    def __init__(self, policy: AnyPolicy, proposals: Proposals) -> None:
        self.view = View()
        self.policy = policy
        self.proposals = proposals
        self.refused = 0
        self._index: object = None
        self._due = False

    def load(self, events: Iterable[ev.Event]) -> None:
        """Fold a recorded log; nothing is decided."""
        for event in events:
            self._apply(event)
        self._due = False

    def recover(self) -> list[Command]:
        """What the log says was decided and the world may never have been told: its driver died in between.

        To be performed once the executor has adopted what lives.
        """
        return [*remind(self.view), *self._deletions({c.trial for c in self.view.checkpoints.values()})]

    def feed(self, fact: ev.Fact) -> Step:
        """One fact from outside, and all that follows from it."""
        step = Step()
        if self.view.is_stale(fact):
            self.refused += 1
            return step
        self._record(step, fact)
        for move in self._consequences(fact):
            self._take(step, move)
        if self._decides(fact):
            self._decide(step)
        self._finish(step)
        return step

    def next_wake_s(self) -> float | None:
        """Study time at which a `Ticked` is due, if nothing else happens before."""
        return next_deadline_s(self.view)

    # --- applying --------------------------------------------------------------------------------------------

    def _apply(self, event: ev.Event) -> None:
        apply(self.view, event)
        if isinstance(event, ev.StudyCreated):
            self._index = self.policy.begin(event.spec)
            self.proposals.begin(event.spec)
        self.proposals.observe(event)
        self._due |= self.policy.observe(self._index, self.view, event)

    def _record(self, step: Step, event: ev.Event) -> None:
        self._apply(event)
        step.events.append(event)

    def _take(self, step: Step, move: Move) -> None:
        self._record(step, move.event)
        if move.command is not None:
            step.commands.append(move.command)

    # --- what follows ----------------------------------------------------------------------------------------

    def _consequences(self, fact: ev.Fact) -> Iterator[Move]:
        match fact:
            case ev.PointReported():
                yield from diverged(self.view, fact)
            case ev.AttemptEnded():
                yield from after_attempt(self.view, fact)
            case ev.Ticked():
                yield from silent(self.view)
        if self.view.ending is None:
            end = due_end(self.view)
            if end is not None:
                yield from self._end_study(end)

    def _end_study(self, end: ev.StudyEnding) -> Iterator[Move]:
        yield Move(end)
        for attempt in tuple(self.view.attempts.values()):
            if not attempt.ending:
                yield ask_to_leave(self.view, attempt)

    def _decides(self, fact: ev.Fact) -> bool:
        due, self._due = self._due, False
        if self.view.ending is not None or not self.view.cores:
            return False
        return due or isinstance(fact, _ALWAYS)

    def _decide(self, step: Step) -> None:
        plan = self._plan(step)
        if plan is None:
            return
        changed = tuple(v for v in plan.verdicts if not v.same_wish(self.view.trials[v.trial].verdict))
        if changed:
            decision = self.view.decisions
            self._record(step, ev.Planned(at_s=self.view.now_s, decision=decision, verdicts=changed))
        for move in reconcile(self.view, plan):
            self._take(step, move)
        self._due = False
        if not self.view.attempts and not any(v.act is Act.RUN for v in plan.verdicts):
            for move in self._end_study(self._nothing_left()):
                self._take(step, move)

    def _plan(self, step: Step) -> Plan | None:
        """Ask the policy; open the configurations that it wants; ask again with them in view."""
        for _ in range(MAX_ROUNDS):
            plan = self.policy.decide(self._index, self.view, self._rng)
            if not (plan.open and self.view.can_open):
                return usable(self.view, plan)
            for event in self.proposals.propose(self.view, plan.open):
                self._record(step, event)
        raise InternalError(f"the policy asked for new configurations {MAX_ROUNDS} times in one decision")

    def _rng(self) -> np.random.Generator:
        return np.random.Generator(np.random.PCG64([self.view.spec.seed, self.view.events]))

    def _nothing_left(self) -> ev.StudyEnding:
        view = self.view
        if view.exhausted:
            return ev.StudyEnding(at_s=view.now_s, end="exhausted", why=view.exhausted)
        limit = view.spec.goal.trials
        if limit is not None and len(view.trials) >= limit:
            return ev.StudyEnding(
                at_s=view.now_s, end="trials", why=f"all {limit} trials of the budget have had their turn"
            )
        return ev.StudyEnding(at_s=view.now_s, end="nothing_left", why="the policy wants nothing to run")

    def _finish(self, step: Step) -> None:
        self._tidy(step)
        view = self.view
        if view.ending is not None and view.ended is None and not view.attempts:
            self._record(step, ev.StudyEnded(at_s=view.now_s, end=view.ending.end, why=view.ending.why))

    def _tidy(self, step: Step) -> None:
        """Checkpoints that nothing needs any more are deleted."""
        trials = set()
        for event in step.events:
            if isinstance(event, ev.CheckpointSaved):
                trials.add(self.view.attempts[event.attempt].trial)
            elif isinstance(event, ev.TrialEnded):
                trials.add(event.trial)
        if trials:
            step.commands += self._deletions(trials)

    def _deletions(self, trials: set[TrialId]) -> list[Command]:
        view = self.view
        idle = [c for trial in sorted(trials) for c in superseded(view, view.trials[trial])]
        return [DeleteCheckpoint(path) for path in dict.fromkeys(c.path for c in (*idle, *over_budget(view)))]
