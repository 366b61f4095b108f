"""How wide trials run: units of cores go where the next one is worth most.

With index nu_i at one unit and speed-up s(k) at k, a unit more is worth p_i nu_i (s(k + 1) - s(k)), p_i being the
chance that the trial gets there; for concave s the greedy order is the optimal one. s(k) = k**e, with e learned from
the study's own trials that have run at several widths.
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

    def speedup(self, units: float) -> float:
        return math.pow(units, self.exponent)


@dataclass(frozen=True, slots=True)
class Seat:
    """A trial that may have units. `rate`: its index at one unit; `p`: chance that it gets there: what a wider
    run saves is saved only then; `now`: units that it holds; `least`: units that it has in any case; `dwell_s`: seconds
    of training in which a change of width must pay its restart, to its next look: then all is weighed again."""

    rate: float
    p: float = 1.0
    now: int = 0
    least: int = 0
    dwell_s: float = 0.0


def spread(
    seats: Sequence[Seat], units: int, scaling: Scaling, *, widest: int, most: int, restart_s: float = 0.0
) -> list[int]:
    """Units of each seat: each unit where it adds most, be it the first of a trial or one more of another's.

    Args:
        seats: In the order in which equal ones are served.
        units: To be shared out.
        scaling: The speed-up.
        widest: Units of a trial at most.
        most: Trials at most.
        restart_s: What it takes a trial that runs to have another width.
    """
    limits = [widest] * len(seats)
    while True:
        given = _greedy(seats, limits, units, scaling, most, restart_s)
        vain = [
            place
            for place, (seat, width) in enumerate(zip(seats, given, strict=True))
            if 0 < seat.now < width and not pays(seat.now, width, scaling, dwell_s=seat.dwell_s, restart_s=restart_s)
        ]
        if not vain:
            return given
        for place in vain:
            limits[place] = seats[place].now


def _greedy(
    seats: Sequence[Seat], limits: Sequence[int], units: int, scaling: Scaling, most: int, restart_s: float
) -> list[int]:
    given = [seat.least for seat in seats]
    left, held = units - sum(given), sum(1 for width in given if width)

    def entry(place: int) -> tuple[float, int, int]:
        seat, width = seats[place], given[place]
        gain = seat.rate * (seat.p * (scaling.speedup(width + 1) - scaling.speedup(width)) if width else 1.0)
        if width < seat.now > 1:  # to be made narrower costs a restart too
            gain *= 1.0 + min(1.0, restart_s / max(seat.dwell_s, 1e-9))
        return -gain, width, place

    heap = [entry(place) for place in range(len(seats)) if given[place] < limits[place]]
    heapq.heapify(heap)
    while left > 0 and heap:
        _, width, place = heapq.heappop(heap)
        if width == 0 and held == most:
            continue
        given[place], left, held = width + 1, left - 1, held + (width == 0)
        if given[place] < limits[place]:
            heapq.heappush(heap, entry(place))
    return given


def pays(now: int, then: int, scaling: Scaling, *, dwell_s: float, restart_s: float) -> bool:
    """Whether another width saves more than its restart within `dwell_s` seconds of training at the present one."""
    saved_frac = 1.0 - scaling.speedup(now) / scaling.speedup(then)
    return saved_frac * dwell_s > MARGIN * restart_s
