"""A lens for learning curves that is sharp around the target: y -> asinh((y - target) / width).

Its width is a twentieth of the way from where trials start to the target. What is far from the target is drawn
together logarithmically, so the difference between 0.95 and 0.98 counts when the target is 0.98, and the difference
between 0.2 and 0.4 counts little. The map is monotone: a chance to reach a value is the same chance on both sides of
it. What it is worth, and where it is not: docs/decisions/0002-focus-on-the-target.md.
"""

from __future__ import annotations

import math
from bisect import insort
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

SHARP = 0.05
"""Width of the sharp zone, as a share of the way from where trials start to the target."""
FEWEST_STARTS = 3
"""So many trials must have started before where they start is known."""
STALE = 0.5
"""A lens is kept while the target is within so many widths of its centre."""

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Focus:
    """The lens: linear near `centre`, logarithmic far from it. `width` in units of the metric."""

    centre: float
    width: float

    def of(self, values: Array | float) -> Array:
        return np.asarray(np.arcsinh((np.asarray(values, float) - self.centre) / self.width))

    def back(self, seen: Array | float) -> Array:
        """Inverse of `of`."""
        return np.asarray(self.centre + self.width * np.sinh(np.clip(seen, -300.0, 300.0)))


@dataclass
class Starts:
    """Where trials start: their first values, sorted."""

    values: list[float] = field(default_factory=list)

    def add(self, value: float) -> None:
        if math.isfinite(value):
            insort(self.values, value)

    def focus(self, target: float, now: Focus | None) -> Focus:
        """The lens for a target: `now` while it fits. Widths are powers of two, so that it is seldom changed."""
        known = len(self.values) >= FEWEST_STARTS
        start = self.values[len(self.values) // 2] if known else target - 1.0
        way = max(abs(target - start), 1e-6 * max(abs(target), 1e-6))
        width = 2.0 ** round(math.log2(SHARP * way))
        if now is not None and abs(target - now.centre) <= STALE * now.width and width in (now.width, now.width / 2):
            return now
        return Focus(target, width)
