"""Honesty: a study scores what would have been forecast for its finished trials, and corrects the next.

Finished trials are cut at earlier steps and forecast as if they were still running. The normal scores at
which their true values lie would be standard normal if the forecasts were right. What they were instead, with a
standard normal worth `SHRINKAGE` trials as the prior (the posterior mean of a Dirichlet process, Ferguson 1973),
is the law that later forecasts are read through: it moves, widens, skews and reshapes them, tails included, as far
as the record bears it out. Letters: C trials, D finished ones, R replayed fractions, J knots, E edges of bins,
Q normal scores, M trials asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
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
_REPLAYED_NUMBERS = np.arange(len(REPLAYED))
REACH = 3.0  # how far, in replayed fractions, the record of one speaks for others
_NEAR = np.maximum(1.0 - np.abs(_REPLAYED_NUMBERS[:, None] - _REPLAYED_NUMBERS) / REACH, 0.0)
_NEAR[0, 1:] = _NEAR[1:, 0] = 0.0  # before its start nothing is known of a curve: another kind of forecast
SHRINKAGE = 10.0  # finished trials that the prior belief in the forecasts is worth
LEAST_REPLAYED, MOST_REPLAYED = 3, 60  # finished trials
EDGES = np.concatenate([[-7.0, -4.5], SCORES, [4.5, 7.0]])  # normal scores between which outcomes are counted
_EXPECTED = ndtr(EDGES)
# Of curves this young the record may raise chances from here upwards but not lower them: ending a trial rests on them.
YOUNG, TAIL_SCORE = 0.4, 1.9
# How far to listen to neighbours and gains, to gains alone, and to nothing but the curve; the first without a record.
MIXES = (
    (0.5, 0.3, 0.2), (0.8, 0.2, 0.0), (0.4, 0.6, 0.0), (0.0, 1.0, 0.0),
    (0.2, 0.3, 0.5), (0.0, 0.5, 0.5), (0.0, 0.0, 1.0),
)  # fmt: skip
TEMPER = 30.0  # one that would have scored worse by a thirtieth of the first's score counts e times less
# Share of the law without the curve in the law of a young curve (a defensive mixture, Hesterberg 1995).
DEFENSIVE = 0.2


@dataclass(frozen=True, slots=True)
class Record:
    """What the replays say: the normal scores of a forecast at which each of `SCORES` belongs, by fraction and knot,
    (R, J, Q)."""

    belongs: Floats

    def corrected(self, laws: Laws, fraction_M: Floats) -> Laws:
        """Laws as the record would have them at each trial's fraction of the schedule."""
        wanted = at_fraction(self.belongs, fraction_M).astype(np.float32)
        return Laws(read(laws.tables, wanted), laws.loadings, laws.freshness)


@dataclass(frozen=True, slots=True)
class Replay:
    """Finished trials cut at the replayed fraction number `place`, and what they did then: `truth` (D, J), internal
    units."""

    place: int
    rows: Rows
    trials: Cut
    truth: Floats


def replays_of(history: History, finished: Rows, scale: Scale, end: float, gap: float) -> list[Replay]:
    """Cuts the finished trials at the fractions; no replay where there are fewer than three of them."""
    if len(finished) < LEAST_REPLAYED:
        return []
    chosen = np.linspace(0, len(finished) - 1, min(len(finished), MOST_REPLAYED)).astype(np.int64)
    rows = finished[chosen]
    found = []
    for place, fraction in enumerate(REPLAYED):
        count = prefix_counts(history, rows, fraction * end)
        usable = count < history.count[rows]
        if usable.sum() >= LEAST_REPLAYED:
            part = cut(history, rows[usable], count[usable], scale, end, gap)
            truth = _truth(history, rows[usable], part, scale).astype(np.float32)
            found.append(Replay(place, rows[usable], part, truth))
    return found


def record_of(replays: Sequence[Replay], said: Sequence[Floats]) -> Record:
    """What the replays say about later forecasts; `said` are their tables (D, J, Q). Each fraction also learns from
    those near by."""
    known, counted = np.zeros((len(REPLAYED), 1, 1)), np.zeros((len(REPLAYED), KNOTS, len(EDGES)))
    for replay, tables in zip(replays, said, strict=True):
        z = np.clip(scores_at(tables, replay.truth), -6.0, 6.0)
        known[replay.place] = len(z)
        counted[replay.place] = (z[:, :, None] <= EDGES).sum(axis=0)
    known, counted = (np.tensordot(_NEAR, side, 1) for side in (known, counted))
    law = (SHRINKAGE * _EXPECTED + counted) / (SHRINKAGE + known)
    law[:, :, 0], law[:, :, -1] = 0.0, 1.0
    belongs = np.array([[np.interp(_LEVELS, of_knot, EDGES) for of_knot in of_place] for of_place in law])
    held = (SCORES > TAIL_SCORE) & (REPLAYED < YOUNG)[:, None, None]
    return Record(np.where(held, np.maximum(belongs, SCORES), belongs))


def best_mixes(replays: Sequence[Replay], told: Sequence[tuple[Floats, ...]]) -> Floats:
    """How far to listen at each fraction, (R, 3): the mean of `MIXES`, weighed by how each would have scored on the
    finished trials there and near by (Vovk 1990). `told`: tables of the end (D, Q) of each replay by how much was
    listened to."""
    totals = np.zeros((len(REPLAYED), len(MIXES)))
    for replay, (full, deaf, alone) in zip(replays, told, strict=True):
        scores = [_table_crps(a * full + b * deaf + c * alone, replay.truth[:, -1]).mean() for a, b, c in MIXES]
        totals[replay.place] = np.array(scores) / max(scores[0], 1e-9)
    totals = _NEAR @ totals
    weight = np.exp(-TEMPER * (totals - totals.min(axis=1, keepdims=True)))
    result: Floats = weight / weight.sum(axis=1, keepdims=True) @ np.array(MIXES)
    return result


def at_fraction(record: Floats, fraction_M: Floats) -> Floats:
    """What is kept for each replayed fraction (R, ...) at others, (M, ...), straight between."""
    at = np.interp(fraction_M, REPLAYED, _REPLAYED_NUMBERS)
    low = np.minimum(at.astype(np.int64), len(REPLAYED) - 2)
    part = (at - low).reshape((-1,) + (1,) * (record.ndim - 1))
    result: Floats = record[low] + part * (record[low + 1] - record[low])
    return result


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


_TAILS, _SIDES = ndtr(-np.abs(SCORES.astype(np.float64))), np.where(SCORES > 0, 1.0, -1.0)
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
    if not share.any():
        return tables_MJQ
    ratio = _TAILS / np.maximum(share, 1e-9)[:, None]
    score = _SIDES * np.interp(1.0 - ratio, _SHARES, _SHARE_SCORES)
    end = level_M[:, None] + sd_M[:, None] * score
    bound = last_M[:, None, None] + path_MJ[:, :, None] * (end - last_M[:, None])[:, None, :]
    raised = np.where(_SIDES > 0, np.maximum(tables_MJQ, bound), np.minimum(tables_MJQ, bound))
    useful = (ratio < 1.0)[:, None, :]
    return np.where(useful, raised, tables_MJQ).astype(np.float32)
