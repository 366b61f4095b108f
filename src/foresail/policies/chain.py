"""The study's own law of progress: how trials get from look to look, learned from all of them at once.

Seen through the lens (`focus.py`), the best value so far of a trial is its distance to the target in a scale that is
logarithmic far away; looks are spaced geometrically, so a power law is a straight line. Each trial has a gift u,
standard normal over the study's configurations. Its move from look k to the next, in units
of `unit(y)`, is

    m_k = mean_k + spread_k r_k,   r_k = u sqrt(rho) + e_k sqrt(1 - rho),   e_k standard normal,

the first "move" being its first value itself. The gift may drift, u' = phi u + noise (`stays`). What it adds to r is
followed by Kalman's filter. Means, spreads, rho and phi are fitted to the moves given what was believed before
each: which trials go on is decided from what has been seen of them, so that they are not biased by it (Rubin,
Biometrika 1976). Each look is drawn towards the one before; beyond the frontier progress is expected to go on.

Tables over a grid of values and gifts follow by backward recursion: the chance to reach the target by each later look,
the expected value at the end, and the worth of going on at a price, which gives the Gittins index (`index`).
Letters: N trials, K looks, Y values and U gifts of the grid, Q quantiles, L prices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from foresail.curves.normal import ndtr, ndtri

Floats = NDArray[Any]

LOWEST = -6.0
"""Values further from the target count as this; trials start near -3.7."""
NEAREST = -1e-3
VALUES = LOWEST * (1.0 - np.arange(33) / 32.0) ** 1.6
"""The grid of values, denser near the target, which is its last."""
GIFTS = np.linspace(-2.4, 2.4, 9)
PRICES = np.geomspace(1e-6, 2.0, 36)
"""Prices of a step, in targets: the index is found among them."""
QUANTILES = (np.arange(6) + 0.5) / 6.0
PRIOR = 4.0
"""Moves that the prior of a look counts as."""
START = (-3.5, 0.3)
"""Mean and spread of the first value before anything is known."""
FIRST, SECOND = (0.4, 0.4), (0.2, 0.2)
"""Mean and spread of the first two moves before anything is known: recorded curves of five families lie about these,
and the first move says little of the second."""
FADES = 0.95
"""What a look's move is expected to be of the one before."""
LEAST_SPREAD = 0.02
LASTING = 2.0
"""Trials that the prior counts as having come through each look: not to end before the last step is the rule."""
SHARES, STAYS = (0.15, 0.35, 0.6), (1.0, 0.8)
"""Values of rho and phi that are weighed."""
GROWTH = 1.3
"""Looks are so many times as long as the one before: about equally telling."""
MOST_FREEDOM = 8.0
"""Moves are no more normal than Student's t with so many degrees: late bloomers happen."""


