"""Honesty: a study scores what would have been forecast for its finished trials, and corrects the next.

Finished trials are cut at earlier steps and forecast as if they were still running. The normal scores at
which their true values lie would be standard normal if the forecasts were right. Their mean and spread,
shrunk towards 0 and 1, move and widen later forecasts; their upper tail, counted, keeps small chances from
being smaller than the record allows. Letters: C trials, D finished ones, R replayed fractions, J knots,
Q normal scores, M trials asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foresail.curves.history import History
from foresail.curves.network import KNOTS, Laws, knot_lags
from foresail.curves.normal import ndtr, ndtri
from foresail.curves.posterior import Cut, Rows, cut
from foresail.curves.scale import FLOOR, Scale
from foresail.curves.tables import SCORES, read, scores_at

Floats = NDArray[Any]

REPLAYED = np.array([0.0, 0.06, 0.12, 0.25, 0.45, 0.65, 0.85])  # fractions of the schedule
SHRINKAGE = 15.0  # finished trials that the prior belief in the forecasts is worth
LEAST_REPLAYED, MOST_REPLAYED = 3, 60  # finished trials
TAIL_SCORE = 1.645  # the upper 5 %
WIDEST = 2.0  # largest correction of the spread
# Share of the law without the curve in the law of a young curve (a defensive mixture, Hesterberg 1995).
DEFENSIVE = 0.2


@dataclass(frozen=True, slots=True)
class Record:
    """What the replays say, by fraction (R,) and knot (J,): normal score z of a forecast belongs at shift
    + spread z."""

    shift: Floats  # (R, J)
    spread: Floats  # (R, J)
    upper: Floats  # (R,): further stretch of the upper side

    def corrected(self, laws: Laws, fraction_M: Floats) -> Laws:
        """Laws moved and widened by what the record says at each trial's fraction of the schedule."""
        at = np.interp(fraction_M, REPLAYED, np.arange(len(REPLAYED)))
        low = np.minimum(at.astype(np.int64), len(REPLAYED) - 2)
        part = at - low
        shift = self.shift[low] + part[:, None] * (self.shift[low + 1] - self.shift[low])
        spread = self.spread[low] + part[:, None] * (self.spread[low + 1] - self.spread[low])
        upper = self.upper[low] + part * (self.upper[low + 1] - self.upper[low])
        wanted = SCORES * np.where(SCORES > 0, upper[:, None], 1.0)
        wanted = shift[:, :, None] + spread[:, :, None] * wanted[:, None, :]
        return Laws(read(laws.tables, wanted.astype(np.float32)), laws.loadings, laws.freshness)


@dataclass(frozen=True, slots=True)
class Replays:
    """Forecasts of finished trials at the replayed fractions, and what came of them: lists over R; None where
    fewer than three trials could be replayed. `tables` (D, J, Q) and `truth` (D, J) in internal units."""

    tables: tuple[Floats | None, ...]
    truth: tuple[Floats | None, ...]


def replay(
    history: History,
    finished: Rows,
    scale: Scale,
    end: float,
    gap: float,
    laws_of: Callable[[Cut, Rows], Laws],
) -> Replays | None:
    """Cuts the finished trials at the fractions and forecasts them; None with fewer than three of them."""
    if len(finished) < LEAST_REPLAYED:
        return None
    chosen = np.linspace(0, len(finished) - 1, min(len(finished), MOST_REPLAYED)).astype(np.int64)
    rows = finished[chosen]
    tables: list[Floats | None] = []
    truth: list[Floats | None] = []
    for fraction in REPLAYED:
        count = prefix_counts(history, rows, fraction * end)
        usable = count < history.count[rows]
        if usable.sum() < LEAST_REPLAYED:
            tables.append(None)
            truth.append(None)
            continue
        part = cut(history, rows[usable], count[usable], scale, end, gap)
        tables.append(laws_of(part, rows[usable]).tables)
        truth.append(_truth(history, rows[usable], part, scale).astype(np.float32))
    return Replays(tuple(tables), tuple(truth))


def record_of(replays: Replays) -> Record:
    """What the replays say about later forecasts."""
    shift, spread = np.zeros((len(REPLAYED), KNOTS)), np.ones((len(REPLAYED), KNOTS))
    upper = np.ones(len(REPLAYED))
    for r, (tables, truth) in enumerate(zip(replays.tables, replays.truth, strict=True)):
        if tables is None or truth is None:
            continue
        z = scores_at(tables, truth)
        shift[r], spread[r] = _moments(np.clip(z, -3.0, 3.0))
        upper[r] = _tail((z[:, -1] - shift[r, -1]) / spread[r, -1])
    return Record(shift, spread, upper)


