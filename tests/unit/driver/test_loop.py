"""A store that refuses: the study pauses, limits hold, nothing is lost, and it goes on when there is room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from foresail.api.drive import controller_of
from foresail.core import events as ev
from foresail.core.goal import Goal
from foresail.core.spec import Choice, Resources, StudySpec
from foresail.core.view import View, fold
from foresail.core.words import AttemptId
from foresail.driver import loop
from foresail.driver.silence import LEAST_S, Silence
from foresail.engine.verify import verify
from foresail.errors import HostError
from foresail.space import Float, Space
from foresail.stores.memory import MemoryStore
from foresail.testing.world import Temper, World

CORES = (0, 1)


def spec_of(**goal: Any) -> StudySpec:
    return StudySpec(
        name="full",
        space=Space(lr=Float(1e-4, 1.0, log=True)).to_dict(),
        goal=Goal("score", "max", **goal),
        policy=Choice("fifo"),
        resources=Resources(2, 1),
        grace_s=1.0,
        max_steps=12,
    )


class FullDisk(MemoryStore):
    """Refuses appends while the world's time is in `full`."""

    def __init__(self, world: World, full: tuple[float, float]) -> None:
        super().__init__()
        self.world, self.full = world, full
        self.refused = 0

    def append(self, events: Sequence[ev.Event], *, durable: bool = False) -> None:
        if self.full[0] <= self.world.t < self.full[1]:
            self.refused += 1
            raise HostError("the disk is full")
        super().append(events, durable=durable)


def drive(monkeypatch: pytest.MonkeyPatch, spec: StudySpec, full: tuple[float, float]) -> tuple[Any, FullDisk, World]:
    """A whole study on a calm world whose disk is full for some time; what was said, and the store."""
    world = World(4, "score", Temper.calm())
    monkeypatch.setattr(loop.time, "monotonic", lambda: world.t)
    store = FullDisk(world, full)
    created = ev.StudyCreated(at_s=0.0, spec=spec)
    MemoryStore.append(store, [created])
    controller = controller_of(spec)
    controller.load([created])
    told: list[str] = []
    driver = loop.Driver(controller, store=store, executor=world, clock=world, trouble=told.append)
    world.driver_comes(0.0)
    driver.run(CORES)
    return told, store, world


def test_a_study_pauses_while_the_disk_is_full_and_goes_on_when_there_is_room(monkeypatch) -> None:
    spec = spec_of(trials=6)
    told, store, world = drive(monkeypatch, spec, (3.0, 200.0))
    log = [event for _, event in store.read()]
    view = fold(log)
    assert store.refused > 20, "it tried again"
    assert [line.split(";")[0] for line in told][:1] == ["the disk is full"]
    assert told[-1] == "the storage can be written again; the study goes on"
    assert len(told) < 2 + 200 / loop.REPEAT_S + 1, "it does not say so at each try"
    assert view.ended is not None
    assert view.ended.end == "trials"
    assert {w.launch.attempt for w in world.workers.values()} == {
        e.attempt for e in log if isinstance(e, ev.AttemptGranted)
    }
    reported = [w for worker in world.workers.values() for w in worker.spool if isinstance(w, ev.PointReported)]
    assert len([e for e in log if isinstance(e, ev.PointReported)]) == len(reported), "a point was lost"
    assert verify(log, controller_of(spec)) is None


def test_nothing_is_begun_while_the_disk_is_full(monkeypatch) -> None:
    begun: list[float] = []
    launch = World._launch

    def note(self: World, command: Any) -> None:
        begun.append(self.t)
        launch(self, command)

    monkeypatch.setattr(World, "_launch", note)
    drive(monkeypatch, spec_of(trials=6), (3.0, 200.0))
    assert len(begun) == 6
    assert not [t for t in begun if 3.0 <= t < 200.0]


def test_the_deadline_holds_though_nothing_can_be_recorded(monkeypatch) -> None:
    spec = spec_of(within_s=20.0)
    ends: list[float] = []
    die = World._die

    def note(self: World, worker: Any, outcome: Any) -> None:
        ends.append(self.t)
        die(self, worker, outcome)

    monkeypatch.setattr(World, "_die", note)
    _, store, _ = drive(monkeypatch, spec, (3.0, 500.0))
    log = [event for _, event in store.read()]
    assert fold(log).ended is not None
    assert max(ends) < 20.0 + spec.grace_s + 10.0, "who trains was told to leave at the deadline"
    assert verify(log, controller_of(spec)) is None


def test_a_wish_to_stop_ends_the_wait_for_a_full_disk() -> None:
    nothing: Any = None
    store: Any = FullDisk(World(0, "score"), (0.0, 1.0))
    driver = loop.Driver(nothing, store=store, executor=nothing, clock=nothing, trouble=print)
    driver.request_stop()
    driver._events = [ev.Ticked(at_s=0.0)]
    with pytest.raises(HostError, match="the disk is full"):
        driver._write()


# --- silence -----------------------------------------------------------------------------------------------------


def silent_view() -> View:
    attempt = AttemptId("0-1")
    return fold(
        [
            ev.StudyCreated(at_s=0.0, spec=spec_of(trials=1)),
            ev.DriverStarted(at_s=0.0, cores=CORES),
            ev.TrialProposed(at_s=0.0, trial=0, config={"lr": 0.1}, origin="random"),
            ev.AttemptGranted(at_s=0.0, attempt=attempt, trial=0, number=1, cores=(0,)),
            ev.PointReported(at_s=5.0, attempt=attempt, step=1, metrics={"score": 0.5}, seconds=5.0),
        ]
    )


def test_a_silent_trial_is_told_of_once_until_it_speaks() -> None:
    view, silence = silent_view(), Silence()
    assert not [*silence.new(view, LEAST_S)]
    (sentence,) = silence.new(view, LEAST_S + 6.0)
    assert sentence.startswith("trial 0 has said nothing for 10 min and holds 1 core(s)")
    assert not [*silence.new(view, 2 * LEAST_S)]
    view.attempts[AttemptId("0-1")].heard_s = 2 * LEAST_S
    assert not [*silence.new(view, 2 * LEAST_S)]
    assert [*silence.new(view, 4 * LEAST_S)]


def test_slow_steps_are_no_silence() -> None:
    view = silent_view()
    view.trials[0].seconds = 1000.0
    assert not [*Silence().new(view, 9_000.0)]
