"""The study's own law of progress: how trials get from look to look, learned from all of them at once.

Seen through the lens (`focus.py`), the best value so far of a trial is its distance to the target in a scale that is
logarithmic far away; looks are spaced geometrically, so a power law is a straight line. From look k to k + 1 a trial
with value y moves by a draw with mean a_k + b_k y and spread s_k, Student's t because these are estimates; it never
moves back, since it is a best so far. Each look's three numbers are a regression over the trials that passed it, drawn
towards those of the look before: beyond the frontier progress is expected to go on, ever slower. Which trials go on is
decided from what has been seen of them, so these regressions are not biased by it (Rubin, Biometrika 1976).

Tables over a grid of y follow from it by backward recursion: the chance to reach the target by each later look, mean
and spread of the value at the end, and the worth of going on at a price (see `worth`). Letters: K looks, Y values of
the grid, L prices, N trials.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foresail.curves.normal import ndtr

Floats = NDArray[Any]

LOWEST = -6.0
"""Values further from the target count as this; trials start near -3.7."""
GRID = np.linspace(LOWEST, 0.0, 61)
"""The last value is the target itself."""
PRICES = np.geomspace(1e-7, 2.0, 64)
"""Prices of a step, in targets: the index is found among them."""
MIDDLE = -2.0
"""Where slopes turn."""
PRIOR = 4.0
"""Moves that the look before counts as."""
FIRST, SECOND = (0.4, 0.0, 0.4), (0.2, 0.0, 0.2)
"""Size, slope and spread of the first two moves, before anything is known: recorded curves of five families lie about
these, and the first move says little of the second."""
FADES = 0.95
"""What a look's move is expected to be of the one before."""
LEAST_SPREAD = 0.02
GROWTH = 1.3
"""Looks are so many times as long as the one before: about equally telling."""
MOST_FREEDOM = 8.0
"""Moves are no more normal than that: late bloomers happen."""


