"""A virtual cluster: recorded curves in place of training, and a clock that jumps to the next thing that happens.

Behind the same port as the local executor, so the engine and the policies that run live are the ones that are
measured. What it costs to start, to restart, to be slow and to fail are parameters (`Hardships`); so are slots that
come and go (`changes`).
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from msgspec.structs import replace

from foresail.core import events as ev
from foresail.core.commands import Command, DeleteCheckpoint, Kill, Launch, Yield
from foresail.core.words import AttemptId, Config, Outcome


@dataclass(frozen=True, slots=True)
class Recording:
    """What one configuration does: values of the goal's metric at `steps`, `seconds` of training up to each.

    `max_steps`: what the training code would say at its start of how long it is; None if it says nothing.
    """

    steps: Sequence[int]
    values: Sequence[float]
    seconds: Sequence[float]
    max_steps: int | None = None


@dataclass(frozen=True, slots=True)
class Hardships:
    """What a real cluster does to training; all of it drawn by the seed, the attempt and nothing else.

    Args:
        start_s: Seconds from Launch to the beginning of the first step: one number, or measured ones to draw from.
        restart_s: Seconds more where an attempt continues a trial; likewise.
        leave_s: Seconds from the last thing that an attempt does until its cores are free; likewise.
        kill_s: The same from a kill.
        prompt: Whether an attempt that has just reported can leave at once; else it does one more step, as a training
            loop does that hears of the wish only after it went on.
        straggler_frac: Share of attempts that are slow.
        straggler_factor: How many times longer their steps take.
        failures_per_hour: Rate at which a running attempt fails; it loses what it did since its last checkpoint.
        checkpoint_steps: Points between two checkpoints of a running attempt; 0: only when it is asked to leave.
        fates: What has happened to attempts, where that is known; the others are drawn.
        speedup: How many times faster a trial is on so many cores; None: cores change nothing.
        seed: Of the draws.
    """

    start_s: float | Sequence[float] = 0.0
    restart_s: float | Sequence[float] = 0.0
    leave_s: float | Sequence[float] = 0.0
    kill_s: float | Sequence[float] = 0.0
    prompt: bool = True
    straggler_frac: float = 0.0
    straggler_factor: float = 2.0
    failures_per_hour: float = 0.0
    checkpoint_steps: int = 0
    fates: Mapping[AttemptId, Fate] = field(default_factory=dict)
    speedup: Callable[[int], float] | None = None
    seed: int = 0

    @property
    def _is_plain(self) -> bool:
        delays = (self.start_s, self.restart_s, self.leave_s, self.kill_s)
        return all(isinstance(delay, int | float) for delay in delays) and not (
            self.straggler_frac or self.failures_per_hour
        )

    def draw(self, launch: Launch) -> Fate:
        """What will happen to an attempt."""
        if launch.attempt in self.fates:
            return self.fates[launch.attempt]
        faster = self.speedup(len(launch.cores)) if self.speedup is not None else 1.0
        if self._is_plain:
            delay_s = self.start_s + (self.restart_s if launch.number > 1 else 0.0)  # type: ignore[operator]
            return Fate(delay_s, 1.0 / faster, math.inf, self.leave_s, self.kill_s)  # type: ignore[arg-type]
        rng = Random(f"{self.seed}/{launch.attempt}")
        delays = (self.start_s, self.restart_s, self.leave_s, self.kill_s)
        delay_s, restart_s, leave_s, kill_s = (_one_of(seconds, rng) for seconds in delays)
        slow = self.straggler_factor if rng.random() < self.straggler_frac else 1.0
        fails_s = rng.expovariate(self.failures_per_hour / 3600.0) if self.failures_per_hour else math.inf
        return Fate(delay_s + (restart_s if launch.number > 1 else 0.0), slow / faster, fails_s, leave_s, kill_s)


@dataclass(frozen=True, slots=True)
class Fate:
    """Of one attempt: its delay, how its seconds stretch, when it fails, and how long it takes to be gone."""

    delay_s: float
    stretch: float
    fails_s: float
    leave_s: float
    kill_s: float


def _one_of(seconds: float | Sequence[float], rng: Random) -> float:
    return float(seconds) if isinstance(seconds, int | float) else float(rng.choice(seconds))


class VirtualClock:
    """Study time that only the replay executor moves."""

    def __init__(self) -> None:
        self.s = 0.0

    def now_s(self) -> float:
        return self.s


@dataclass(slots=True)
class Playing:
    """One attempt under way.

    `at`: index of the next point; `begins_s`: when its recording would have begun; `order`: number of its valid place
    in the queue; `outcome`: of one that has stopped and is not gone yet.
    """

    launch: Launch
    recording: Recording
    at: int
    begins_s: float
    stretch: float
    fails_s: float
    leave_s: float
    kill_s: float
    kept_step: int
    order: int = 0
    outcome: Outcome | None = None
    leaving: bool = False
    reported_s: float = -1.0

    def due_s(self) -> float:
        """When the next point comes."""
        return self.begins_s + self.recording.seconds[self.at] * self.stretch


@dataclass
class ReplayExecutor:
    """Plays recordings.

    Args:
        record: the recording of a configuration; asked at each launch.
        metric: name of the goal's metric.
        hardships: what goes wrong.
        changes: (study seconds, cores from then on), rising; attempts on cores that go are lost.
        deciding_s: seconds that engine and policy have taken so far; where given, the clock waits for them.
    """

    record: Callable[[Config], Recording]
    metric: str
    clock: VirtualClock
    hardships: Hardships = Hardships()
    changes: Sequence[tuple[float, tuple[int, ...]]] = ()
    deciding_s: Callable[[], float] | None = None
    waited_s: float = 0.0
    _queue: list[tuple[float, int, AttemptId]] = field(default_factory=list)
    _playing: dict[AttemptId, Playing] = field(default_factory=dict)
    _answers: list[ev.Fact] = field(default_factory=list)
    _order: int = 0
    _changed: int = 0
    _charged_s: float = 0.0

    def start(self) -> None:
        return None

    def close(self, grace_s: float = 0.0) -> None:
        self._playing.clear()
        self._queue.clear()

    def adopt(self, attempts: Iterable[AttemptId]) -> Sequence[ev.Fact]:
        now_s = self.clock.s
        return [
            ev.AttemptEnded(at_s=now_s, attempt=a, outcome=Outcome.LOST) for a in attempts if a not in self._playing
        ]

    def perform(self, command: Command) -> None:
        match command:
            case Launch():
                self._launch(command)
            case Yield(attempt=attempt):
                self._ask(attempt)
            case Kill(attempt=attempt):
                self._end(attempt, Outcome.KILLED)
            case DeleteCheckpoint(path=path):
                self._answers.append(ev.CheckpointDeleted(at_s=self.clock.s, path=path))

    def poll(self, until_s: float) -> Sequence[ev.Fact]:
        self._charge()
        if self._answers:
            answers, self._answers = self._answers, []
            return answers
        change_s = self.changes[self._changed][0] if self._changed < len(self.changes) else math.inf
        while self._queue and self._queue[0][0] <= min(until_s, change_s):
            at_s, order, attempt = heapq.heappop(self._queue)
            playing = self._playing.get(attempt)
            if playing is not None and playing.order == order:
                self.clock.s = max(self.clock.s, at_s)
                return self._play(playing)
        if change_s <= until_s:
            self.clock.s = max(self.clock.s, change_s)
            return self._change()
        self.clock.s = max(self.clock.s, until_s)
        return ()

    def _charge(self) -> None:
        """Virtual time passes while the engine thinks; who trains goes on training."""
        if self.deciding_s is not None:
            spent_s = self.deciding_s()
            self.clock.s += spent_s - self._charged_s
            self._charged_s = spent_s
            self._answers = [_not_before(self.clock.s, fact) for fact in self._answers]

    # --- playing ---------------------------------------------------------------------------------------------

    def _launch(self, launch: Launch) -> None:
        if launch.attempt in self._playing:
            return
        recording = self.record(launch.config)
        at = bisect_right(recording.steps, launch.resume_step) if launch.resume_step else 0
        done_s = recording.seconds[at - 1] if at else 0.0
        fate = self.hardships.draw(launch)
        begins_s = self.clock.s + fate.delay_s - done_s * fate.stretch
        self.waited_s += fate.delay_s
        fails_s = self.clock.s + fate.fails_s
        playing = Playing(
            launch, recording, at, begins_s, fate.stretch, fails_s, fate.leave_s, fate.kill_s, launch.resume_step
        )
        self._playing[launch.attempt] = playing
        self._answers.append(ev.AttemptStarted(at_s=self.clock.s, attempt=launch.attempt))
        if launch.number == 1 and recording.max_steps is not None:
            horizon = ev.HorizonDeclared(at_s=self.clock.s, attempt=launch.attempt, max_steps=recording.max_steps)
            self._answers.append(horizon)
        self._schedule(playing)

    def _schedule(self, playing: Playing) -> None:
        at_s = playing.due_s() if playing.at < len(playing.recording.steps) else self.clock.s
        self._queue_up(
            playing, max(min(at_s, playing.fails_s), self.clock.s)
        )  # sums of seconds round, time does not fall

    def _queue_up(self, playing: Playing, at_s: float) -> None:
        self._order = playing.order = self._order + 1
        heapq.heappush(self._queue, (at_s, self._order, playing.launch.attempt))

    def _play(self, playing: Playing) -> Sequence[ev.Fact]:
        recording, at = playing.recording, playing.at
        if playing.outcome is not None:
            return self._gone(playing, playing.outcome)
        if at >= len(recording.steps):
            return self._finish(playing, Outcome.COMPLETED)
        if playing.fails_s < playing.due_s():
            return self._finish(playing, Outcome.LOST)
        playing.at = at + 1
        playing.reported_s = self.clock.s
        seconds = recording.seconds[at] - (recording.seconds[at - 1] if at else 0.0)
        point = ev.PointReported(
            at_s=self.clock.s,
            attempt=playing.launch.attempt,
            step=recording.steps[at],
            metrics={self.metric: recording.values[at]},
            seconds=seconds * playing.stretch,
        )
        if playing.leaving:
            return [point, *self._finish(playing, Outcome.YIELDED)]
        self._schedule(playing)
        every = self.hardships.checkpoint_steps
        if every and playing.at % every == 0:
            return [point, self._save(playing)]
        return (point,)

    def _save(self, playing: Playing) -> ev.CheckpointSaved:
        playing.kept_step = step = playing.recording.steps[playing.at - 1]
        path = f"checkpoints/{playing.launch.trial}/step-{step}-{playing.launch.number}"
        return ev.CheckpointSaved(at_s=self.clock.s, attempt=playing.launch.attempt, step=step, path=path)

    def _ask(self, attempt: AttemptId) -> None:
        """Leave at the step boundary: now if the attempt has just reported, else after its next point."""
        playing = self._playing.get(attempt)
        if playing is None or playing.outcome is not None:
            return
        if playing.reported_s == self.clock.s and (self.hardships.prompt or playing.at >= len(playing.recording.steps)):
            self._end(attempt, Outcome.YIELDED)
        else:
            playing.leaving = True

    def _end(self, attempt: AttemptId, outcome: Outcome) -> None:
        if attempt in self._playing and self._playing[attempt].outcome is None:
            self._answers.extend(self._finish(self._playing[attempt], outcome))

    def _finish(self, playing: Playing, outcome: Outcome) -> list[ev.Fact]:
        """It has stopped; its cores are free when it is gone."""
        facts: list[ev.Fact] = []
        if outcome is Outcome.YIELDED and playing.at and playing.recording.steps[playing.at - 1] > playing.kept_step:
            facts.append(self._save(playing))
        gone_s = playing.kill_s if outcome is Outcome.KILLED else playing.leave_s
        if gone_s <= 0.0 or outcome is Outcome.LOST:
            return [*facts, *self._gone(playing, outcome)]
        playing.outcome = outcome
        self._queue_up(playing, self.clock.s + gone_s)
        return facts

    def _gone(self, playing: Playing, outcome: Outcome) -> list[ev.Fact]:
        attempt = playing.launch.attempt
        del self._playing[attempt]
        return [ev.AttemptEnded(at_s=self.clock.s, attempt=attempt, outcome=outcome)]

    def _change(self) -> Sequence[ev.Fact]:
        """Cores have come or gone."""
        _, cores = self.changes[self._changed]
        self._changed += 1
        now_s = self.clock.s
        facts: list[ev.Fact] = [ev.DriverStarted(at_s=now_s, cores=cores)]
        gone = [p for p in self._playing.values() if not set(p.launch.cores) <= set(cores)]
        for playing in gone:
            facts += self._finish(playing, Outcome.LOST)
        return [*facts, ev.Ticked(at_s=now_s)]


def _not_before(now_s: float, fact: ev.Fact) -> ev.Fact:
    return fact if fact.at_s >= now_s else replace(fact, at_s=now_s)
