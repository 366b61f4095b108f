"""A world that does its worst, seeded: processes that die, hang, lie and come late, behind the executor's port.

What it keeps as the real one does: a worker writes its words to a spool that outlives the driver, and a driver that
takes over reads each spool from its beginning. What it does on purpose: slow and failing launches; workers that
vanish, raise, run out of memory, report nothing, report what is not finite, are deaf to a wish to leave, or leave
without being asked; words that are delivered late and again, also those of attempts long over. Study time stands still
while no driver is at work; the world goes on.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import assert_never

import msgspec

from foresail.core import events as ev
from foresail.core.commands import Command, DeleteCheckpoint, Kill, Launch, Yield
from foresail.core.words import AttemptId, Outcome, TrialId

FATES = ("completes", "dies", "raises", "oom", "hangs", "mute", "stillborn", "leaves")
"""What becomes of an attempt if nobody interferes; `leaves`: yields though nobody asked."""


@dataclass(frozen=True, slots=True)
class Temper:
    """How bad this world is: chances, and seconds. `fate`: weight of each of `FATES`.

    `shared_fate`: workers die with the driver, as local processes do; else they go on and spool.
    """

    fate: tuple[float, ...] = (12.0, 2.0, 1.0, 0.5, 0.4, 0.4, 0.5, 0.2)
    deaf: float = 0.1
    diverging: float = 0.08
    saving: float = 0.8
    echo: float = 0.1
    late_s: float = 2.0
    shared_fate: bool = True

    @staticmethod
    def calm() -> Temper:
        """Nothing goes wrong."""
        return Temper(fate=(1.0, *(0.0,) * 7), deaf=0.0, diverging=0.0, saving=1.0, echo=0.0, late_s=0.0)


@dataclass(frozen=True, slots=True)
class Nature:
    """What a trial is like in each of its attempts. `saves_every` 0: it has no checkpoints."""

    steps: int
    step_s: float
    final: float
    tau: float
    diverges_at: int
    saves_every: int
    declares: bool
    every: int

    def value(self, step: int, attempt: int) -> float:
        """Attempts differ a little, as kernels that are not deterministic make them."""
        if step == self.diverges_at:
            return math.nan if step % 2 else math.inf
        return self.final * (1.0 - math.exp(-step / self.tau)) + 0.01 * math.sin(7.0 * step + attempt)


@dataclass(slots=True)
class Worker:
    """A process. `spool`: its words so far, outliving it; `heard`: how many the present driver was told."""

    launch: Launch
    nature: Nature
    fate: str
    until: int  # step after which `fate` strikes
    deaf: bool
    step: int
    spool: list[ev.Fact] = field(default_factory=list)
    heard: int = 0
    watched: bool = True
    alive: bool = True
    asked: bool = False
    killed: bool = False


@dataclass
class World:
    """Executor and clock of a study, of one driver after the other.

    Args:
        seed: of all that happens.
        metric: the goal's.
        temper: how bad it is.

    `echoes`, `late`: words that were told twice, and those that came a second late or more. `files`: checkpoints on
    disk, with their steps. `crowded`, `misled`: what must not happen to a worker and did.
    """

    seed: int
    metric: str
    temper: Temper = Temper()
    t: float = 0.0
    files: dict[str, int] = field(default_factory=dict)
    workers: dict[AttemptId, Worker] = field(default_factory=dict)
    echoes: int = 0
    late: int = 0
    crowded: str = ""
    misled: str = ""
    _since_s: float = 0.0
    _offset_s: float = 0.0
    _queue: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _order: int = 0
    _inbox: list[ev.Fact] = field(default_factory=list)
    _told: list[ev.Fact] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = Random(f"world {self.seed}")

    # --- the clock -------------------------------------------------------------------------------------------

    def now_s(self) -> float:
        return max(self._since_s, self.t - self._offset_s)

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Let `action` happen so many seconds from now."""
        self._order += 1
        heapq.heappush(self._queue, (self.t + seconds, self._order, action))

    def _pass_until(self, t: float) -> None:
        while self._queue and self._queue[0][0] <= t:
            at, _, action = heapq.heappop(self._queue)
            self.t = max(self.t, at)
            action()
        self.t = max(self.t, t)

    # --- drivers come and go ---------------------------------------------------------------------------------

    def driver_died(self) -> None:
        """What was under way to the driver is lost, the spools are not; some time passes."""
        self._inbox.clear()
        for worker in self.workers.values():
            worker.watched, worker.heard = False, 0
            if worker.alive and self.temper.shared_fate:
                self._die(worker, None)
        self._pass_until(self.t + self.rng.choice((0.0, 1.0, 20.0)))

    def driver_comes(self, now_s: float) -> None:
        """Study time goes on from where the log ends."""
        self._since_s, self._offset_s = now_s, self.t - now_s

    # --- the executor's port ---------------------------------------------------------------------------------

    def start(self) -> None:
        return None

    def close(self, grace_s: float = 0.0) -> None:
        for worker in self.workers.values():
            if worker.alive:
                self._die(worker, None)

    def adopt(self, attempts: Iterable[AttemptId]) -> Sequence[ev.Fact]:
        facts: list[ev.Fact] = []
        for attempt in attempts:
            worker = self.workers.get(attempt)
            if worker is None:
                facts.append(ev.AttemptEnded(at_s=0.0, attempt=attempt, outcome=Outcome.LOST, detail="no trace"))
                continue
            worker.watched, worker.heard = True, len(worker.spool)
            facts += worker.spool
            if not worker.alive and not (worker.spool and isinstance(worker.spool[-1], ev.AttemptEnded)):
                facts.append(ev.AttemptEnded(at_s=0.0, attempt=attempt, outcome=Outcome.LOST, detail="with its driver"))
        return self._stamped(facts)

    def perform(self, command: Command) -> None:
        match command:
            case Launch():
                self._launch(command)
            case Yield(attempt=attempt, grace_s=grace_s):
                self._ask(attempt, grace_s)
            case Kill(attempt=attempt, grace_s=grace_s):
                self._kill(attempt, grace_s)
            case DeleteCheckpoint(path=path):
                self.files.pop(path, None)
                self._inbox.append(ev.CheckpointDeleted(at_s=0.0, path=path))
            case _:
                assert_never(command)

    def poll(self, until_s: float) -> Sequence[ev.Fact]:
        until = until_s + self._offset_s
        while not self._inbox and self._queue and self._queue[0][0] <= until:
            self._pass_until(self._queue[0][0])
        if not self._inbox:
            self.t, self._since_s = max(self.t, until), max(self._since_s, until_s)
            return ()
        facts, self._inbox = self._inbox, []
        self._told += facts
        if self.rng.random() < self.temper.echo:
            facts.append(self.rng.choice(self._told))
            self.echoes += 1
        return self._stamped(facts)

    def _stamped(self, facts: Iterable[ev.Fact]) -> list[ev.Fact]:
        return [msgspec.structs.replace(fact, at_s=self.now_s()) for fact in facts]

    # --- lives -----------------------------------------------------------------------------------------------

    def nature_of(self, trial: TrialId) -> Nature:
        draw = Random(f"nature {self.seed} {trial}")
        steps = draw.choice((1, 2, 5, 9, 12))
        return Nature(
            steps=steps,
            step_s=draw.choice((0.1, 1.0, 1.0 / 3.0, 4.0)),
            final=draw.uniform(0.2, 1.0),
            tau=draw.uniform(1.0, 8.0),
            diverges_at=draw.randint(1, steps) if draw.random() < self.temper.diverging else 0,
            saves_every=draw.choice((1, 1, 3, 100)) if draw.random() < self.temper.saving else 0,
            declares=draw.random() < 0.7,
            every=draw.choice((1, 1, 1, 2)),
        )

    def _launch(self, launch: Launch) -> None:
        if launch.attempt in self.workers:
            return
        for other in self.workers.values():
            if other.alive and set(other.launch.cores) & set(launch.cores):
                self.crowded = f"{launch.attempt} was launched on {launch.cores} beside {other.launch.attempt}"
        if launch.checkpoint and self.files.get(launch.checkpoint) != launch.resume_step:
            self.misled = f"{launch.attempt} resumes at {launch.resume_step} from {launch.checkpoint!r}, not there"
        nature = self.nature_of(launch.trial)
        worker = self.workers[launch.attempt] = Worker(
            launch,
            nature,
            fate=self.rng.choices(FATES, self.temper.fate)[0],
            until=launch.resume_step + self.rng.randint(0, nature.steps),
            deaf=self.rng.random() < self.temper.deaf,
            step=launch.resume_step,
        )
        self.after(self.rng.choice((0.0, 0.1, 3.0)), lambda: self._born(worker))

    def _born(self, worker: Worker) -> None:
        if not worker.alive:
            return
        if worker.fate == "stillborn":
            self._die(worker, Outcome.FAILED)
            return
        attempt = worker.launch.attempt
        self._say(worker, ev.AttemptStarted(at_s=0.0, attempt=attempt, pid=1))
        if worker.nature.declares:
            self._say(worker, ev.HorizonDeclared(at_s=0.0, attempt=attempt, max_steps=worker.nature.steps))
        self._train_on(worker)

    def _train_on(self, worker: Worker) -> None:
        self.after(worker.nature.step_s * self.rng.choice((1.0, 1.0, 1.5)), lambda: self._boundary(worker))

    def _boundary(self, worker: Worker) -> None:
        """A step is done."""
        if not worker.alive:
            return
        nature = worker.nature
        if worker.step >= nature.steps:
            self._die(worker, Outcome.COMPLETED)
        elif self._strikes(worker):
            return
        else:
            worker.step += 1
            if worker.fate != "mute":
                self._report(worker)
            if worker.asked and not worker.deaf:
                self._save(worker)
                self._die(worker, Outcome.YIELDED)
                return
            if nature.saves_every and worker.step % nature.saves_every == 0:
                self._save(worker)
            self._train_on(worker)

    def _strikes(self, worker: Worker) -> bool:
        if worker.step < worker.until or worker.fate in ("completes", "mute"):
            return False
        match worker.fate:
            case "dies":
                self._die(worker, Outcome.LOST)
            case "raises":
                self._die(worker, Outcome.FAILED)
            case "oom":
                self._die(worker, Outcome.OUT_OF_MEMORY)
            case "leaves":
                self._die(worker, Outcome.YIELDED)
        return True  # "hangs" hangs

    def _report(self, worker: Worker) -> None:
        step, nature = worker.step, worker.nature
        metrics = {"other": float(step)}
        if step % nature.every == 0 or step == nature.steps:
            metrics[self.metric] = nature.value(step, worker.launch.number)
        point = ev.PointReported(
            at_s=0.0, attempt=worker.launch.attempt, step=step, metrics=metrics, seconds=nature.step_s
        )
        self._say(worker, point)

    def _save(self, worker: Worker) -> None:
        if worker.nature.saves_every == 0 or worker.step <= worker.launch.resume_step:
            return
        attempt = worker.launch.attempt
        path = f"{attempt}/step-{worker.step}"
        if path not in self.files:
            self.files[path] = worker.step
            size = 10 + worker.step
            self._say(worker, ev.CheckpointSaved(at_s=0.0, attempt=attempt, step=worker.step, path=path, bytes=size))

    def _ask(self, attempt: AttemptId, grace_s: float) -> None:
        worker = self.workers.get(attempt)
        if worker is None or not worker.alive or worker.asked:
            return
        worker.asked = True
        self.after(grace_s, lambda: self._die(worker, Outcome.KILLED))

    def _kill(self, attempt: AttemptId, grace_s: float) -> None:
        worker = self.workers.get(attempt)
        if worker is None or not worker.alive or worker.killed:
            return
        worker.asked = worker.killed = True
        self.after(self.rng.choice((0.0, 0.5, grace_s)), lambda: self._die(worker, Outcome.KILLED))

    def _die(self, worker: Worker, outcome: Outcome | None) -> None:
        """`outcome` None: nobody saw it."""
        if not worker.alive:
            return
        worker.alive = False
        if outcome is not None:
            detail = "" if outcome in (Outcome.COMPLETED, Outcome.YIELDED) else f"{worker.fate} at step {worker.step}"
            self._say(worker, ev.AttemptEnded(at_s=0.0, attempt=worker.launch.attempt, outcome=outcome, detail=detail))

    # --- words -----------------------------------------------------------------------------------------------

    def _say(self, worker: Worker, fact: ev.Fact) -> None:
        """To the spool now, to the driver when the world likes."""
        worker.spool.append(fact)
        upto = len(worker.spool)
        late_s = self.rng.uniform(0.0, self.temper.late_s)
        self.late += late_s >= 1.0
        self.after(late_s, lambda: self._deliver(worker, upto))

    def _deliver(self, worker: Worker, upto: int) -> None:
        if worker.watched and worker.heard < upto:
            self._inbox += worker.spool[worker.heard : upto]
            worker.heard = upto