def looks(end: int) -> NDArray[np.int64]:
    """The steps of all looks up to the end: 1, 2, 3, 4, 6, 8, 11, ..."""
    steps = [max(1, end // 200)]
    while steps[-1] < end:
        steps.append(min(end, max(steps[-1] + 1, int(np.ceil(GROWTH * steps[-1])))))
    return np.array(steps)


def normal_score(t: Floats, freedom: Floats | float) -> Floats:
    """The normal score of a Student's t score (Wallace 1959; error below 0.02 for 3 degrees and more)."""
    size = np.sqrt(freedom * np.log1p(t**2 / freedom)) * (8.0 * freedom + 1.0) / (8.0 * freedom + 3.0)
    return np.copysign(size, t)


@dataclass(frozen=True)
class Chain:
    """The law. `steps_K`: looks; `mean_K`, `slope_K`, `spread_K`, `freedom_K`: of the move from look k to k + 1."""

    steps_K: NDArray[np.int64]
    mean_K: Floats
    slope_K: Floats
    spread_K: Floats
    freedom_K: Floats
    aim: float = 0.0

    @classmethod
    def fit(cls, steps_K: NDArray[np.int64], values_NK: Floats) -> Chain:
        """From the values of trials at looks, NaN where they have not been."""
        found = []
        prior = FIRST
        for k in range(len(steps_K) - 1):
            both = np.isfinite(values_NK[:, k]) & np.isfinite(values_NK[:, k + 1])
            y = values_NK[both, k]
            now = _regressed(y, values_NK[both, k + 1] - y, prior)
            found.append((*now, min(PRIOR + len(y), MOST_FREEDOM)))
            prior = SECOND if k == 0 else (FADES * now[0], FADES * now[1], FADES * now[2])
        return cls(steps_K, *np.array(found).reshape(-1, 4).T)

    def aimed(self, aim: float) -> Chain:
        """The same law with values counted from `aim`, which then is the target of its tables."""
        return replace(self, aim=aim)

    @cached_property
    def costs_K(self) -> Floats:
        """Steps from look to look."""
        return np.diff(self.steps_K).astype(float)

    @cached_property
    def moves(self) -> list[tuple[Floats, Floats]]:
        """For each look the chances to be at each value at the next (Y, Y), and to have reached the target (Y,)."""
        edges = np.concatenate([0.5 * (GRID[1:] + GRID[:-1]), [-1e-9]])
        tables = []
        for mean, slope, spread, freedom in zip(self.mean_K, self.slope_K, self.spread_K, self.freedom_K, strict=True):
            unit_Y = unit(GRID + self.aim)
            centre_Y = GRID + np.maximum(mean + slope * (GRID + self.aim - MIDDLE), 0.0) * unit_Y
            score_YY = (edges[None, :] - centre_Y[:, None]) / (spread * unit_Y[:, None])
            below_YY = ndtr(normal_score(score_YY, freedom))
            below_YY = np.where(np.arange(len(GRID))[None, :] >= np.arange(len(GRID))[:, None], below_YY, 0.0)
            tables.append((np.diff(below_YY, axis=1, prepend=0.0), 1.0 - below_YY[:, -1]))
        return tables

    @cached_property
    def reach_KKY(self) -> Floats:
        """Chance to have reached the target by look j, from value y at look k: [k, j, y]."""
        looks_, reach = len(self.steps_K), np.zeros((len(self.steps_K), len(self.steps_K), len(GRID)))
        for k in range(looks_ - 2, -1, -1):
            move_YY, hit_Y = self.moves[k]
            reach[k, k + 1 :] = hit_Y + reach[k + 1, k + 1 :] @ move_YY.T
        return reach

    @cached_property
    def end_KY(self) -> tuple[Floats, Floats]:
        """Mean and variance of the value at the end, from each look; who gets beyond the target counts as on it."""
        first = np.tile(GRID, (len(self.steps_K), 1))
        second = first**2
        for k in range(len(self.steps_K) - 2, -1, -1):
            move_YY, _ = self.moves[k]
            first[k], second[k] = move_YY @ first[k + 1], move_YY @ second[k + 1]
        return first, np.maximum(second - first**2, 1e-4)

    @cached_property
    def going_KYL(self) -> Floats:
        """Worth of going on to the next look at each price of a step, and then as far as is worth it."""
        going = np.full((len(self.steps_K), len(GRID), len(PRICES)), -1.0)
        for k in range(len(self.steps_K) - 2, -1, -1):
            move_YY, hit_Y = self.moves[k]
            paid = self.costs_K[k] * (1.0 - 0.5 * hit_Y[:, None]) * PRICES
            going[k] = hit_Y[:, None] - paid + move_YY @ np.maximum(going[k + 1], 0.0)
        return going


def unit(y: Floats) -> Floats:
    """How large moves are from a value: about the same far from the target, smaller near it."""
    return (0.15 - y) / (0.6 - y)


def _regressed(y: Floats, move: Floats, prior: tuple[float, float, float]) -> tuple[float, float, float]:
    """Ridge towards the prior line, and the spread about it; in units of the moves."""
    mean, slope, spread = prior
    rows = np.stack([np.ones(len(y)), y - MIDDLE], axis=1)
    rest = move / unit(y) - rows @ np.array([mean, slope])
    more = np.linalg.solve(rows.T @ rows + PRIOR * np.eye(2), rows.T @ rest)
    left = rest - rows @ more
    squares = PRIOR * spread**2 + (left**2).sum()
    return float(mean + more[0]), float(slope + more[1]), max(math.sqrt(squares / (PRIOR + len(y))), LEAST_SPREAD)


def index(going_NL: Floats, start_N: Floats | float = 0.0) -> Floats:
    """The Gittins index, in targets a step: the highest price at which going on is worth it, (N,).

    Args:
        going_NL: Worth of going on at each price.
        start_N: What it takes to start, in steps.
    """
    net_NL = going_NL - np.reshape(np.asarray(start_N, dtype=float), (-1, 1)) * PRICES
    last_N = len(PRICES) - 1 - np.argmax(net_NL[:, ::-1] > 0.0, axis=1)
    none_N = ~(net_NL > 0.0).any(axis=1)
    rows, after_N = np.arange(len(net_NL)), np.minimum(last_N + 1, len(PRICES) - 1)
    here, there = net_NL[rows, last_N], net_NL[rows, after_N]
    part = np.where(after_N > last_N, here / np.maximum(here - there, 1e-300), 0.0)
    found = PRICES[last_N] + part * (PRICES[after_N] - PRICES[last_N])
    return np.where(none_N, 0.0, found)
