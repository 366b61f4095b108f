"""How wide trials run: units of cores go where the next one is worth most.

With index nu_i at one unit and speed-up s(k) at k, a unit more is worth nu_i (s(k + 1) - s(k)); for concave s the
greedy order is the optimal one. s(k) = k**e, with e learned from the study's own trials that have run at several
widths.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

PRIOR = 2.0
"""Pairs of runs at different widths that the prior exponent counts as."""
MARGIN = 1.1
"""A change must pay its restart by so much (HyperSched, SoCC 2019, resizes at the same margin)."""


@dataclass
class Scaling:
    """The exponent of the speed-up: ridge regression of log speed on log width within trials."""

    prior: float
    moment: float = 0.0
    weight: float = 0.0

    def add(self, width_ratio: float, speed_ratio: float) -> None:
        """A trial has run at two widths."""
        step = math.log(width_ratio)
        self.moment += step * math.log(speed_ratio)
        self.weight += step * step

    @property
    def exponent(self) -> float:
        unit = PRIOR * math.log(2.0) ** 2
        return min(1.0, max(0.0, (unit * self.prior + self.moment) / (unit + self.weight)))

    def speedup(self, units: int) -> float:
        return math.pow(units, self.exponent)


def spread(rates: Sequence[float], units: int, scaling: Scaling, *, widest: int) -> list[int]:
    """Units of each trial, in the order of `rates`: one each first, as far as there are; the rest by what they add."""
    given = [1 if place < units else 0 for place in range(len(rates))]
    left = units - sum(given)

    def gain(place: int, width: int) -> float:
        return -rates[place] * (scaling.speedup(width + 1) - scaling.speedup(width))

    heap = [(gain(place, 1), place) for place in range(len(rates)) if given[place] and widest > 1]
    heapq.heapify(heap)
    while left > 0 and heap:
        _, place = heapq.heappop(heap)
        given[place] += 1
        left -= 1
        if given[place] < widest:
            heapq.heappush(heap, (gain(place, given[place]), place))
    return given


def pays(now: int, then: int, scaling: Scaling, *, dwell_s: float, restart_s: float) -> bool:
    """Whether another width saves more than its restart within `dwell_s` seconds of training at the present one."""
    saved_frac = 1.0 - scaling.speedup(now) / scaling.speedup(then)
    return saved_frac * dwell_s > MARGIN * restart_s
