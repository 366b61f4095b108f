"""A virtual cluster: recorded curves in place of training, and a clock that jumps to the next thing that happens.

Behind the same port as the local executor, so the engine and the policies that run live are the ones that are
measured. What it costs to start, to restart and to be slow are parameters.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from foresail.core import events as ev
from foresail.core.commands import Command, DeleteCheckpoint, Kill, Launch, Yield
from foresail.core.words import AttemptId, Config, Outcome, TrialId


@dataclass(frozen=True, slots=True)
class Recording:
    """What one configuration does: values of the goal's metric at `steps`, `seconds` of training up to each.

    `max_steps`: what the training code would say at its start of how long it is; None if it says nothing.
    """

    steps: Sequence[int]
    values: Sequence[float]
    seconds: Sequence[float]
    max_steps: int | None = None


class VirtualClock:
    """Study time that only the replay executor moves."""

    def __init__(self) -> None:
        self.s = 0.0

    def now_s(self) -> float:
        return self.s


@dataclass(slots=True)
class Playing:
    """One attempt under way. `at`: index of the next point."""

    launch: Launch
    recording: Recording
    at: int
    clock_offset_s: float
    leaving: bool = False
    reported_s: float = -1.0


@dataclass
class ReplayExecutor:
    """Plays recordings.

    Args:
        record: the recording of a configuration.
        metric: name of the goal's metric.
        start_s: seconds from Launch to the beginning of the first step.
        restart_s: seconds more where an attempt continues a trial.
    """

    record: Callable[[Config], Recording]
    metric: str
    clock: VirtualClock
    start_s: float = 0.0
    restart_s: float = 0.0
    _queue: list[tuple[float, int, AttemptId]] = field(default_factory=list)
    _playing: dict[AttemptId, Playing] = field(default_factory=dict)
    _answers: list[ev.Fact] = field(default_factory=list)
    _order: int = 0
    _recordings: dict[TrialId, Recording] = field(default_factory=dict)

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
        if self._answers:
            answers, self._answers = self._answers, []
            return answers
        while self._queue:
            at_s, _, attempt = self._queue[0]
            if at_s > until_s:
                break
            heapq.heappop(self._queue)
            if attempt in self._playing:
                self.clock.s = at_s
                return self._play(self._playing[attempt])
        self.clock.s = max(self.clock.s, until_s)
        return ()

    # --- playing ---------------------------------------------------------------------------------------------

    def _launch(self, launch: Launch) -> None:
        if launch.attempt in self._playing:
            return
        recording = self._recordings.get(launch.trial)
        if recording is None:
            recording = self._recordings[launch.trial] = self.record(launch.config)
        at = 0
        while at < len(recording.steps) and recording.steps[at] <= launch.resume_step:
            at += 1
        done_s = recording.seconds[at - 1] if at else 0.0
        delay_s = self.start_s + (self.restart_s if launch.number > 1 else 0.0)
        self._playing[launch.attempt] = Playing(launch, recording, at, self.clock.s + delay_s - done_s)
        self._answers.append(ev.AttemptStarted(at_s=self.clock.s, attempt=launch.attempt))
        if launch.number == 1 and recording.max_steps is not None:
            horizon = ev.HorizonDeclared(at_s=self.clock.s, attempt=launch.attempt, max_steps=recording.max_steps)
            self._answers.append(horizon)
        self._schedule(self._playing[launch.attempt])

    def _schedule(self, playing: Playing) -> None:
        recording, at = playing.recording, playing.at
        at_s = playing.clock_offset_s + recording.seconds[at] if at < len(recording.steps) else self.clock.s
        at_s = max(at_s, self.clock.s)  # sums of seconds round; time does not fall
        self._order += 1
        heapq.heappush(self._queue, (at_s, self._order, playing.launch.attempt))

    def _play(self, playing: Playing) -> Sequence[ev.Fact]:
        recording, at = playing.recording, playing.at
        if at >= len(recording.steps):
            return self._finish(playing, Outcome.COMPLETED)
        playing.at = at + 1
        playing.reported_s = self.clock.s
        point = ev.PointReported(
            at_s=self.clock.s,
            attempt=playing.launch.attempt,
            step=recording.steps[at],
            metrics={self.metric: recording.values[at]},
            seconds=recording.seconds[at] - (recording.seconds[at - 1] if at else 0.0),
        )
        if playing.leaving:
            return [point, *self._finish(playing, Outcome.YIELDED)]
        self._schedule(playing)
        return (point,)

    def _ask(self, attempt: AttemptId) -> None:
        """Leave at the step boundary: now if the attempt has just reported, else after its next point."""
        playing = self._playing.get(attempt)
        if playing is None:
            return
        if playing.reported_s == self.clock.s:
            self._end(attempt, Outcome.YIELDED)
        else:
            playing.leaving = True

    def _end(self, attempt: AttemptId, outcome: Outcome) -> None:
        if attempt in self._playing:
            self._answers.extend(self._finish(self._playing[attempt], outcome))

    def _finish(self, playing: Playing, outcome: Outcome) -> list[ev.Fact]:
        attempt, now_s = playing.launch.attempt, self.clock.s
        del self._playing[attempt]
        facts: list[ev.Fact] = []
        if (
            outcome is Outcome.YIELDED
            and playing.at
            and playing.recording.steps[playing.at - 1] > playing.launch.resume_step
        ):
            step = playing.recording.steps[playing.at - 1]
            path = f"checkpoints/{playing.launch.trial}/step-{step}"
            facts.append(ev.CheckpointSaved(at_s=now_s, attempt=attempt, step=step, path=path))
        facts.append(ev.AttemptEnded(at_s=now_s, attempt=attempt, outcome=outcome))
        return facts
