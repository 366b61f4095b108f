"""Attempts in the driver's own process and thread, for a debugger and for the smallest of tests.

`poll` runs one attempt from its beginning to its end, so a breakpoint in the training function works. What must come
between, a wish to suspend or a kill, is heeded before the attempt begins, not while it runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from foresail.core import events as ev
from foresail.core.commands import Command, DeleteCheckpoint, Kill, Launch, Yield
from foresail.core.events import Fact
from foresail.core.goal import Goal
from foresail.core.words import AttemptId, Outcome
from foresail.executors.grants import grant_of
from foresail.executors.leftover import collect
from foresail.executors.listening import Listener
from foresail.ports import Clock
from foresail.worker import checkpoint
from foresail.worker.attempt import live
from foresail.worker.entry import Training
from foresail.worker.folder import StudyFolder
from foresail.worker.grant import write_grant


class InlineExecutor:
    """Runs attempts one after the other, here.

    Args:
        folder: where attempts and checkpoints live; made where there is none.
        clock: study time.
        goal: the training code needs it to know when its state is worth keeping.
        target: the training function.
    """

    def __init__(self, folder: Path, *, clock: Clock, goal: Goal, target: Training) -> None:
        self._study = StudyFolder(folder.resolve())
        self._clock, self._goal, self._target = clock, goal, target
        self._waiting: dict[AttemptId, Launch] = {}
        self._pending: list[Fact] = []

    def start(self) -> None:
        self._study.root.mkdir(parents=True, exist_ok=True)

    def perform(self, command: Command) -> None:
        match command:
            case Launch(attempt=attempt):
                if self._study.attempt(attempt).grant.exists():
                    self._pending += self.adopt([attempt])
                else:
                    self._waiting[attempt] = command
            case Yield(attempt=attempt) | Kill(attempt=attempt):
                if self._waiting.pop(attempt, None) is not None:
                    self._end(attempt, Outcome.KILLED)
            case DeleteCheckpoint(path=path):
                checkpoint.remove(self._study.checkpoint_named(path))
                self._pending.append(ev.CheckpointDeleted(at_s=self._clock.now_s(), path=path))

    def poll(self, until_s: float) -> Sequence[Fact]:
        if not self._pending and self._waiting:
            self._run(self._waiting.pop(next(iter(self._waiting))))
        facts, self._pending = self._pending, []
        return facts

    def _run(self, launch: Launch) -> None:
        grant = grant_of(launch, root=self._study.root, goal=self._goal)
        folder = self._study.attempt(launch.attempt)
        write_grant(folder, grant)
        now_s = self._clock.now_s()
        self._pending.append(ev.AttemptStarted(at_s=now_s, attempt=launch.attempt))
        listener = Listener(launch.attempt, folder, metric=self._goal.metric, now_s=now_s)
        farewell = live(grant, lambda: self._target, own_process=False)
        self._pending += listener.facts(self._clock.now_s())
        listener.close()
        self._end(launch.attempt, farewell.outcome, farewell.detail)

    def _end(self, attempt: AttemptId, outcome: Outcome, detail: str = "") -> None:
        now_s = self._clock.now_s()
        self._pending.append(ev.AttemptEnded(at_s=now_s, attempt=attempt, outcome=outcome, detail=detail))

    def adopt(self, attempts: Iterable[AttemptId]) -> Sequence[Fact]:
        facts: list[Fact] = []
        for attempt in attempts:
            if attempt not in self._waiting:
                folder, now_s = self._study.attempt(attempt), self._clock.now_s()
                listener = Listener(attempt, folder, metric=self._goal.metric, now_s=now_s)
                facts += collect(folder, listener, self._clock, command=False)
        return facts

    def close(self, grace_s: float = 0.0) -> None:
        for attempt in [*self._waiting]:
            del self._waiting[attempt]
            self._end(attempt, Outcome.KILLED)
