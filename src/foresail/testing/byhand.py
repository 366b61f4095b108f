"""A study driven by hand, fact by fact: for tests of what the engine makes of each."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from foresail.core import events as ev
from foresail.core.commands import Command
from foresail.core.goal import Goal
from foresail.core.spec import Choice, Resources, StudySpec
from foresail.core.view import View
from foresail.core.words import AttemptId, Outcome
from foresail.engine.controller import Controller
from foresail.policies.registry import make
from foresail.search import get
from foresail.search.proposals import Proposals
from foresail.space import Float, Space

METRIC = "score"


class ByHand:
    """A study of one knob on `cores` cores. Each method feeds one fact, a second after the last one.

    `log`: all events so far; `asked`: all commands so far.
    """

    def __init__(self, policy: str = "fifo", *, goal: Goal, cores: int = 1, **spec: Any) -> None:
        options = spec.pop("options", {})
        space = Space(lr=Float(1e-4, 1.0, log=True)).to_dict()
        parallel = spec.pop("parallel", UNSET)
        resources = Resources(spec.pop("workers", None), spec.pop("cores_per_trial", 1), parallel)
        self.spec = StudySpec("by-hand", space, goal, policy=Choice(policy, options), resources=resources, **spec)
        self.controller = Controller(make(self.spec.policy), Proposals(get("random")))
        self.log: list[ev.Event] = []
        self.asked: list[Command] = []
        self._feed(ev.StudyCreated(at_s=0.0, spec=self.spec))
        self.driver(cores)

    @property
    def view(self) -> View:
        return self.controller.view

    def _feed(self, fact: ev.Fact) -> list[ev.Event]:
        step = self.controller.feed(fact)
        self.log += step.events
        self.asked += step.commands
        return step.events

    def _s(self, after_s: float = 1.0) -> float:
        return self.view.now_s + after_s

    def driver(self, cores: int) -> list[ev.Event]:
        self._feed(ev.DriverStarted(at_s=self.view.now_s, cores=tuple(range(cores))))
        return self._feed(ev.Ticked(at_s=self.view.now_s))

    def tick(self, after_s: float = 1.0) -> list[ev.Event]:
        return self._feed(ev.Ticked(at_s=self._s(after_s)))

    def stop(self) -> list[ev.Event]:
        return self._feed(ev.StopRequested(at_s=self._s()))

    def point(self, attempt: str, step: int, value: float, *, seconds: float = 1.0) -> list[ev.Event]:
        metrics = {METRIC: value}
        return self._feed(
            ev.PointReported(at_s=self._s(), attempt=AttemptId(attempt), step=step, metrics=metrics, seconds=seconds)
        )

    def saved(self, attempt: str, step: int, size: int = 10) -> list[ev.Event]:
        path = f"{attempt}/{step}"
        return self._feed(
            ev.CheckpointSaved(at_s=self._s(), attempt=AttemptId(attempt), step=step, path=path, bytes=size)
        )

    def deleted(self, path: str) -> list[ev.Event]:
        return self._feed(ev.CheckpointDeleted(at_s=self._s(), path=path))

    def end(self, attempt: str, outcome: Outcome = Outcome.COMPLETED, detail: str = "") -> list[ev.Event]:
        return self._feed(ev.AttemptEnded(at_s=self._s(), attempt=AttemptId(attempt), outcome=outcome, detail=detail))
