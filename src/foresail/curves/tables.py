"""Quantile tables: a law as its values at fixed normal scores, straight between them and beyond the last.

A table's last axis has one value for each of `SCORES`, increasing. Letters: Q normal scores.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foresail.curves.normal import density, ndtr

Floats = NDArray[Any]

# Dense where the mass is, out to one in a thousand.
SCORES = np.array(
    [-3.1, -2.5, -2.0, -1.55, -1.15, -0.8, -0.5, -0.25, 0.0, 0.25, 0.5, 0.8, 1.15, 1.55, 2.0, 2.5, 3.1],
    dtype=np.float32,
)
LAST = len(SCORES) - 1
FARTHEST = np.float32(12.0)  # scores are held within this; it is never passed
_LEAST = np.float32(1e-12)
_FEW = 2000


def _mean_weights() -> Floats:
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


MEAN_WEIGHTS = _mean_weights()  # a table times these is its mean: the exact integral of its straight lines


def segment(score: float) -> tuple[int, np.float32]:
    """The interval of `SCORES` that holds a score (the end ones go on for ever), and how far into it."""
    k = min(max(bisect_left(_SCORES, score) - 1, 0), LAST - 1)
    return k, np.float32((score - _SCORES[k]) / (_SCORES[k + 1] - _SCORES[k]))


_SCORES = SCORES.tolist()


def quantile_at(table: Floats, score: float) -> Floats:
    """Tables (..., Q) read at one normal score, (...)."""
    k, part = segment(score)
    return table[..., k] + part * (table[..., k + 1] - table[..., k])


def scores_at(table: Floats, values: Floats | np.float32) -> Floats:
    """Normal scores at which tables (..., Q) hold `values`: the inverse of reading them."""
    together = np.broadcast(table[..., 0], values)
    if together.size < _FEW:
        k = (np.asarray(values)[..., None] >= table[..., 1:LAST]).sum(axis=-1, dtype=np.intp)
    else:  # the tables of many steps lie score by score in memory
        few = np.zeros(together.shape, dtype=np.int8)
        for j in range(1, LAST):
            few += values >= table[..., j]
        k = few.astype(np.intp)
    flat, place = _places(table, k)
    low = flat.take(place)
    place += 1
    high = np.maximum(flat.take(place) - low, _LEAST)
    part = values - low
    with np.errstate(over="ignore"):
        part /= high
    part *= GAPS.take(k)
    part += SCORES.take(k)
    held: Floats = np.maximum(np.minimum(part, FARTHEST), -FARTHEST)
    return held


GAPS = np.diff(SCORES)


def read(table: Floats, scores: Floats) -> Floats:
    """Tables (..., Q) read at other normal scores (..., P) of their own, straight beyond the ends."""
    k = np.minimum(np.maximum(np.searchsorted(SCORES, scores) - 1, 0), LAST - 1)
    flat, place = _places(table[..., None, :], k)
    low = flat.take(place)
    place += 1
    result: Floats = low + (scores - SCORES.take(k)) / GAPS.take(k) * (flat.take(place) - low)
    return result


def _places(table: Floats, k: Floats) -> tuple[Floats, Floats]:
    """The tables as one line of numbers, and where entry `k` (broadcast) of each lies in it."""
    lead = table.shape[:-1]
    start = np.arange(0, table.size, table.shape[-1]).reshape(lead)
    return np.ascontiguousarray(table).reshape(-1), start + k
