"""The engine's decisions for trials that another program proposes, starts and stops: a view and a policy, no more.

`record` takes what has happened; `decide` asks the policy, and adds the events that `engine/reconcile.py` makes of its
plan: `AttemptGranted` may start, `AttemptEnding` is to be paused, `TrialEnded` is to be stopped. All of it goes into
`events`, a log like that of any study.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from foresail.core import events as ev
from foresail.core.spec import StudySpec
from foresail.core.view import View, apply
from foresail.core.words import Act, Config, TrialId
from foresail.engine.ends import after_attempt, diverged, due_end
from foresail.engine.reconcile import Move, ask_to_leave, reconcile
from foresail.policies.registry import make

_ASKS = (ev.AttemptEnded, ev.MachinesChanged, ev.TrialProposed)


class Ledger:
    """A study of `spec` with `slots` trials at a time, whose trials come from outside."""

    def __init__(self, spec: StudySpec, slots: int) -> None:
        self.view, self.events = View(), list[ev.Event]()
        self._policy = make(spec.policy)
        self._index: object = self._policy.begin(spec)
        self._due = False
        self.record(ev.StudyCreated(at_s=0.0, spec=spec))
        self.record(ev.DriverStarted(at_s=0.0, cores=tuple(range(slots))))
        self.record(ev.SearchExhausted(at_s=0.0, why="trials come from outside"))

    def record(self, event: ev.Event) -> None:
        """Note what has happened, and what follows from it at once."""
        if self.view.is_stale(event):
            return
        self._apply(event)
        self._due |= isinstance(event, _ASKS)
        match event:
            case ev.PointReported():
                self._take(diverged(self.view, event))
            case ev.AttemptEnded():
                self._take(after_attempt(self.view, event))
        end = due_end(self.view) if self.view.ending is None else None
        if end is not None:
            self._apply(end)
            self._take(ask_to_leave(self.view, a) for a in tuple(self.view.attempts.values()) if not a.ending)

    def propose(self, at_s: float, config: Config, origin: str) -> TrialId:
        """Note a trial that has come from outside."""
        trial = TrialId(len(self.view.trials))
        self.record(ev.TrialProposed(at_s=at_s, trial=trial, config=config, origin=origin))
        return trial

    def pass_time(self, at_s: float) -> None:
        """Note that it is so late, if that ends the study."""
        within_s = self.view.spec.goal.within_s
        if within_s is not None and at_s >= within_s and self.view.ending is None:
            self.record(ev.Ticked(at_s=at_s))

    def decide(self) -> None:
        """Ask the policy, if anything has happened that it wants to be asked about."""
        view = self.view
        if not self._due or view.ending is not None:
            return
        self._due = False
        plan = self._policy.decide(self._index, view, self._rng)
        changed = tuple(v for v in plan.verdicts if not v.same_wish(view.trials[v.trial].verdict))
        if changed:
            self._apply(ev.Planned(at_s=view.now_s, decision=view.decisions, verdicts=changed))
        self._take(reconcile(view, plan))
        self._due = False
        if not view.attempts and not any(v.act is Act.RUN for v in plan.verdicts) and (view.waiting or view.suspended):
            why = "the policy wants nothing to run"
            self._apply(ev.StudyEnding(at_s=view.now_s, end="nothing_left", why=why))

    def _take(self, moves: Iterator[Move]) -> None:
        for move in moves:
            self._apply(move.event)

    def _apply(self, event: ev.Event) -> None:
        apply(self.view, event)
        self.events.append(event)
        self._due |= self._policy.observe(self._index, self.view, event)

    def _rng(self) -> np.random.Generator:
        return np.random.Generator(np.random.PCG64([self.view.spec.seed, self.view.events]))
