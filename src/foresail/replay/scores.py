"""From records to a comparison: speed-up over the reference policy, with its uncertainty; regret; use of resources.

The speed-up to a target is time of the reference over time of the policy, in the same trace with the same seed; a run
that does not get there counts with its whole budget. Means are geometric, over seeds, then over traces.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

import numpy as np
from msgspec import Struct

from foresail.replay.record import Record

REFERENCE = "random"
RESAMPLES = 2000
"""Bootstrap draws: the 5 % and 95 % points then move by about 1 % of the interval's width."""


class Speedup(Struct, frozen=True, kw_only=True):
    """`low`, `high`: 90 % bootstrap interval, over traces and over seeds in them. `censored_frac`: never got there."""

    mean: float
    low: float
    high: float
    censored_frac: float


class Use(Struct, frozen=True, kw_only=True):
    """Means over records: shares of the workers' time and of the wall clock, and counts a run."""

    used_frac: float
    restart_frac: float
    deciding_frac: float
    deciding_us_a_point: float
    steps: float
    configs: float


Key = tuple[str, int]


def by_policy(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Records of each policy, policies in the order of their first record."""
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(record.policy, []).append(record)
    return found


def time_to(record: Record, target: str) -> float:
    """Study seconds to the target; the budget where it was not reached."""
    reached = record.targets[target]
    return record.budget_s if reached is None else min(reached, record.budget_s)


def speedup(records: Sequence[Record], reference: Sequence[Record], target: str) -> Speedup | None:
    """Of one policy over the reference; None where they share no run."""
    base: Mapping[Key, float] = {(r.trace, r.seed): time_to(r, target) for r in reference}
    ratios: dict[str, list[float]] = {}
    censored = []
    for record in records:
        if (record.trace, record.seed) not in base:
            continue
        censored.append(record.targets[target] is None)
        own = max(time_to(record, target), 1e-9)
        ratios.setdefault(record.trace, []).append(math.log(max(base[record.trace, record.seed], 1e-9) / own))
    if not ratios:
        return None
    traces = [np.array(values) for values in ratios.values()]
    mean = float(np.mean([values.mean() for values in traces]))
    low, high = np.quantile(_resampled(traces), (0.05, 0.95))
    share = float(np.mean(censored))
    return Speedup(mean=math.exp(mean), low=math.exp(low), high=math.exp(high), censored_frac=share)


def _resampled(traces: Sequence[np.ndarray[tuple[int], np.dtype[np.float64]]]) -> list[float]:
    rng = np.random.default_rng(0)
    means = np.empty((len(traces), RESAMPLES))
    for at, values in enumerate(traces):
        means[at] = values[rng.integers(len(values), size=(RESAMPLES, len(values)))].mean(axis=1)
    picks = rng.integers(len(traces), size=(RESAMPLES, len(traces)))
    found: list[float] = means[picks, np.arange(RESAMPLES)[:, None]].mean(axis=1).tolist()
    return found


def regret_at(record: Record, frac: float) -> float:
    """Share of the way from the median configuration to the top 1 % that is left at `frac` of the budget, in [0, 1]."""
    best = None
    for at_s, value in record.regret:
        if at_s > frac * record.budget_s:
            break
        best = value
    if best is None:
        return 1.0
    goal, start = record.targets_at["top1pct"], record.median
    span = goal - start
    return min(1.0, max(0.0, (goal - best) / span)) if span else 0.0


def use(records: Sequence[Record]) -> Use:
    """What the runs of a policy cost."""
    return Use(
        used_frac=fmean(r.used_frac for r in records),
        restart_frac=fmean(r.restart_frac for r in records),
        deciding_frac=fmean(r.deciding_s / max(r.total_s, 1e-9) for r in records),
        deciding_us_a_point=1e6 * sum(r.deciding_s for r in records) / max(1, sum(r.steps for r in records)),
        steps=fmean(r.steps for r in records),
        configs=fmean(r.configs for r in records),
    )
