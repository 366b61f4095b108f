"""How good forecasts were: proper scores, coverage, reliability, and whether small chances were small enough.

Laws are distribution functions on a grid, outcomes are known to a resolution: a metric that stands still
gives the same value again and again, and an interval either side of it keeps that from earning an infinite
score or a false coverage (Czado, Gneiting and Held 2009). Letters: M forecasts, X grid values, B bins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[Any]

SMALL = 0.05  # chances under this are what ending a trial rests on


def crps(grid_X: Floats, law_MX: Floats, outcome_M: Floats) -> Floats:
    """Continuous ranked probability score (M,), in units of the grid, lower is better (Gneiting, Raftery
    2007).

    >>> grid = np.array([0.0, 1.0, 2.0])
    >>> crps(grid, np.array([[0.0, 1.0, 1.0]]), np.array([1.0])).tolist()
    [0.0]
    """
    step = (grid_X[None, :] >= outcome_M[:, None] - 1e-12).astype(float)
    result: Floats = ((law_MX - step) ** 2)[:, :-1] @ np.diff(grid_X)
    return result


def interval(grid_X: Floats, law_MX: Floats, outcome_M: Floats, resolution: float) -> tuple[Floats, Floats]:
    """Probability below and up to each outcome, (M,) each, the outcome being known to +- `resolution`."""
    rows = range(len(outcome_M))
    low = [np.interp(outcome_M[i] - resolution, grid_X, law_MX[i], left=0.0) for i in rows]
    high = [np.interp(outcome_M[i] + resolution, grid_X, law_MX[i], right=1.0) for i in rows]
    return np.array(low), np.array(high)


def log_score(below_M: Floats, upto_M: Floats, resolution: float, floor: float = 0.0) -> Floats:
    """Logarithm of the density given to each outcome, (M,), higher is better.

    `floor` mixes in that share of a uniform law of unit width, so that one surprise cannot decide a contest.
    """
    density = np.maximum(upto_M - below_M, 0.0) / (2.0 * resolution)
    result: Floats = np.log(np.maximum((1.0 - floor) * density + floor, 1e-300))
    return result


def coverage(below_M: Floats, upto_M: Floats, level: float) -> float:
    """Share of outcomes inside the central interval of probability `level`; outcomes count in part.

    >>> coverage(np.array([0.0, 0.4]), np.array([0.5, 0.6]), 0.5)
    0.75
    """
    low, high = 0.5 - 0.5 * level, 0.5 + 0.5 * level
    inside = np.maximum(np.minimum(upto_M, high) - np.maximum(below_M, low), 0.0)
    width = upto_M - below_M
    middle = 0.5 * (below_M + upto_M)
    point = ((middle >= low) & (middle <= high)).astype(float)
    return float(np.mean(np.where(width > 1e-12, inside / np.maximum(width, 1e-12), point)))


def brier(prob_M: Floats, event_M: Floats) -> float:
    """Mean squared distance of probabilities from what happened."""
    return float(np.mean((prob_M - event_M) ** 2))


@dataclass(frozen=True, slots=True)
class Reliability:
    """Said against seen, in bins of equal width; empty bins are left out. Fields of shape (B,) but
    `error`."""

    said: Floats
    seen: Floats
    count: NDArray[np.int64]
    error: float  # expected calibration error: mean |said - seen|, weighted by count


def reliability(prob_M: Floats, event_M: Floats, bins: int = 10) -> Reliability:
    """Whether events happen as often as they were said to (Naeini et al. 2015)."""
    place = np.minimum((np.asarray(prob_M) * bins).astype(np.int64), bins - 1)
    count = np.bincount(place, minlength=bins)
    some = count > 0
    said = np.bincount(place, weights=prob_M, minlength=bins)[some] / count[some]
    seen = np.bincount(place, weights=event_M, minlength=bins)[some] / count[some]
    error = float((np.abs(said - seen) * count[some]).sum() / max(count.sum(), 1))
    return Reliability(said, seen, count[some], error)


def tail_ratio(prob_M: Floats, event_M: Floats, below: float = SMALL) -> float:
    """Among forecasts under `below`: how often the event came, over how often it was said to. nan without
    any.

    Above one, small chances were said to be smaller than they were.

    >>> tail_ratio(np.array([0.02, 0.02, 0.9]), np.array([0, 1, 1]))
    25.0
    """
    small = np.asarray(prob_M) < below
    said = float(np.sum(np.asarray(prob_M)[small]))
    return float(np.sum(np.asarray(event_M)[small]) / said) if said > 0 else float("nan")


@dataclass(frozen=True, slots=True)
class Scorecard:
    """What a set of forecasts was worth. Scores are nan where nothing could be scored.

    `crps` and `log_score` are on the study's internal scale, on which 0.4 leads from the start to the best.
    """

    forecasts: int
    crps: float
    log_score: float
    coverage: tuple[tuple[float, float], ...]  # (nominal, seen)
    tail_ratio: float


def scorecard(
    grid_X: Floats,
    law_MX: Floats,
    outcome_M: Floats,
    *,
    resolution: float,
    prob_M: Floats,
    event_M: Floats,
    levels: Sequence[float] = (0.5, 0.8, 0.95),
) -> Scorecard:
    """All scores of M forecasts at once; `prob_M` and `event_M` are chances and what came of them."""
    if not len(outcome_M):
        nan = float("nan")
        return Scorecard(0, nan, nan, tuple((level, nan) for level in levels), nan)
    below, upto = interval(grid_X, law_MX, outcome_M, resolution)
    return Scorecard(
        forecasts=len(outcome_M),
        crps=float(crps(grid_X, law_MX, outcome_M).mean()),
        log_score=float(log_score(below, upto, resolution).mean()),
        coverage=tuple((level, coverage(below, upto, level)) for level in levels),
        tail_ratio=tail_ratio(prob_M, event_M),
    )
