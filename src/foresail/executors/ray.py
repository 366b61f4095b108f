"""Attempts on the machines of a Ray cluster, through one agent on each: a local executor in a Ray actor.

An agent holds all CPUs that Ray counts on its machine, so a machine joins the study when it is idle; attempts are then
born, pinned, asked to leave and buried as on a single machine, and cost no actor each. The study's folder is one that
all machines see. Agents end with the driver's connection, and attempts with their agent, so a driver that comes back
finds what they said in the folder.
"""

from __future__ import annotations

import os
import select
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from foresail.core import events as ev
from foresail.core.commands import Command, DeleteCheckpoint, Kill, Launch, Yield
from foresail.core.events import Fact
from foresail.core.goal import Goal
from foresail.core.spec import Entry
from foresail.core.words import AttemptId, Outcome
from foresail.errors import HostError, MissingExtraError
from foresail.executors.agent import Agent
from foresail.executors.cores import THREAD_VARIABLES
from foresail.executors.leftover import collect, is_same_launch
from foresail.executors.listening import Listener
from foresail.ports import Clock
from foresail.worker import checkpoint
from foresail.worker.folder import StudyFolder

_LOOK_S: Final = 1.0
"""Seconds between looks at which machines there are."""

_CLOSE_S: Final = 20.0
"""Seconds that agents get to end what runs, beside the grace of the call."""


@dataclass(slots=True)
class _Machine:
    """`turn`: the call that is under way, if one is; until `ready`, that which tells that the agent has its place."""

    agent: Any
    cores: tuple[int, ...]
    turn: Any
    ready: bool = False
    outbox: list[Command] = field(default_factory=list)


