"""What training costs, learned from the study's own trials: seconds of a step, of a start, of a restart.

Seconds of a step are those of `perf/speeds.py`, where every report of every trial counts: also a configuration that has
not run is foreseen. Part of a policy's index, folded from the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from foresail.core import events as ev
from foresail.core.view import Trial, View
from foresail.perf.speeds import Speeds


@dataclass
class Delay:
    """Mean seconds between a grant and the beginning of training."""

    total_s: float = 0.0
    count: int = 0

    def add(self, seconds: float) -> None:
        self.total_s, self.count = self.total_s + max(0.0, seconds), self.count + 1

    @property
    def mean_s(self) -> float:
        return self.total_s / self.count if self.count else 0.0


@dataclass
class Costs:
    """Speeds, and mean delays. `width`: cores that a trial has unless it is given more."""

    width: int = 1

    start: Delay = field(default_factory=Delay)
    restart: Delay = field(default_factory=Delay)
    speeds: Speeds = field(default_factory=Speeds)

    def observe(self, view: View, event: ev.PointReported, unit: Sequence[float]) -> None:
        """A point has been reported; the first one of an attempt tells what its start took."""
        self.width = view.spec.resources.cores_per_trial
        attempt = view.attempts[event.attempt]
        is_first = attempt.previous == attempt.resume_step
        if is_first:
            delay = self.start if attempt.number == 1 else self.restart
            delay.add(event.at_s - attempt.granted_s - event.seconds)
        self.speeds.add(
            attempt.trial,
            unit,
            event.seconds,
            steps=event.step - attempt.previous,
            width=len(attempt.cores),
            first=is_first,
        )

    def step_s(self, trial: Trial, unit: Sequence[float]) -> float:
        """Expected seconds of a step of the trial at that width; 1 while nothing has been measured."""
        seconds = self.speeds.expected(trial.id, unit, self.width)
        return 1.0 if seconds is None else seconds.median

    def start_s(self, trial: Trial) -> float:
        """Seconds until the trial would train, if it were granted cores now."""
        return self.restart.mean_s if trial.attempts else self.start.mean_s
