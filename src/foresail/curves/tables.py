"""Quantile tables: a law as its values at fixed normal scores, straight between them and beyond the last.

A table's last axis has one value for each of `SCORES`, increasing. Letters: Q normal scores.
"""

from __future__ import annotations

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
    k = int(np.clip(np.searchsorted(SCORES, score) - 1, 0, LAST - 1))
    return k, np.float32((score - SCORES[k]) / (SCORES[k + 1] - SCORES[k]))


def quantile_at(table: Floats, score: float) -> Floats:
    """Tables (..., Q) read at one normal score, (...)."""
    k, part = segment(score)
    return table[..., k] + part * (table[..., k + 1] - table[..., k])


def scores_at(table: Floats, values: Floats | np.float32) -> Floats:
    """Normal scores at which tables (..., Q) hold `values`: the inverse of reading them."""
    shape = np.broadcast_shapes(table.shape[:-1], np.shape(values))
    if np.prod(shape) < _FEW:
        k = (np.asarray(values)[..., None] >= table[..., 1:LAST]).sum(axis=-1, dtype=np.int8)
    else:  # the tables of many steps lie score by score in memory
        k = np.zeros(shape, dtype=np.int8)
        for j in range(1, LAST):
            k += values >= table[..., j]
    low, high = pick(table, k, shape), pick(table, k + np.int8(1), shape)
    part = values - low
    high -= low
    np.maximum(high, _LEAST, out=high)
    with np.errstate(over="ignore"):
        part /= high
    part *= _GAPS[k]
    part += SCORES[k]
    return np.clip(part, -FARTHEST, FARTHEST)


_GAPS = np.diff(SCORES)


def pick(table: Floats, k: Floats, shape: tuple[int, ...]) -> Floats:
    """Entry `k` of each table, (...) of the given shape; a copy."""
    wide = np.broadcast_to(table, (*shape, table.shape[-1]))
    return np.take_along_axis(wide, k[..., None].astype(np.intp), axis=-1)[..., 0]


def read(table: Floats, scores: Floats) -> Floats:
    """Tables (..., Q) read at other normal scores (..., P) of their own, straight beyond the ends."""
    k = np.clip(np.searchsorted(SCORES, scores) - 1, 0, LAST - 1)
    part = (scores - SCORES[k]) / _GAPS[k]
    low = np.take_along_axis(table, k, axis=-1)
    result: Floats = low + part * (np.take_along_axis(table, k + 1, axis=-1) - low)
    return result
