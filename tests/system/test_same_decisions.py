"""The same study, the same seed, the same order of events: the same decisions, whatever runs the trials.

A study runs freely on local processes. Then it runs once more, for real, and what was recorded says whose step is next:
each training waits for its turn. What comes from the world must be what came before, but for times and process ids,
which are taken from the recording; what a fresh engine decides upon it must be what was decided, byte for byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from gated_trainings import HERE, STEPS, TURNS
from lab import Lab
from msgspec.structs import replace
from ray_lab import ON_RAY

from foresail.api.drive import controller_of
from foresail.core import codec
from foresail.core import events as ev
from foresail.core.commands import Command, Kill, Launch, Yield
from foresail.core.goal import maximize
from foresail.core.spec import Choice, Entry, Resources, StudySpec
from foresail.core.words import Outcome
from foresail.driver.loop import Driver
from foresail.space import Float, Space
from foresail.stores.memory import MemoryStore

TRAINING = Entry(function=f"{HERE}:train")
OF_THE_DRIVER = (ev.StudyCreated, ev.DriverStarted, ev.Ticked)
OF_THE_HOST = {"at_s", "seconds", "pid", "bytes", "digest", "exit_code"}
"""Fields that may differ between two runs of the same training; a kill may find a process that is hardly born."""


def spec_of(policy: str) -> StudySpec:
    return StudySpec(
        name="same",
        space=Space(x=Float(0.1, 1.0)).to_dict(),
        goal=maximize("score", trials=8),
        seed=5,
        policy=Choice(policy),
        max_steps=STEPS,
        resources=Resources(workers=2),
        entry=TRAINING,
        grace_s=600.0,
    )


def recorded(lab: Lab, spec: StudySpec) -> list[ev.Event]:
    controller, store = controller_of(spec), MemoryStore()
    store.append(controller.feed(ev.StudyCreated(at_s=0.0, spec=spec)).events, durable=True)
    Driver(controller, store=store, executor=lab.executor, clock=lab.clock).run((0, 1))
    return [event for _, event in store.read()]


class Again:
    """The world of a recording, once more. A wish to leave takes effect after the step after which it once did."""

    def __init__(self, lab: Lab, events: Sequence[ev.Event]) -> None:
        self.lab, self.turns = lab, lab.folder / TURNS
        self.wishes: dict[str, Command] = {}
        self.reached: dict[str, int] = {}
        self.last = {e.attempt: e.resume_step for e in events if isinstance(e, ev.AttemptGranted)}
        self.last |= {e.attempt: e.step for e in events if isinstance(e, ev.PointReported)}
        self.outcome = {e.attempt: e.outcome for e in events if isinstance(e, ev.AttemptEnded)}
        self.turns.mkdir()
        for attempt, outcome in self.outcome.items():
            if outcome is Outcome.YIELDED:
                self._write(attempt, "leaves", str(self.last[attempt]))

    def _write(self, attempt: str, name: str, text: str = "") -> None:
        (self.turns / "new").write_text(text)
        (self.turns / "new").rename(self.turns / f"{attempt}-{name}")

    def perform(self, command: Command) -> None:
        match command:
            case Launch(attempt=attempt, resume_step=step):
                self.reached[attempt] = step
                self.lab.executor.perform(command)
            case Yield(attempt=attempt) | Kill(attempt=attempt):
                self.wishes[attempt] = command
                self._wish(attempt, Outcome.YIELDED)
            case _:
                self.lab.executor.perform(command)

    def _wish(self, attempt: str, outcome: Outcome) -> None:
        if self.outcome[attempt] is outcome and self.reached[attempt] == self.last[attempt] and attempt in self.wishes:
            self.lab.executor.perform(self.wishes.pop(attempt))

    def fact(self, then: Any) -> Any:
        """What the world says now where it said `then`."""
        if isinstance(then, ev.PointReported):
            self._write(then.attempt, str(then.step))
        if isinstance(then, ev.AttemptEnded):
            self._wish(then.attempt, Outcome.KILLED)
        found: list[Any] = []

        def came() -> bool:
            found[:] = [fact for fact in self.lab.facts if key(fact) == key(then)]
            return bool(found)

        self.lab.until(came)
        if isinstance(then, ev.PointReported):
            self.reached[then.attempt] = then.step
            self._wish(then.attempt, Outcome.YIELDED)
        return replace(found[0], **{name: getattr(then, name) for name in OF_THE_HOST & {*then.__struct_fields__}})


def key(fact: Any) -> tuple[Any, ...]:
    return type(fact), *(getattr(fact, name, None) for name in ("attempt", "step", "path"))


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["asha", "hybrid"])
@pytest.mark.parametrize("kind", ["import", pytest.param("ray", marks=ON_RAY)])
def test_the_same_order_of_events_makes_the_same_decisions(make_lab, tmp_path: Path, request, kind, policy):
    if kind == "ray":
        request.getfixturevalue("local_ray")
    spec = spec_of(policy)
    events = recorded(make_lab("import", TRAINING, goal=spec.goal, folder=tmp_path / "first"), spec)
    again = Again(make_lab(kind, TRAINING, goal=spec.goal, folder=tmp_path / "again"), events)
    controller, log = controller_of(spec), []
    for event in events:
        if isinstance(event, ev.Decision):
            continue
        step = controller.feed(event if isinstance(event, OF_THE_DRIVER) else again.fact(event))
        log += step.events
        for command in step.commands:
            again.perform(command)
    assert [codec.encode(event) for event in log] == [codec.encode(event) for event in events]
    outcomes = {event.outcome for event in events if isinstance(event, ev.AttemptEnded)}
    assert Outcome.YIELDED in outcomes, "nobody was asked to leave: this tells little"
