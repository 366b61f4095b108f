"""One monotone map from any metric to the internal scale, where higher is better.

The map is anchored on two values of the study: where trials start (median first value) and the best
value seen. Between them, and above, it is a straight line; below the start it is a logarithm, so that a
divergence to 1e30 stays on the page. Anchors move with the metric, so shifting or scaling the metric
shifts or scales every forecast. Letters: C trials, T observed points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from foresail.errors import CallerError, nearest

Floats = NDArray[Any]
Mode = Literal["max", "min"]

START, SPAN = 0.2, 0.4  # where the start lands, and how far above it the best value seen lands
FLOOR = -0.5  # nothing is worse than this: 5.75 spans below the best, or not finite


def sign_of(mode: str) -> float:
    """+1.0 where more is better, -1.0 where less is.

    Raises:
        CallerError: `mode` is neither "max" nor "min".
    """
    if mode not in ("max", "min"):
        raise CallerError(f"mode is {mode!r}", allowed=nearest(mode, ("max", "min")))
    return 1.0 if mode == "max" else -1.0


@dataclass(frozen=True, slots=True)
class Scale:
    """The map of one study, or of many at once (then both fields broadcast against the values).

    `best` and `width` are in oriented units (the metric times its sign).
    """

    best: float | Floats
    width: float | Floats

    def inside(self, oriented: Floats) -> Floats:
        """Internal values of oriented ones, same shape; what is not finite lands on the floor."""
        with np.errstate(over="ignore", invalid="ignore"):
            gap = (self.best - oriented) / self.width
        gap = np.where(np.isfinite(gap), gap, 1e30)
        below = START - SPAN * np.log(np.maximum(gap, 1.0))
        inner = np.where(gap > 1.0, below, START + SPAN * (1.0 - gap))
        return np.maximum(inner, FLOOR)

    def outside(self, inner: Floats) -> Floats:
        """Oriented values of internal ones: the inverse, above the floor."""
        inner = np.maximum(inner, FLOOR)
        deep = np.minimum(inner, START)
        gap = np.where(inner < START, np.exp((START - deep) / SPAN), 1.0 - (inner - START) / SPAN)
        return self.best - self.width * gap


@dataclass(frozen=True, slots=True)
class Ends:
    """First, latest, highest and lowest finite value of each trial, oriented, (..., C); NaN where none."""

    first: Floats
    last: Floats
    high: Floats
    low: Floats


def fit_scale(ends: Ends) -> Scale:
    """The map for a study; with leading axes, for many studies at once.

    Width is the distance from the median start to the best value, and at least half of the distance from the
    median of the latest values to their upper decile; the worse half has no say, as it may have diverged.
    Where both vanish, the median range within a trial serves. With no two different values the magnitude
    of the only one does; that case alone does not follow a shift.
    """
    best = _ordered(ends.high, 1.0)
    width = best - _ordered(ends.first, 0.5)
    width = np.fmax(width, 0.5 * (_ordered(ends.last, 0.9) - _ordered(ends.last, 0.5)))
    magnitude = np.abs(best)
    tiny = 1e-9 * magnitude
    if not (width > tiny).all():
        width = np.where(width > tiny, width, _ordered(ends.high - ends.low, 0.5))
        width = np.where(width > tiny, width, magnitude)
    usable = np.isfinite(width) & (width > 0)
    return Scale(best=np.where(np.isfinite(best), best, 0.0), width=np.where(usable, width, 1.0))


def _ordered(values: Floats, share: float) -> Any:
    """The value at a share of the order along the last axis, NaNs left out; NaN where all are."""
    if values.ndim == 1:
        ordered = np.sort(values[np.isfinite(values)])
        return ordered[round(share * (len(ordered) - 1))] if len(ordered) else np.float64(np.nan)
    if values.shape[-1] == 0:
        return np.full(values.shape[:-1], np.nan)
    known = np.isfinite(values).sum(axis=-1)
    place = np.rint(share * np.maximum(known - 1, 0)).astype(np.int64)
    return np.take_along_axis(np.sort(values, axis=-1), place[..., None], axis=-1)[..., 0]
