"""What a forecast can answer. Every answer is a reduction of one joint law, so they agree with each other.

The law of trial c: at step h the metric is `table[c, h]` read at a normal score z = a g + sqrt(1 - a^2) e,
with a = `loading[c, h]`, g one standard normal for the trial's whole future, and e a second one that is
drawn anew with probability `freshness[c, h]` and otherwise kept from the step before; trials are independent.

Letters: C trials, H steps of the horizon, Q normal scores, S draws, Y values, U groups of steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from foresail.curves.normal import ndtr
from foresail.curves.passage import BLOCK, NODES, passed_by, stays_below
from foresail.curves.tables import FARTHEST, GAPS, LAST, MEAN_WEIGHTS, SCORES, quantile_at, scores_at
from foresail.errors import CallerError

Floats = NDArray[Any]
Trials = NDArray[np.int64]

_NORMAL = NormalDist()
_NEGLIGIBLE = 1e-6
_FEW = 32
_RIVAL_VALUES = 18  # at which trials are compared: within 0.004 of what many give
_MOST_GROUPS = 8  # of steps, where a whole horizon is reduced to one number for many values
_RULE_X, _RULE_W = np.polynomial.legendre.leggauss(8)


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
        freshness: how often the rest is drawn anew, (C, H); in (0, 1].
        future: True where a step lies ahead of a trial's last point, (C, H).
        best_so_far: oriented best value of each trial, in table units, (C,); -inf where none.
        last_step: the last observed step of each trial, (C,); 0 where none.
        size: number of draws that `draws` holds.
        rng: where they come from; a fixed seed if None.
    """

    horizon: Floats
    sign: float
    origin: float
    unit: float
    table: Floats
    loading: Floats
    freshness: Floats
    future: NDArray[np.bool_]
    best_so_far: Floats
    last_step: Floats
    size: int
    rng: Generator | None
    _latest: dict[float, Floats] = field(default_factory=dict, repr=False, compare=False)

    def quantile(self, q: float) -> Floats:
        """The value that the metric at each step stays below with probability `q`, (C, H).

        Raises:
            CallerError: `q` is not between 0 and 1.
        """
        if not 0.0 < q < 1.0:
            raise CallerError(f"quantile {q!r}", allowed="a probability between 0 and 1, both excluded")
        return self._metric(quantile_at(self.table, _NORMAL.inv_cdf(q if self.sign > 0 else 1.0 - q)))

    @cached_property
    def mean(self) -> Floats:
        """Expected value of the metric at each step, (C, H)."""
        return self._metric(self.table @ MEAN_WEIGHTS)

    def cdf(self, value: ArrayLike) -> Floats:
        """Probability that the metric is at most `value` (anything that broadcasts to (C, H)) at each
        step."""
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
        if by is None:
            return passed[:, -1]
        before = self._reached(target) & (self.last_step < self.horizon[0])
        padded = np.concatenate([before[:, None].astype(passed.dtype), passed], axis=1)
        return padded[:, np.searchsorted(self.horizon, by, side="right")]

    def prob_reach_each(self, targets: ArrayLike) -> Floats:
        """As `prob_reach` by the end of the horizon, of many targets (Y,) at once, (C, Y).

        Long horizons are looked at in groups of steps, which moves a chance by less than 0.01."""
        levels = np.tile(self._oriented(targets), (len(self.table), 1))
        beyond = 1.0 - self._stays(levels, len(self.horizon))
        return np.where(self.best_so_far[:, None] >= levels, 1.0, beyond)

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
        end = len(self.horizon) if by is None else int(np.searchsorted(self.horizon, by, side="right"))
        level = float(self._oriented(over))
        start = np.maximum(level, self.best_so_far)
        gained = np.where(self.best_so_far > level, start - level, 0.0)
        live = np.arange(len(start))
        if len(start) > _FEW:  # most trials of a large study have nothing to gain
            live = np.flatnonzero(1.0 - self._stays(start[:, None], end)[:, 0] > _NEGLIGIBLE)
        if len(live):
            width = np.maximum(self._top(end)[live] - start[live], 0.0)
            x = 0.5 * (_RULE_X + 1.0)
            values = start[live, None] + width[:, None] * x**2
            exceed = 1.0 - self._stays(values, end, live)
            gained[live] += width * (exceed @ (_RULE_W * x))
        return gained * self.unit

    def prob_best(self) -> Floats:
        """Probability that a trial's best value at the end of the horizon is the best of all, (C,); sums
        to 1."""
        end, trials = len(self.horizon), len(self.table)
        if trials < 2:
            return np.ones(trials)
        low = quantile_at(self.table, float(SCORES[0])).max(initial=-np.inf, where=self.future)
        low = float(max(low, self.best_so_far.max(initial=-np.inf)))
        rivals = 1.0 - self._stays(np.full((trials, 1), low), end)[:, 0] > _NEGLIGIBLE
        who = np.flatnonzero(rivals | (self.best_so_far >= low))
        top = max(low, float(self._top(end)[who].max(initial=low)))
        values = low + (top - low) * np.linspace(0.0, 1.0, _RIVAL_VALUES) ** 2
        values = np.insert(values, 0, low - 1e-5 * max(top - low, 1e-3))  # parts a tie with the best so far
        below = self._stays(np.tile(values, (len(who), 1)), end, who).astype(np.float64)
        edge = np.concatenate([np.zeros((len(who), 1)), below], axis=1)
        middle = np.log(np.maximum(0.5 * (edge[:, 1:] + edge[:, :-1]), 1e-300))
        chance = np.zeros(trials)
        chance[who] = (np.diff(edge, axis=1) * np.exp(middle.sum(axis=0) - middle)).sum(axis=1)
        total = chance.sum()
        return chance / total if total > 0 else np.full(trials, 1.0 / max(trials, 1))

    @cached_property
    def draws(self) -> Floats:
        """Joint futures, (S, C, H), in metric units; an observed step holds its point in every draw."""
        trials, steps = self.future.shape
        rng = self.rng or np.random.default_rng(0)
        common = rng.standard_normal((self.size, trials, 1), dtype=np.float32)
        fresh = rng.standard_normal((self.size, trials, steps), dtype=np.float32)
        kept = rng.random((self.size, trials, steps), dtype=np.float32) > self.freshness
        for h in range(1, steps):
            np.copyto(fresh[:, :, h], fresh[:, :, h - 1], where=kept[:, :, h])
        fresh *= np.sqrt(1.0 - self.loading**2)
        fresh += common * self.loading
        k = np.clip(np.searchsorted(SCORES, fresh) - 1, 0, LAST - 1)
        part = (fresh - SCORES[k]) / GAPS[k]
        at = np.arange(trials)[:, None], np.arange(steps)
        low = self.table[*at, k]
        return self._metric(low + part * (self.table[*at, k + 1] - low))

    def _metric(self, table: Floats) -> Floats:
        return self.sign * (self.origin + self.unit * table.astype(np.float64))

    def _oriented(self, value: ArrayLike) -> Floats:
        oriented = (self.sign * np.asarray(value, dtype=np.float64) - self.origin) / self.unit
        return np.minimum(np.maximum(oriented, -1e37), 1e37)  # fits into the tables' float32

    def _reached(self, target: float) -> NDArray[np.bool_]:
        # The observed best went through the same arithmetic, so that a target equal to it counts.
        return self.best_so_far >= self._oriented(target)

    def _passed(self, target: float) -> Floats:
        """Probability of having reached `target` at each step of the horizon, (C, H)."""
        if target in self._latest:
            return self._latest[target]
        level = np.float32(self._oriented(target))
        trials, steps = self.future.shape
        passed = np.empty((trials, steps), dtype=np.float32)
        rows = max(1, BLOCK // (steps * len(NODES)))
        for i in range(0, trials, rows):
            block = slice(i, i + rows)
            z = scores_at(self.table[block], level)
            if not self._all_ahead:
                z = np.where(self.future[block], z, FARTHEST)
            passed[block] = passed_by(z.T, self.loading[block].T, self.freshness[block].T).T
        reached = self._reached(target)
        if not self._all_ahead or reached.any():
            passed[np.where(self.future, reached[:, None], self.table[:, :, 0] >= level)] = 1.0
        np.maximum.accumulate(passed, axis=1, out=passed)
        np.maximum(passed, 0.0, out=passed)
        np.minimum(passed, 1.0, out=passed)
        self._latest.clear()  # one is enough: a question about a target is often followed by another
        self._latest[target] = passed
        return passed

    @cached_property
    def _all_ahead(self) -> bool:
        return bool(self.future.all())

    def _top(self, end: int) -> Floats:
        """A value that a trial hardly ever passes by step number `end`, (C,); -inf if nothing is ahead."""
        result: Floats = quantile_at(self.table[:, :end], 4.5).max(axis=1, initial=-np.inf, where=self.future[:, :end])
        return result

    def _stays(self, values_CY: Floats, end: int, who: Trials | None = None) -> Floats:
        """Probability that the best value by step number `end` is at most each of the values, (C, Y)."""
        who = np.arange(len(self.table)) if who is None else who
        seen = self.best_so_far[who, None] > values_CY
        if end == 0:
            return np.where(seen, 0.0, 1.0)
        values = values_CY.astype(np.float32)
        below = np.ones(values.shape, dtype=np.float32)
        last, times = self._groups(end)
        rows = max(1, BLOCK // (len(last) * len(NODES) * values.shape[1]))
        for i in range(0, len(who), rows):
            part = who[i : i + rows]
            at = part, last[:, None]
            z = scores_at(self.table[at][:, :, None], values[i : i + rows])
            if not self._all_ahead:
                z = np.where(self.future[at][:, :, None], z, FARTHEST)
            many = None if times is None else times[:, part]
            below[i : i + rows] = stays_below(z, self.loading[at], self.freshness[at], many)
        return np.where(seen, 0.0, below)

    def _groups(self, end: int) -> tuple[Trials, Floats | None]:
        """Steps that stand for groups of those up to `end`, (U,), and for how many future ones each, (U, C): the last
        step for itself, as paths mostly rise, and others for those around them."""
        start = int(self.future[:, :end].any(axis=0).argmax())  # before it nothing is ahead of any trial
        if end - start <= _MOST_GROUPS + 4:
            return np.arange(start, end), None
        middles, edges = _grouped(start, end)
        return middles, np.add.reduceat(self.future[:, :end], edges, axis=1, dtype=np.float32).T


@lru_cache(maxsize=64)
def _grouped(start: int, end: int) -> tuple[Trials, Trials]:
    """The steps that stand for groups, and where each group begins."""
    edges = np.linspace(start, end - 1, _MOST_GROUPS).round().astype(np.int64)
    return np.append((edges[1:] + edges[:-1]) // 2, end - 1), edges