class RayExecutor:
    """Runs attempts on a Ray cluster.

    Args:
        folder: where attempts and checkpoints live, at the same place on every machine.
        clock: study time.
        goal: the training code needs it to know when its state is worth keeping.
        entry: what a trial runs; every machine must be able to import it.
        address: of the cluster, as `ray.init` takes it; empty: the one that runs here, else one that is started here.

    Raises:
        MissingExtraError: Ray is not installed.
    """

    def __init__(self, folder: Path, *, clock: Clock, goal: Goal, entry: Entry, address: str = "") -> None:
        self._ray = _import_ray()
        self._study = StudyFolder(folder.resolve())
        self._clock, self._goal, self._entry, self._address = clock, goal, entry, address
        self._machines: dict[str, _Machine] = {}
        self._homes: dict[AttemptId, _Machine] = {}
        self._pending: list[Fact] = []
        self._next_core = 0
        self._looked_s = float("-inf")
        self._connected = False

    def start(self) -> None:
        """Connect; agents are begun and not waited for.

        Raises:
            HostError: there is no such cluster, or the study's folder cannot be made.
        """
        try:
            self._study.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise HostError(f"cannot make the folder {self._study.root}: {error.strerror}") from error
        if not self._ray.is_initialized():
            _connect(self._ray, self._address)
            self._connected = True
        self._look()

    # --- machines ------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Send an agent to each machine that has none; machines that are gone are taken leave of."""
        self._looked_s = self._clock.now_s()
        there = {node["NodeID"]: node for node in self._ray.nodes() if node["Alive"]}
        for node in self._machines.keys() - there.keys():
            self._lose(node)
        for node in there.keys() - self._machines.keys():
            cpus = int(there[node]["Resources"].get("CPU", 0))
            if cpus:
                self._machines[node] = self._send_agent(node, cpus)

    def _send_agent(self, node: str, cpus: int) -> _Machine:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        cores = tuple(range(self._next_core, self._next_core + cpus))
        self._next_core += cpus
        actor = self._ray.remote(Agent).options(
            num_cpus=cpus,
            max_concurrency=2,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        )
        variables = {name: os.environ[name] for name in THREAD_VARIABLES if os.environ.get(name)}
        agent = actor.remote(
            str(self._study.root), goal=self._goal, entry=self._entry, cores=cores, variables=variables
        )
        return _Machine(agent, cores, agent.turn.remote((), 0.0))

    def _lose(self, node: str) -> None:
        """A machine is gone with all that ran there; what its attempts had said lies in the folder."""
        machine = self._machines.pop(node)
        if not machine.ready:
            return
        self._tell_machines()
        for attempt in [attempt for attempt, home in self._homes.items() if home is machine]:
            del self._homes[attempt]
            self._pending += self._last_words(attempt)

    def _tell_machines(self) -> None:
        machines = tuple(machine.cores for machine in self._machines.values() if machine.ready)
        self._pending.append(ev.MachinesChanged(at_s=self._clock.now_s(), machines=machines))

    # --- commands ------------------------------------------------------------------------------------------------

    def perform(self, command: Command) -> None:
        match command:
            case Launch(attempt=attempt):
                self._launch(command, attempt)
            case Yield(attempt=attempt) | Kill(attempt=attempt):
                if attempt in self._homes:
                    self._tell(self._homes[attempt], command)
            case DeleteCheckpoint(path=path):
                checkpoint.remove(self._study.checkpoint_named(path))
                self._pending.append(ev.CheckpointDeleted(at_s=self._clock.now_s(), path=path))

    def _launch(self, launch: Launch, attempt: AttemptId) -> None:
        if attempt in self._homes:
            return
        folder = self._study.attempt(attempt)
        if folder.grant.exists() and is_same_launch(folder, launch):
            self._pending += self.adopt([attempt])
            return
        machine = next((m for m in self._machines.values() if m.ready and launch.cores[0] in m.cores), None)
        if machine is None:
            lost = "its machine went before it began"
            self._pending.append(
                ev.AttemptEnded(at_s=self._clock.now_s(), attempt=attempt, outcome=Outcome.LOST, detail=lost)
            )
            return
        self._homes[attempt] = machine
        self._tell(machine, launch)

    def _tell(self, machine: _Machine, command: Command) -> None:
        if not machine.outbox:
            machine.agent.wake.remote()
        machine.outbox.append(command)

    # --- facts ---------------------------------------------------------------------------------------------------

    def poll(self, until_s: float) -> Sequence[Fact]:
        while True:
            now_s = self._clock.now_s()
            if now_s - self._looked_s >= _LOOK_S:
                self._look()
            self._ask()
            self._gather(0.0 if self._pending else max(0.0, min(until_s - now_s, _LOOK_S)))
            if self._pending or self._clock.now_s() >= until_s:
                facts, self._pending = self._pending, []
                return facts

    def _ask(self) -> None:
        """Have agents listen who do not: at a `poll`, since to ask is to say that the last answer is recorded."""
        for machine in self._machines.values():
            if machine.turn is None:
                machine.turn = machine.agent.turn.remote(tuple(machine.outbox), _LOOK_S)
                machine.outbox.clear()

    def _gather(self, wait_s: float) -> None:
        """What agents have to say; waits for the first of them."""
        turns = {machine.turn: node for node, machine in self._machines.items()}
        if not turns:
            select.select([], [], [], wait_s)
            return
        over = self._ray.wait([*turns], num_returns=1, timeout=wait_s)[0]
        if over:
            over = self._ray.wait([*turns], num_returns=len(turns), timeout=0)[0]
        for turn in over:
            self._hear(turns[turn], turn)

    def _hear(self, node: str, turn: Any) -> None:
        machine = self._machines[node]
        try:
            facts = self._ray.get(turn)
        except self._ray.exceptions.RayActorError:
            self._lose(node)
            return
        if not machine.ready:
            machine.ready = True
            self._tell_machines()
        machine.turn = None
        self._take(facts)

    def _take(self, facts: Sequence[Fact]) -> None:
        now_s = self._clock.now_s()
        for fact in facts:
            if isinstance(fact, ev.AttemptEnded):
                self._homes.pop(fact.attempt, None)
            self._pending.append(msgspec.structs.replace(fact, at_s=now_s))

    # --- before and after ----------------------------------------------------------------------------------------

    def adopt(self, attempts: Iterable[AttemptId]) -> Sequence[Fact]:
        """Attempts of an earlier driver ended with its agents: their last words, and their ends."""
        facts: list[Fact] = []
        for attempt in attempts:
            if attempt not in self._homes:
                facts += self._last_words(attempt)
        return facts

    def _last_words(self, attempt: AttemptId) -> list[Fact]:
        folder = self._study.attempt(attempt)
        listener = Listener(attempt, folder, metric=self._goal.metric, now_s=self._clock.now_s())
        return collect(folder, listener, self._clock, command=bool(self._entry.command))

    def close(self, grace_s: float = 0.0) -> None:
        there = [machine for machine in self._machines.values() if machine.ready]
        for machine in there:
            machine.agent.wake.remote()
        for machine in there:  # one call at a time: what it has to say first, then its last
            if machine.turn is not None:
                self._hear_out(machine.turn, _CLOSE_S)
        for call in [machine.agent.close.remote(grace_s) for machine in there]:
            self._hear_out(call, grace_s + _CLOSE_S)
        for machine in self._machines.values():
            self._ray.kill(machine.agent)
        self._machines.clear()
        self._looked_s = float("inf")
        if self._connected:
            self._ray.shutdown()
            self._connected = False

    def _hear_out(self, call: Any, seconds: float) -> None:
        errors = self._ray.exceptions
        with suppress(errors.RayActorError, errors.GetTimeoutError):  # gone already, or killed soon
            self._take(self._ray.get(call, timeout=seconds))


def _connect(ray: Any, address: str) -> None:
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "150")  # its own minute is short on a machine that is busy
    try:
        if address:
            ray.init(address=address, **quiet)
            return
        try:
            ray.init(address="auto", **quiet)
        except ConnectionError:
            ray.init(address="local", include_dashboard=False, _node_ip_address="127.0.0.1", **quiet)
    except Exception as error:  # Ray raises this very class where it could not start
        said = (str(error) or type(error).__name__).splitlines()[0]
        raise HostError(
            f"there is no Ray cluster at {address or 'this machine'}: {said}", do="ray start --head"
        ) from error


def _import_ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("Ray", "ray") from error
    return ray
