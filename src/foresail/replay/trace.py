"""A trace: what each configuration of a search space reached after each step, and how long it took.

A step is one report, as everywhere in Foresail: point n of a curve is step n, whatever unit its source counted in.
Where the source has no seconds, a report costs one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from foresail.core.goal import Mode
from foresail.core.spec import StudySpec
from foresail.core.words import AttemptId, Config
from foresail.executors.replay import Fate, Recording
from foresail.space import Space

TARGETS = ("top10pct", "top1pct", "best")


@dataclass(frozen=True)
class Trace:
    """Recorded curves.

    `configs` and `curves` go together; `numbers`: how the source numbers them. `targets`: by name, the value that a
    share of the configurations reaches.

    Where Foresail has recorded it: `study`, what was asked for; `workers`, how many trials ran at a time; `starts_s`,
    `restarts_s`, `leaves_s`, `kills_s`, `prompt` as in `Hardships`, measured; `fates`: the same of each attempt, if the
    rows are played in their order.
    """

    name: str
    metric: str
    mode: Mode
    space: Space
    configs: tuple[Config, ...]
    curves: tuple[Recording, ...]
    targets: Mapping[str, float]
    numbers: tuple[int, ...] = ()
    starts_s: tuple[float, ...] = ()
    restarts_s: tuple[float, ...] = ()
    leaves_s: tuple[float, ...] = ()
    kills_s: tuple[float, ...] = ()
    prompt: bool = True
    fates: Mapping[AttemptId, Fate] = field(default_factory=dict)
    study: StudySpec | None = None
    workers: int = 1

    @cached_property
    def row_of(self) -> Mapping[tuple[tuple[str, object], ...], int]:
        """The row of a configuration."""
        return {tuple(config.items()): row for row, config in enumerate(self.configs)}

    def record(self, config: Config) -> Recording:
        """What the configuration does."""
        return self.curves[self.row_of[tuple(config.items())]]

    @cached_property
    def total_s(self) -> float:
        """Seconds that all configurations need to their ends, one after the other."""
        return sum(curve.seconds[-1] for curve in self.curves if curve.seconds)

    @cached_property
    def max_steps(self) -> int:
        """Steps of the longest run."""
        return max(len(curve.steps) for curve in self.curves)

    @cached_property
    def median(self) -> float:
        """Median over the configurations of the best value of each."""
        finals = finals_of((curve.values for curve in self.curves), self.mode)
        return finals[len(finals) // 2]


def finals_of(values: Iterable[Sequence[float]], mode: Mode) -> list[float]:
    """Best value of each curve, best first; those without a finite value are at the end, infinitely bad."""
    sign = 1.0 if mode == "max" else -1.0
    best = [max((sign * v for v in curve if math.isfinite(v)), default=-math.inf) for curve in values]
    return [sign * value for value in sorted(best, reverse=True)]


def targets_of(values: Iterable[Sequence[float]], mode: Mode) -> dict[str, float]:
    """What at least 10 % and 1 % of all configurations reach, and the best; under 100 configurations 1 % is the best.

    >>> targets_of([[0.1 * i] for i in range(10)], "max")["best"]
    0.9
    """
    finals = finals_of(values, mode)
    last = {"top10pct": math.ceil(len(finals) / 10), "top1pct": math.ceil(len(finals) / 100), "best": 1}
    return {name: finals[max(1, rank) - 1] for name, rank in last.items()}


def metric_name(text: str) -> str:
    """A name that a goal takes for a metric that a trace calls by a sentence.

    >>> metric_name("test accuracy (fraction)")
    'test_accuracy_fraction'
    """
    name = re.sub(r"[^\w./@-]+", "_", text).strip("_")
    return name if re.match(r"[^\W\d]", name) else f"m_{name}"


def as_recording(values: Sequence[float], seconds: Sequence[float] | None) -> Recording:
    """A curve whose points are its steps."""
    steps = range(1, len(values) + 1)
    return Recording(steps, values, seconds if seconds is not None else [float(step) for step in steps])
