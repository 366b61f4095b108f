"""One history of a study in a bad world: drivers that die at four points of the loop, and others that take over.

The engine, the policies, the driver's loop and the store are the real ones; what is put together here is what
`api/drive.py` puts together: fold the log, adopt, go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from msgspec import UNSET

from foresail.core import events as ev
from foresail.core.commands import Command
from foresail.core.goal import Goal
from foresail.core.spec import Choice, Resources, StudySpec
from foresail.core.words import AttemptId
from foresail.driver.loop import Driver
from foresail.engine.controller import Controller
from foresail.policies.registry import make
from foresail.search import get as get_search
from foresail.search.proposals import Proposals
from foresail.space import Choice as Pick
from foresail.space import Float, Space
from foresail.stores.memory import MemoryStore
from foresail.testing.invariants import Witness
from foresail.testing.world import Temper, World

METRIC = "score"
STOP_AT_S = 3_000.0
"""World time at which a person stops a study that no budget ends."""
MOST_POLLS = 20_000
MOST_AT_ONCE = 500
"""A driver that asks for news more often, in all or without time passing, will do so for ever."""


class DriverDied(BaseException):
    """Not an Exception, as a SIGKILL is none."""


@dataclass
class Deaths:
    """When drivers die: at each of the four points with probability `chance`, `left` times in all."""

    rng: Random
    chance: float = 0.008
    left: int = 3

    def maybe(self) -> None:
        if self.left and self.rng.random() < self.chance:
            self.left -= 1
            raise DriverDied


@dataclass
class MortalStore:
    """The log; the driver may die before the append, or after it and before anything is done."""

    log: MemoryStore
    deaths: Deaths
    witness: Witness

    def append(self, events: Sequence[ev.Event], *, durable: bool) -> None:
        self.deaths.maybe()
        self.log.append(events, durable=durable)
        self.witness.appended(events)
        self.deaths.maybe()

    def read(self, after: int = 0) -> Iterator[tuple[int, ev.Event]]:
        return self.log.read(after)

    def close(self) -> None:
        return None


@dataclass
class MortalExecutor:
    """The world; the driver may die between two commands, or before it hears the answer."""

    world: World
    deaths: Deaths
    witness: Witness
    stop: Callable[[], None] = lambda: None
    polls: int = 0
    since: tuple[float, int] = (0.0, 0)

    def start(self) -> None:
        self.world.start()

    def close(self, grace_s: float = 0.0) -> None:
        self.world.close(grace_s)

    def adopt(self, attempts: Iterable[AttemptId]) -> Sequence[ev.Fact]:
        return self.witness.heard(self.world.adopt(attempts))

    def perform(self, command: Command) -> None:
        self.deaths.maybe()
        self.witness.performed(command)
        self.world.perform(command)

    def poll(self, until_s: float) -> Sequence[ev.Fact]:
        self.polls += 1
        if self.world.t > self.since[0]:
            self.since = (self.world.t, self.polls)
        self.witness.settled(self.polls < MOST_POLLS and self.polls - self.since[1] < MOST_AT_ONCE)
        self.deaths.maybe()
        if self.world.t >= STOP_AT_S or self.witness.wants_stop():
            self.stop()
        return self.witness.heard(self.world.poll(until_s))


@dataclass(frozen=True)
class Case:
    """A study and the world that it meets."""

    seed: int
    spec: StudySpec
    temper: Temper
    machines: tuple[tuple[int, ...], ...]
    deaths: int
    stop_after: int

    @staticmethod
    def drawn(seed: int, policy: Choice) -> Case:
        """Any case; the seed says which."""
        draw = Random(f"case {seed}")
        cores = draw.choice((1, 2, 3, 5))
        each = draw.choice((1, 1, 1, 2)) if cores > 1 else 1
        sets = [
            tuple(range(cores)),
            tuple(range(1, cores + 1)),
            tuple(range(cores + 1)),
            tuple(range(max(each, cores - 1))),
        ]
        spec = StudySpec(
            name=f"case-{seed}",
            space=_space(draw).to_dict(),
            goal=_goal(draw),
            seed=seed,
            policy=policy,
            search=Choice("random"),
            resources=Resources(draw.choice((None, None, 2)), each),
            max_steps=draw.choice((None, None, 12)),
            retries=draw.choice((0, 2)),
            grace_s=draw.choice((1.0, 10.0)),
            keep_bytes=draw.choice((0, 40, 10_000)),
            silence_s=Random(f"silence {seed}").choice((UNSET, UNSET, UNSET, 6.0)),
        )
        late_s = draw.choice((0.0, 2.0, 8.0))
        temper = draw.choice((Temper.calm(), Temper(late_s=late_s), Temper(late_s=late_s, shared_fate=False)))
        machines = tuple(draw.choice(sets) for _ in range(12)) if draw.random() < 0.4 else (sets[0],)
        return Case(seed, spec, temper, machines, draw.choice((0, 2, 5)), draw.choice((0, 0, 40)))


def _space(draw: Random) -> Space:
    return draw.choice((Space(lr=Float(1e-4, 1.0, log=True)), Space(kind=Pick(["a", "b", "c", "d", "e"]))))


def _goal(draw: Random) -> Goal:
    kind = draw.choice(("trials", "within", "device", "target", "all"))
    every = kind == "all"
    return Goal(
        METRIC,
        draw.choice(("max", "min")),
        target=draw.choice((0.8, 0.1)) if kind == "target" or every else None,
        within_s=draw.choice((20.0, 100.0 / 3.0, 150.0)) if kind in ("within", "target") or every else None,
        trials=draw.choice((1, 4, 12)) if kind == "trials" or every else None,
        device_s=draw.choice((100.0 / 7.0, 200.0)) if kind == "device" or every else None,
    )


@dataclass
class Played:
    """What happened."""

    case: Case
    log: list[ev.Event]
    witness: Witness
    drivers: int = 1
    world: World = field(repr=False, default=None)  # type: ignore[assignment]


def controller_of(spec: StudySpec) -> Controller:
    """As `api/drive.py` makes it."""
    return Controller(make(spec.policy), Proposals(get_search(spec.search.name)))


def play(case: Case) -> Played:
    """From the creation to the end of the study, through all deaths and stops.

    Raises:
        Broken: an invariant did not hold.
    """
    rng = Random(f"drivers {case.seed}")
    world = World(case.seed, METRIC, case.temper)
    witness = Witness(case, world, controller_of)
    deaths = Deaths(rng, left=case.deaths)
    store = MortalStore(MemoryStore(), deaths, witness)
    witness.heard([created := ev.StudyCreated(at_s=0.0, spec=case.spec)])
    store.log.append([created])
    witness.appended([created])
    drivers = 0
    while True:
        drivers += 1
        if _one_driver(case, store, world, deaths, witness, drivers):
            break
    log = [event for _, event in store.read()]
    witness.over(log)
    return Played(case, log, witness, drivers, world)


def _one_driver(case: Case, store: MortalStore, world: World, deaths: Deaths, witness: Witness, number: int) -> bool:
    """Whether the study is over."""
    controller = controller_of(case.spec)
    controller.load(event for _, event in store.read())
    if controller.view.ended is not None and controller.view.ended.end != "stopped":
        return True
    world.driver_comes(controller.view.now_s)
    executor = MortalExecutor(world, deaths, witness)
    driver = Driver(controller, store=store, executor=executor, clock=world)
    executor.stop = driver.request_stop
    witness.driver_comes(controller)
    try:
        driver.run(case.machines[(number - 1) % len(case.machines)])
    except DriverDied:
        world.driver_died()
        return False
    world.close()
    witness.driver_left()
    assert controller.view.ended is not None
    return controller.view.ended.end != "stopped" or world.t >= STOP_AT_S