def looks(end: int) -> NDArray[np.int64]:
    """The steps of all looks up to the end: 1, 2, 3, 4, 6, 8, 11, ..."""
    steps = [max(1, end // 200)]
    while steps[-1] < end:
        steps.append(min(end, max(steps[-1] + 1, int(np.ceil(GROWTH * steps[-1])))))
    return np.array(steps)


def unit(y: Floats) -> Floats:
    """How large moves are from a value: about the same far from the target, smaller near it."""
    return (0.15 - y) / (0.6 - y)


@dataclass(frozen=True)
class Chain:
    """The law.

    `steps_K`: looks; `mean_K`, `spread_K`, `freedom_K`: of the move to each look, the first value included; `gone_K`:
    chance that a trial comes to its own end on that move, having made it; `rho`:
    share of a move's variance that is the trial's own; `stays`: how much of the gift stays from look to look; `aim`:
    the target of the tables, in the lens.
    """

    steps_K: NDArray[np.int64]
    mean_K: Floats
    spread_K: Floats
    freedom_K: Floats
    gone_K: Floats
    rho: float
    stays: float
    aim: float = 0.0

    @classmethod
    def fit(cls, steps_K: NDArray[np.int64], values_NK: Floats, over_NK: Floats | None = None) -> Chain:
        """From the values of trials at looks, NaN where they have not been; `over`: 1 where a trial's own end came on
        the way to that look, 0 where it came through."""
        gone_K = np.zeros(len(steps_K)) if over_NK is None else _gone(over_NK)
        return _fitted(steps_K, values_NK, gone_K)

    def aimed(self, aim: float) -> Chain:
        """The same law with another value as the target of its tables."""
        return self if aim == self.aim else replace(self, aim=aim)

    def moves(self, values_NK: Floats) -> Floats:
        """r of each move, NaN where there was none; (N, K)."""
        before_NK = values_NK[:, :-1]
        moved_NK = np.concatenate([values_NK[:, :1], (values_NK[:, 1:] - before_NK) / unit(before_NK)], axis=1)
        return np.clip((moved_NK - self.mean_K) / self.spread_K, -4.0, 4.0)

    def gifts(self, moves_NK: Floats, level_N: Floats, variance_N: Floats) -> Floats:
        """What is believed of each trial's next move, from `level` and `variance` before its first: (N,)."""
        gift_N, left_N = level_N.copy(), variance_N.copy()
        for r_N in moves_NK.T:
            seen_N = np.isfinite(r_N)
            gain_N = left_N / (left_N + 1.0 - self.rho)
            gift_N = np.where(seen_N, self.stays * (gift_N + gain_N * (r_N - gift_N)), gift_N)
            left_N = np.where(seen_N, self._open(left_N), left_N)
        return gift_N

    def _open(self, left: Any) -> Any:
        """Variance of the gift after one more move."""
        return _opened(left, self.rho, self.stays)

    # --- tables ----------------------------------------------------------------------------------------------

    @cached_property
    def tables(self) -> Tables:
        """Backward recursion over the looks, from the end."""
        states, looks_ = len(VALUES) * len(GIFTS), len(self.steps_K)
        hit_KS, moves_KSS = self._moves()
        going, reach = np.empty((looks_ + 1, states, len(PRICES))), np.zeros((looks_ + 1, states, looks_))
        going[-1], after = -1.0, np.zeros((states, len(PRICES)))
        end = np.empty((looks_ + 1, states))
        end[-1] = np.repeat(VALUES, len(GIFTS))
        for k in range(looks_ - 1, -1, -1):
            hit_S1, stays = hit_KS[k][:, None], 1.0 - self.gone_K[k]
            ended = stays * end[k + 1] + self.gone_K[k] * end[-1]
            moved = moves_KSS[k] @ np.concatenate([stays * after, stays * reach[k + 1], ended[:, None]], axis=1)
            steps = self.steps_K[k] - (self.steps_K[k - 1] if k else 0)
            paid = steps * (1.0 - 0.5 * np.maximum(hit_S1, self.gone_K[k])) * PRICES
            going[k] = hit_S1 - paid + moved[:, : len(PRICES)]
            reach[k, :, k:] = (hit_S1 + moved[:, len(PRICES) : -1])[:, k:]
            end[k] = moved[:, -1]
            after = np.maximum(going[k], 0.0)
        return Tables(going, reach, end)

    def _moves(self) -> tuple[Floats, Floats]:
        """Of the move to each look: chance to hit the target from each state, (K, S), and to be in each state after
        it, (K, S, S). Before the first look no value counts."""
        left_K = np.empty(len(self.steps_K))
        left_K[0] = self.rho
        for k in range(1, len(left_K)):
            left_K[k] = self._open(left_K[k - 1])
        sd_K = np.sqrt(left_K + 1.0 - self.rho)
        start_KY = np.tile(VALUES + self.aim, (len(left_K), 1))
        start_KY[0] = 0.0
        size_KY = unit(start_KY)
        size_KY[0] = 1.0
        mean_KU = self.mean_K[:, None] + self.spread_K[:, None] * GIFTS
        centre_KYU = start_KY[:, :, None] + size_KY[:, :, None] * mean_KU[:, None, :] - self.aim
        width_KY1 = (size_KY * (self.spread_K * sd_K)[:, None])[:, :, None]
        hit_KYU = 1.0 - ndtr(normal_score(-centre_KYU / width_KY1, self.freedom_K[:, None, None]))
        z_KYUQ = ndtri(np.clip(QUANTILES * (1.0 - hit_KYU[..., None]), 1e-6, 1.0 - 1e-6))
        value_KYUQ = centre_KYU[..., None] + width_KY1[..., None] * z_KYUQ
        np.maximum(value_KYUQ[1:], VALUES[:, None, None], out=value_KYUQ[1:])
        gift_KYUQ = self.stays * (GIFTS[:, None] + (left_K / sd_K)[:, None, None, None] * z_KYUQ)
        places, shares = _corners(np.minimum(value_KYUQ, NEAREST), gift_KYUQ)
        weights = shares * ((1.0 - hit_KYU) / len(QUANTILES))[..., None]
        return hit_KYU.reshape(len(left_K), -1), _matrices(places, weights)


@dataclass(frozen=True)
class Tables:
    """By look passed (0: none) and state: worth of going on at each price; chance to have reached the target by each
    look; expected value at the end, the target for those that get there."""

    going: Floats
    reach: Floats
    end: Floats


def _corners(value: Floats, gift: Floats) -> tuple[NDArray[np.int64], Floats]:
    """The four states around each point, and their weights: (4, ...)."""
    value, gift = np.clip(value, LOWEST, 0.0), np.clip(gift, GIFTS[0], GIFTS[-1])
    y = np.clip(np.searchsorted(VALUES, value, side="right") - 1, 0, len(VALUES) - 2)
    u = np.clip(((gift - GIFTS[0]) / (GIFTS[1] - GIFTS[0])).astype(np.int64), 0, len(GIFTS) - 2)
    a = (value - VALUES[y]) / (VALUES[y + 1] - VALUES[y])
    b = (gift - GIFTS[u]) / (GIFTS[1] - GIFTS[0])
    at = y * len(GIFTS) + u
    places = np.stack([at, at + 1, at + len(GIFTS), at + len(GIFTS) + 1])
    return places, np.stack([(1 - a) * (1 - b), (1 - a) * b, a * (1 - b), a * b])


def _matrices(places: NDArray[np.int64], shares: Floats) -> Floats:
    """Weights (4, K, Y, U, Q) of states as one matrix from state to state for each look."""
    looks_, states = places.shape[1], len(VALUES) * len(GIFTS)
    row = np.arange(looks_ * states).reshape(1, looks_, len(VALUES), len(GIFTS), 1)
    flat = np.bincount((row * states + places).reshape(-1), weights=shares.reshape(-1), minlength=looks_ * states**2)
    return flat.reshape(looks_, states, states)


def read(table: Floats, look_N: NDArray[np.int64], value_N: Floats, gift_N: Floats) -> Floats:
    """A table read at looks passed, values and gifts; before the first look the value does not count."""
    places, shares = _corners(np.where(look_N > 0, value_N, LOWEST), gift_N)
    found = table[look_N, places]
    return cast(Floats, (shares.reshape(shares.shape + (1,) * (found.ndim - 2)) * found).sum(axis=0))


def normal_score(t: Floats, freedom: Floats | float) -> Floats:
    """The normal score of a Student's t score (Wallace 1959; error below 0.02 for 3 degrees and more)."""
    size = np.sqrt(freedom * np.log1p(t**2 / freedom)) * (8.0 * freedom + 1.0) / (8.0 * freedom + 3.0)
    return np.copysign(size, t)


def _fitted(steps_K: NDArray[np.int64], values_NK: Floats, gone_K: Floats) -> Chain:
    """The likeliest law. G: pairs of rho and phi, weighed at once."""
    rho_G, stays_G = np.array([(rho, stays) for rho in SHARES for stays in STAYS]).T
    found, likelihood_G = [], -1.0 * (rho_G - 0.35) ** 2
    prior: tuple[Any, Any]
    gift_GN, left_G, prior = np.zeros((len(rho_G), len(values_NK))), rho_G, START
    for k in range(len(steps_K)):
        seen = np.isfinite(values_NK[:, max(0, k - 1) : k + 1]).all(axis=1)
        moved = values_NK[seen, k]
        if k:
            moved = (moved - values_NK[seen, k - 1]) / unit(values_NK[seen, k - 1])
        gift, own_G = gift_GN[:, seen], left_G + 1.0 - rho_G
        mean_G, spread_G = _moments(moved, gift, np.sqrt(own_G), prior)
        r = np.clip((moved - mean_G[:, None]) / spread_G[:, None], -4.0, 4.0)
        misses = (np.clip(r - gift, -3.0, 3.0) ** 2).sum(axis=1) / own_G
        likelihood_G = likelihood_G - 0.5 * (misses + len(moved) * np.log(own_G * spread_G**2))
        gift_GN[:, seen] = stays_G[:, None] * (gift + (left_G / own_G)[:, None] * (r - gift))
        left_G = _opened(left_G, rho_G, stays_G)
        found.append((mean_G, spread_G, np.full(len(rho_G), min(PRIOR + len(moved), MOST_FREEDOM))))
        prior = (FIRST, SECOND)[k] if k < 2 else (FADES * mean_G, FADES * spread_G)
    best = int(np.argmax(likelihood_G))
    mean_K, spread_K, freedom_K = np.array(found)[:, :, best].T
    return Chain(steps_K, mean_K, spread_K, freedom_K, gone_K, float(rho_G[best]), float(stays_G[best]))


def _gone(over_NK: Floats) -> Floats:
    """Chance that a trial that is on its way to a look comes to its own end there."""
    return cast(Floats, np.nansum(over_NK, axis=0) / (LASTING + np.isfinite(over_NK).sum(axis=0)))


def _opened(left: Any, rho: Any, stays: Any) -> Any:
    """Kalman's filter: variance of the gift after a move has been seen and the gift has drifted."""
    return stays**2 * left * (1.0 - rho) / (left + 1.0 - rho) + (1.0 - stays**2) * rho


def _moments(moved: Floats, gift_GN: Floats, sd_G: Floats, prior: tuple[Any, Any]) -> tuple[Floats, Floats]:
    """Mean and spread of moves, given the gifts that were believed; drawn towards the prior."""
    mean_G, spread_G = np.broadcast_to(prior[0], sd_G.shape), np.broadcast_to(prior[1], sd_G.shape)
    weight = PRIOR + len(moved)
    for _ in range(2):
        rest_GN = moved - spread_G[:, None] * gift_GN
        now_G = (PRIOR * prior[0] + rest_GN.sum(axis=1)) / weight
        squares_G = (((rest_GN - now_G[:, None]) / sd_G[:, None]) ** 2).sum(axis=1)
        mean_G = now_G
        spread_G = np.maximum(np.sqrt((PRIOR * np.square(prior[1]) + squares_G) / weight), LEAST_SPREAD)
    return mean_G, spread_G


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
