"""What a forecast can answer. Every answer is a reduction of one joint law, so they agree with each other.

The law of trial c: at step h the metric is `table[c, h]` read at a normal score z, where
z = a g + sqrt(1 - a^2) e, a = `loading[c, h]`, g one standard normal for the trial and e a fresh one at each
step; trials are independent. First passage, improvement and the chance to be best integrate g numerically
and the e's exactly; `draws` samples the same law.

Letters: C trials, H steps of the horizon, Q normal scores, S draws, G nodes of the integral over g, Y values.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from foresail.curves.network import SCORES
from foresail.curves.normal import density, ndtr, ndtri
from foresail.errors import CallerError

Floats = NDArray[Any]

# Trapezoidal rule: with loadings up to 0.97 the integrand is smooth at this spacing (error below 1e-4).
_NODES = np.arange(-3.85, 3.86, 0.35, dtype=np.float32)
_NODE_WEIGHTS = (density(_NODES) / density(_NODES).sum()).astype(np.float32)
_BLOCK = 400_000  # elements of a temporary: small enough for the cache, large enough for numpy
_NEGLIGIBLE = 1e-6
_TINY = np.float32(1e-12)
_SURE = np.float32(12.0)  # a normal score that is never passed


@dataclass(frozen=True)
class Forecast:
    """The joint law of the future of C trials over H steps, in the metric's own units.

    Made by `foresail.curves.forecast` and `StudyState.forecast`, not by hand.

    Attributes:
        horizon: the steps asked for, (H,), increasing.
        sign: +1.0 if more of the metric is better, -1.0 if less.
        origin, unit: oriented value = origin + unit * table.
        table: quantiles at `SCORES`, (C, H, Q), oriented; constant where a step is past.
        loading: how strongly each step hangs on the trial's common factor, (C, H).
        future: True where a step lies ahead of a trial's last point, (C, H).
        best_so_far: oriented best value of each trial, in table units, (C,); -inf where none.
        last_step: the last observed step of each trial, (C,); 0 where none.
        size: number of draws that `draws` holds.
        rng: where they come from.
    """

    horizon: Floats
    sign: float
    origin: float
    unit: float
    table: Floats
    loading: Floats
    future: NDArray[np.bool_]
    best_so_far: Floats
    last_step: Floats
    size: int
    rng: Generator

    def quantile(self, q: float) -> Floats:
        """The value that the metric at each step stays below with probability `q`, (C, H).

        Raises:
            CallerError: `q` is not between 0 and 1.
        """
        if not 0.0 < q < 1.0:
            raise CallerError(f"quantile {q!r}", allowed="a probability between 0 and 1, both excluded")
        score = float(ndtri(q if self.sign > 0 else 1.0 - q))
        k = int(np.clip(np.searchsorted(SCORES, score) - 1, 0, len(SCORES) - 2))
        part = (score - SCORES[k]) / (SCORES[k + 1] - SCORES[k])
        return self._metric(self.table[:, :, k] + part * (self.table[:, :, k + 1] - self.table[:, :, k]))

    @cached_property
    def mean(self) -> Floats:
        """Expected value of the metric at each step, (C, H)."""
        return self._metric(self.table @ mean_weights())

    def cdf(self, value: ArrayLike) -> Floats:
        """Probability that the metric is at most `value` (anything that broadcasts to (C, H)) at each step."""
        oriented = np.broadcast_to(self._oriented(value), self.table.shape[:2])
        below = ndtr(scores_at(self.table, oriented.astype(np.float32)))
        past = self.table[:, :, 0] <= oriented if self.sign > 0 else self.table[:, :, 0] < oriented
        below = np.where(self.future, below, past)
        return below if self.sign > 0 else 1.0 - below

    def prob_reach(self, target: float, by: ArrayLike | None = None) -> Floats:
        """Probability that the best value seen has reached `target` at step `by` (first passage).

        Args:
            target: value of the metric.
            by: a step, an array of steps (B,), or None for the whole horizon. Steps of the horizon up to
                and including it count, and so does every point observed before the horizon begins.

        Returns:
            (C,) for one step, (C, B) for several. Falls in the target's difficulty and grows with `by`.
        """
        passed = self._passed(target)
        before = self._reached(target) & (self.last_step < self.horizon[0])
        padded = np.concatenate([before[:, None].astype(passed.dtype), passed], axis=1)
        place = np.searchsorted(self.horizon, self.horizon[-1:] if by is None else by, side="right")
        return padded[:, place[0]] if by is None else padded[:, place]

    def expected_steps_to(self, target: float) -> Floats:
        """Expected number of steps from a trial's last point until `target` is reached, (C,).

        Given that it is reached within the horizon; 0 where it has been reached already, nan where it is
        out of reach (probability below one in a million).
        """
        passed = self._passed(target).astype(np.float64)
        total = passed[:, -1]
        first = np.diff(passed, axis=1, prepend=0.0)
        ahead = np.maximum(self.horizon[None, :] - self.last_step[:, None], 0.0)
        steps = np.where(total > _NEGLIGIBLE, (first * ahead).sum(axis=1) / np.maximum(total, _NEGLIGIBLE), np.nan)
        return np.where(self._reached(target), 0.0, steps)

    def expected_improvement(self, over: float, by: float | None = None) -> Floats:
        """Expected amount by which the best value seen by step `by` exceeds `over`, (C,), never negative."""
        end = self._end(by)
        level = float(self._oriented(over))
        start = np.maximum(level, self.best_so_far)
        gained = np.maximum(np.nan_to_num(self.best_so_far, neginf=level) - level, 0.0)
        reach = self._survival(start[:, None].astype(np.float32), end)
        live = np.flatnonzero(1.0 - reach[:, 0] > _NEGLIGIBLE)
        if len(live):
            top = quantile_at(self.table[live, :end], 4.5).max(axis=1, initial=-np.inf, where=self.future[live, :end])
            width = np.maximum(top - start[live], 0.0)
            nodes, weights = np.polynomial.legendre.leggauss(10)
            x = 0.5 * (nodes + 1.0)
            values = start[live, None] + width[:, None] * x**2
            exceed = 1.0 - self._survival(values.astype(np.float32), end, live)
            gained[live] += width * (exceed * (weights * x)).sum(axis=1)
        return cast(Floats, gained * self.unit)

    def prob_best(self) -> Floats:
        """Probability that a trial's best value at the end of the horizon is the best of all C, (C,); sums to 1."""
        end = len(self.horizon)
        low = quantile_at(self.table, float(SCORES[0])).max(initial=-np.inf, where=self.future)
        low = max(low, float(self.best_so_far.max(initial=-np.inf)))
        if not np.isfinite(low):
            low = float(self.table.max(initial=0.0))
        contenders = 1.0 - self._survival(np.full((len(self.table), 1), low, np.float32), end)[:, 0] > _NEGLIGIBLE
        contenders |= self.best_so_far >= low
        who = np.flatnonzero(contenders)
        chance = np.zeros(len(self.table))
        if len(who) == 0:
            return np.full(len(self.table), 1.0 / max(len(self.table), 1))
        top = max(low, float(quantile_at(self.table[who], 4.0).max(initial=low, where=self.future[who])))
        values = low + (top - low) * np.linspace(0.0, 1.0, 49) ** 2
        values = np.concatenate([[low - 1e-5 * max(top - low, 1e-3)], values])  # parts a tie with the best so far
        below = self._survival(np.tile(values.astype(np.float32), (len(who), 1)), end, who).astype(np.float64)
        edge = np.concatenate([np.zeros((len(who), 1)), below], axis=1)
        middle = np.log(np.maximum(0.5 * (edge[:, 1:] + edge[:, :-1]), 1e-300))
        others = np.exp(middle.sum(axis=0) - middle)
        chance[who] = (np.diff(edge, axis=1) * others).sum(axis=1)
        return cast(Floats, chance / max(chance.sum(), 1e-300))

    @cached_property
    def draws(self) -> Floats:
        """Joint futures, (S, C, H), in metric units; an observed step holds its point in every draw."""
        trials, steps = self.future.shape
        common = self.rng.standard_normal((self.size, trials, 1), dtype=np.float32)
        fresh = self.rng.standard_normal((self.size, trials, steps), dtype=np.float32)
        fresh *= np.sqrt(1.0 - self.loading**2)
        fresh += common * self.loading
        k = np.clip(np.searchsorted(SCORES, fresh) - 1, 0, len(SCORES) - 2)
        part = (fresh - SCORES[k]) / (SCORES[k + 1] - SCORES[k])
        at = np.arange(trials * steps, dtype=np.int64).reshape(trials, steps) * len(SCORES) + k
        flat = self.table.reshape(-1)
        low = flat[at]
        return self._metric(low + part * (flat[at + 1] - low))

    def _metric(self, table: Floats) -> Floats:
        return cast(Floats, self.sign * (self.origin + self.unit * table.astype(np.float64)))

    def _oriented(self, value: ArrayLike) -> Floats:
        return cast(Floats, (self.sign * np.asarray(value, dtype=np.float64) - self.origin) / self.unit)

    def _reached(self, target: float) -> NDArray[np.bool_]:
        # The observed best went through the same arithmetic, so that a target equal to it counts.
        return cast(NDArray[np.bool_], self.best_so_far >= self._oriented(target))

    def _end(self, by: float | None) -> int:
        return len(self.horizon) if by is None else int(np.searchsorted(self.horizon, by, side="right"))

    def _passed(self, target: float) -> Floats:
        """Probability of having reached `target` at each step of the horizon, (C, H)."""
        level = np.float32(self._oriented(target))
        reached = self._reached(target)[:, None]
        trials, steps = self.future.shape
        passed = np.empty((trials, steps), dtype=np.float32)
        rows = max(1, _BLOCK // max(1, steps * len(_NODES)))
        for i in range(0, trials, rows):
            block = slice(i, i + rows)
            z = np.where(reached[block], -_SURE, scores_at(self.table[block], level))
            z = np.where(self.future[block], z, np.where(self.table[block, :, 0] >= level, -_SURE, _SURE))
            stay = _stays(z, self.loading[block])
            np.cumprod(stay, axis=1, out=stay)
            passed[block] = 1.0 - stay @ _NODE_WEIGHTS
        np.maximum.accumulate(passed, axis=1, out=passed)
        return np.clip(passed, 0.0, 1.0)

    def _survival(self, values_CY: Floats, end: int, who: NDArray[np.int64] | None = None) -> Floats:
        """Probability that the best value by step number `end` stays below each of the values, (C, Y)."""
        who = np.arange(len(self.table)) if who is None else who
        below = np.ones(values_CY.shape, dtype=np.float32)
        if end == 0:
            return np.where(self.best_so_far[who, None] > values_CY, np.float32(0.0), below)
        rows = max(1, _BLOCK // (end * len(_NODES) * values_CY.shape[1]))
        for i in range(0, len(who), rows):
            part = who[i : i + rows]
            levels = values_CY[i : i + rows, :, None]
            z = scores_at(self.table[part, None, :end], levels)
            z = np.where(self.future[part, None, :end], z, _SURE)
            stay = _stays(z, self.loading[part, None, :end])
            below[i : i + rows] = stay.prod(axis=2) @ _NODE_WEIGHTS
        return np.where(self.best_so_far[who, None] > values_CY, np.float32(0.0), below)


def mean_weights() -> Floats:
    """Weights (Q,) that turn a quantile table into its mean: the exact integral of its straight lines."""
    low, high = SCORES[:-1].astype(np.float64), SCORES[1:].astype(np.float64)
    edge_low, edge_high = low.copy(), high.copy()
    edge_low[0], edge_high[-1] = -40.0, 40.0
    mass = ndtr(edge_high) - ndtr(edge_low)
    first = density(edge_low) - density(edge_high)
    rising = (first - low * mass) / (high - low)
    weights = np.zeros(len(SCORES))
    weights[:-1] += mass - rising
    weights[1:] += rising
    return weights.astype(np.float32)


def quantile_at(table: Floats, score: float) -> Floats:
    """Tables read at one normal score: the last axis goes away."""
    k = int(np.clip(np.searchsorted(SCORES, score) - 1, 0, len(SCORES) - 2))
    part = np.float32((score - SCORES[k]) / (SCORES[k + 1] - SCORES[k]))
    return cast(Floats, table[..., k] + part * (table[..., k + 1] - table[..., k]))


def scores_at(table: Floats, values: Floats | np.float32) -> Floats:
    """Normal scores of `values` under tables (..., Q): the inverse of reading them; within [-12, 12]."""
    values = np.asarray(values, dtype=np.float32)
    shape = np.broadcast_shapes(table.shape[:-1], values.shape)
    k = np.zeros(shape, dtype=np.int64)
    for j in range(1, len(SCORES) - 1):
        k += values >= table[..., j]
    if shape == table.shape[:-1]:
        low = np.take_along_axis(table, k[..., None], axis=-1)[..., 0]
        high = np.take_along_axis(table, k[..., None] + 1, axis=-1)[..., 0]
    else:
        low = np.take_along_axis(np.broadcast_to(table, (*shape, len(SCORES))), k[..., None], axis=-1)[..., 0]
        high = np.take_along_axis(np.broadcast_to(table, (*shape, len(SCORES))), k[..., None] + 1, axis=-1)[..., 0]
    part = (values - low) / np.maximum(high - low, _TINY)
    return cast(Floats, np.clip(SCORES[k] + part * (SCORES[k + 1] - SCORES[k]), -12.0, 12.0))


def _stays(z: Floats, loading: Floats) -> Floats:
    """Probability that a step stays below score z given each node of the common factor, (..., G)."""
    rest = 1.0 / np.sqrt(1.0 - loading**2)
    return ndtr(((z * rest)[..., None] - (loading * rest)[..., None] * _NODES).astype(np.float32))