def best_share(listening: Replays | None, deaf: Replays | None, shares: Sequence[float]) -> float:
    """The share of `deaf` forecasts that would have scored best on the finished trials, averaged over
    fractions.

    The first of `shares` has the benefit of the doubt: others must beat it by 2 %.
    """
    if listening is None or deaf is None:
        return shares[0]
    totals = np.zeros(len(shares))
    for heard, own, truth in zip(listening.tables, deaf.tables, listening.truth, strict=True):
        if heard is None or own is None or truth is None:
            continue
        parts = [
            _table_crps(heard[:, -1] + s * (own[:, -1] - heard[:, -1]), truth[:, -1]).mean() for s in shares
        ]
        totals += np.array(parts) / max(parts[0], 1e-9)
    best = int(np.argmin(totals))
    return shares[best] if totals[best] < 0.98 * totals[0] else shares[0]


def _table_crps(table_DQ: Floats, truth_D: Floats) -> Floats:
    """CRPS of tables as twice the mean quantile loss over their scores."""
    missed = truth_D[:, None] - table_DQ
    result: Floats = 2.0 * (np.where(missed > 0, missed, 0.0) - (1.0 - _LEVELS) * missed) @ _LEVEL_MASS
    return result


_LEVELS = ndtr(SCORES.astype(np.float64))
_EDGES = np.concatenate([[0.0], 0.5 * (_LEVELS[1:] + _LEVELS[:-1]), [1.0]])
_LEVEL_MASS = np.diff(_EDGES)


def prefix_counts(history: History, rows: Rows, step: float) -> Rows:
    """How many points trials had at a step, (D,); at least one but at step 0."""
    if step <= 0:
        return np.zeros(len(rows), dtype=np.int64)
    known = np.arange(history.steps.shape[1]) < history.count[rows, None]
    result: Rows = np.maximum(((history.steps[rows] <= step) & known).sum(axis=1), 1)
    return result


def _truth(history: History, rows: Rows, part: Cut, scale: Scale) -> Floats:
    """What the trials did at their knots, (D, J), internal units; a lost one is on the floor after its
    last point."""
    steps = part.last_step[:, None] + knot_lags(part.remaining) * part.spacing[:, None]
    truth = np.empty(steps.shape)
    for i, row in enumerate(rows):
        n = history.count[row]
        inner = scale.inside(history.values[row, :n])
        right = FLOOR if history.lost[row] else inner[-1]
        truth[i] = np.interp(steps[i], history.steps[row, :n], inner, right=right)
    return truth


def _moments(z_DJ: Floats) -> tuple[Floats, Floats]:
    """Shrunk mean and spread at each knot."""
    n = len(z_DJ)
    shift = z_DJ.sum(axis=0) / (n + SHRINKAGE)
    square = ((z_DJ - shift) ** 2).sum(axis=0) + SHRINKAGE * (1.0 + shift**2)
    return shift, np.clip(np.sqrt(square / (n + SHRINKAGE)), 1.0 / WIDEST, WIDEST)


def _tail(z_D: Floats) -> float:
    """Stretch of the upper side under which the share above 5 % is what was counted, with a Beta(1, 19)
    prior."""
    share = (1.0 + (z_D > TAIL_SCORE).sum()) / (20.0 + len(z_D))
    return float(np.clip(TAIL_SCORE / ndtri(1.0 - max(share, 0.05)), 1.0, WIDEST))


_SHARES = np.concatenate([[0.0], np.geomspace(1e-6, 0.5, 60), 1.0 - np.geomspace(0.49, 1e-6, 60), [1.0]])
_SHARE_SCORES = ndtri(np.clip(_SHARES, 1e-7, 1.0 - 1e-7))


def defended(
    tables_MJQ: Floats, last_M: Floats, level_M: Floats, sd_M: Floats, fraction_M: Floats, path_MJ: Floats
) -> Floats:
    """Tails no thinner than a small share of what would be said without the curve.

    Args:
        last_M: where each curve stands. level_M, sd_M: what its end would be thought to be without it.
        fraction_M: of the schedule seen; the share falls to nothing half-way.
        path_MJ: how much of the way to the end each knot is, 0 to 1.
    """
    share = DEFENSIVE * np.maximum(1.0 - 2.0 * fraction_M, 0.0)
    tail = ndtr(-np.abs(SCORES.astype(np.float64)))
    ratio = tail[None, :] / np.maximum(share, 1e-9)[:, None]
    score = np.where(SCORES > 0, 1.0, -1.0) * np.interp(1.0 - ratio, _SHARES, _SHARE_SCORES)
    end = level_M[:, None] + sd_M[:, None] * score
    bound = last_M[:, None, None] + path_MJ[:, :, None] * (end - last_M[:, None])[:, None, :]
    raised = np.where(SCORES > 0, np.maximum(tables_MJQ, bound), np.minimum(tables_MJQ, bound))
    useful = (ratio < 1.0)[:, None, :]
    return np.where(useful, raised, tables_MJQ).astype(np.float32)
