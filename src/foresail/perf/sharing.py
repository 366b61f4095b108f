"""Two jobs on one device: how much each slows down.

Little about a pair can be foreseen from data sheets, so pairs are learned from pairs: the log slowdown of a
job beside another is a Gaussian process over (device, job, other job). Jobs are alike when they are the same
workload at a near batch size, and a little when their steps take alike long. Shapes: N ordered pairs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from foresail.errors import CallerError
from foresail.perf.fitting import Prediction
from foresail.perf.rows import Floats, identity

_MEAN = 0.55  # of the log slowdown, before any pair is seen: two busy jobs nearly halve each other
_ALL_SD, _DEVICE_SD, _JOB_SD, _OTHER_SD, _PAIR_SD, _NOISE_SD = 0.4, 0.05, 0.4, 0.2, 0.4, 0.06
_ACROSS_DEVICES = 0.25  # correlation of one pair's deviation on two kinds of device
_SAME_SHAPE = 0.1  # correlation of two workloads whose steps take equally long
_BATCH_LENGTH, _TIME_LENGTH = 7.0, 2.5  # in doublings
_DEGREES = 4.0


class Sharer(NamedTuple):
    """A job on a device: its workload, its batch size (None: not known) and its seconds per step alone."""

    workload: str
    batch: float | None
    alone_s: float


class Pair(NamedTuple):
    """`job` shares `device` with `other`."""

    device: str
    job: Sharer
    other: Sharer


@dataclasses.dataclass(frozen=True, slots=True)
class _Pairs:
    """N pairs as arrays: identities of device and workloads, log2 of batch and seconds; [N] and [2, N]."""

    device: Floats
    workload: Floats
    batch: Floats
    seconds: Floats


@dataclasses.dataclass(frozen=True, slots=True)
class SharingFit:
    """What measured pairs taught."""

    pairs: _Pairs
    factor: Floats
    weights: Floats


def fit_sharing(pairs: Sequence[Pair], slowdowns: ArrayLike) -> SharingFit:
    """Learn from measured slowdowns (N ratios of a step's seconds shared to alone).

    Raises:
        CallerError: there are none, not as many as pairs, or one is not a positive finite number.
    """
    from scipy.linalg import cho_solve, solve_triangular

    values = np.asarray(slowdowns, float)
    if len(pairs) == 0 or values.shape != (len(pairs),) or not (np.isfinite(values) & (values > 0)).all():
        raise CallerError(
            f"{values.size} slowdowns for {len(pairs)} pairs", allowed="one positive finite ratio for each"
        )
    arrays = _arrays(pairs)
    kernel, surprise = _kernel(arrays, arrays), np.log(values) - _MEAN
    noise = np.full(len(values), _NOISE_SD**2)
    for _ in range(3):
        factor = np.linalg.cholesky(kernel + np.diag(noise))
        weights: Floats = cho_solve((factor, True), surprise)
        own = (solve_triangular(factor, np.eye(len(values)), lower=True) ** 2).sum(0)
        noise = _NOISE_SD**2 * np.maximum(1.0, (_DEGREES + weights**2 / own) / (_DEGREES + 1.0))
    return SharingFit(arrays, factor, weights)


def predict_sharing(model: SharingFit | None, pairs: Sequence[Pair]) -> Prediction:
    """The slowdown of each pair's `job`, at least 1 in the median."""
    from scipy.linalg import solve_triangular

    arrays = _arrays(pairs)
    var = np.full(len(pairs), _ALL_SD**2 + _DEVICE_SD**2 + _JOB_SD**2 + _OTHER_SD**2 + _PAIR_SD**2)
    if model is None:
        return Prediction(np.full(len(pairs), _MEAN), np.sqrt(var))
    cross = _kernel(arrays, model.pairs)
    known = solve_triangular(model.factor, cross.T, lower=True)
    left = np.maximum(var - (known**2).sum(0), 0.0) + _NOISE_SD**2
    return Prediction(np.maximum(_MEAN + cross @ model.weights, 0.0), np.sqrt(left))


def _arrays(pairs: Sequence[Pair]) -> _Pairs:
    sides = [[p.job for p in pairs], [p.other for p in pairs]]
    return _Pairs(
        np.array([identity(p.device) for p in pairs], float),
        np.array([[identity(s.workload) for s in side] for side in sides], float),
        np.log2([[s.batch or 1.0 for s in side] for side in sides]),
        np.log2([[s.alone_s for s in side] for side in sides]),
    )


def _kernel(a: _Pairs, b: _Pairs) -> Floats:
    device = np.where(a.device[:, None] == b.device[None], 1.0, _ACROSS_DEVICES)
    job, other = (_alike(a, b, side) for side in (0, 1))
    own = _DEVICE_SD**2 + _JOB_SD**2 * job + _OTHER_SD**2 * other + _PAIR_SD**2 * job * other
    kernel: Floats = _ALL_SD**2 + device * own
    return kernel


def _alike(a: _Pairs, b: _Pairs, side: int) -> Floats:
    same = a.workload[side][:, None] == b.workload[side][None]
    batch = np.abs(a.batch[side][:, None] - b.batch[side][None])
    seconds = np.abs(a.seconds[side][:, None] - b.seconds[side][None])
    shape = _SAME_SHAPE * np.exp(-seconds / _TIME_LENGTH)
    alike: Floats = shape + (1 - _SAME_SHAPE) * same * np.exp(-batch / _BATCH_LENGTH)
    return alike
