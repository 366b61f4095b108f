"""What one replay showed, as data; and the store that watches it without keeping the log."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from foresail.core import events as ev
from foresail.core.goal import Goal


class Record(Struct, frozen=True, kw_only=True):
    """One policy on one trace with one seed.

    Args:
        targets: Study seconds at which each target was reached, None where it was not.
        targets_at: The values of the targets.
        median: Median over the trace's configurations of the best value of each.
        regret: (study seconds, best value so far) at each improvement.
        total_s: Study seconds at the end.
        budget_s: Study seconds that were allowed.
        steps: Points that were trained, those of a failed attempt that were trained again included.
        configs: Configurations that were started.
        used_frac: Share of the workers' time in which they trained.
        restart_frac: Share of it that went into launches and restarts.
        deciding_s: Seconds of this machine that engine and policy took.
        end: How the study ended.
    """

    trace: str
    policy: str
    search: str
    seed: int
    workers: int
    targets: dict[str, float | None]
    targets_at: dict[str, float]
    median: float
    regret: tuple[tuple[float, float], ...]
    total_s: float
    budget_s: float
    steps: int
    configs: int
    attempts: int
    used_frac: float
    restart_frac: float
    deciding_s: float
    end: str


class Watch:
    """A store that keeps what a `Record` needs and lets the events go."""

    def __init__(self, goal: Goal, targets: Mapping[str, float]) -> None:
        self.goal, self.targets = goal, targets
        self.reached: dict[str, float | None] = dict.fromkeys(targets)
        self.improvements: list[tuple[float, float]] = []
        self.best: float | None = None
        self.trained_s = 0.0
        self.steps = 0
        self.attempts = 0

    def append(self, events: Sequence[ev.Event], *, durable: bool) -> None:
        for event in events:
            if type(event) is ev.PointReported:
                self.steps += 1
                self.trained_s += event.seconds
                value = event.metrics.get(self.goal.metric, math.nan)
                if self.goal.better(value, self.best):
                    self._improve(event.at_s, value)
            elif type(event) is ev.AttemptGranted:
                self.attempts += 1

    def _improve(self, at_s: float, value: float) -> None:
        self.best = value
        self.improvements.append((at_s, value))
        for name, target in self.targets.items():
            if self.reached[name] is None and not self.goal.better(target, value):
                self.reached[name] = at_s

    def read(self, after: int = 0) -> Iterator[tuple[int, ev.Event]]:
        return iter(())

    def close(self) -> None:
        return None
