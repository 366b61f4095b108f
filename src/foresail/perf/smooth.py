"""Seconds of a step at hyperparameters and widths where none was measured: their logarithm as a Gaussian process.

A constant; a straight line in each knob (most costs are powers of batch size, width or depth); a smooth rest with one
length for each knob, so that knobs that touch nothing drop out; a line in the logarithm of the width, for the speed-up;
and a deviation of each trial's own (Rasmussen and Williams 2006, sections 2.7 and 5.1). Lengths and deviations are
those of highest posterior density.

Letters: N sites (a trial at a width), M places asked for, K knobs, P lengths and deviations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from foresail.perf.rows import Floats, Ints

SPEEDUP, SPEEDUP_SD = 0.8, 0.3
"""Exponent of the speed-up before trials have run at several widths, and its deviation."""
MOST_SITES = 192
"""Sites that a process rests on: the latest."""
_MOST_FITTED = 64
"""Of these, how many its deviations are fitted on."""
_ITERATIONS = 20
_LEVEL_VAR = 4.0
"""Of the constant, around the median of what was measured."""
_LENGTH, _LENGTH_SD = 0.3, 1.0
"""Log of a length in units of sqrt(K), and the deviation of that log."""
_PRIOR = ((math.log(0.5), 1.0), (math.log(0.4), 0.7), (math.log(0.3), 1.0))
"""(mean, deviation) of the logs of the deviations: of the smooth rest, of a slope over a knob's range, of a trial.

Chosen among a few by how well unseen trials of recorded studies were foreseen (`benchmarks/perf/studies.py`).
"""
_CURVED = (0.5, 0.0, -1.5)
"""A second start of the search, from the prior: a smooth rest that explains nearly all. There are two hills."""
_FARTHEST = 4.0
"""Prior deviations that the search may go from the prior."""


class Sites(NamedTuple):
    """Where and of whom: `unit` [N, K] hyperparameters in the unit cube, `log_width` [N], `trial` [N] numbers."""

    unit: Floats
    log_width: Floats
    trial: Ints

    def take(self, index: Ints | slice) -> Sites:
        return Sites(self.unit[index], self.log_width[index], self.trial[index])


@dataclass(frozen=True, slots=True)
class Smooth:
    """A fitted process: `pull` [N], `inverse` [N, N]; `found` [P] logs of lengths and deviations.

    `speedup`, `speedup_sd`: exponent of the width.
    """

    sites: Sites
    middle: float
    found: Floats
    pull: Floats
    inverse: Floats
    speedup: float
    speedup_sd: float

    def predict(self, unit_MK: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the logarithm of seconds of new trials at width 1, [M] each."""
        smooth, line = _parts(unit_MK, self.sites.unit, self.found)
        across = smooth + line + _LEVEL_VAR
        _, slope, amplitude = _split(self.found)
        alone = amplitude**2 + slope**2 * ((unit_MK - 0.5) ** 2).sum(1) + _LEVEL_VAR
        left = alone - ((across @ self.inverse) * across).sum(1)
        return self.middle + across @ self.pull, np.sqrt(np.maximum(left, 0.0) + np.exp(2.0 * self.found[-1]))


def fit_smooth(sites: Sites, log_seconds_N: Floats, noise_N: Floats) -> Smooth:
    """The process through the logarithms of what was measured, each with its error's variance; N is 1 or more."""
    latest = slice(-MOST_SITES, None)
    sites, noise = sites.take(latest), noise_N[latest]
    value = log_seconds_N[latest] + SPEEDUP * sites.log_width
    middle = float(np.median(value))
    some = np.unique(np.linspace(0, len(value) - 1, min(len(value), _MOST_FITTED)).round().astype(np.int64))
    found = _found(sites.take(some), value[some] - middle, noise[some])
    inverse = np.linalg.inv(sum(_parts(sites.unit, sites.unit, found)) + _rest(sites, noise, found))
    pull, wide = inverse @ (value - middle), SPEEDUP_SD**2 * sites.log_width
    return Smooth(
        sites,
        middle,
        found,
        pull,
        inverse,
        speedup=float(SPEEDUP - wide @ pull),
        speedup_sd=math.sqrt(max(0.0, SPEEDUP_SD**2 - wide @ inverse @ wide)),
    )


def _split(found: Floats) -> tuple[Floats, float, float]:
    """Lengths [K], deviation of slopes, of the smooth rest."""
    return np.exp(found[:-3]), float(np.exp(found[-2])), float(np.exp(found[-3]))


def _parts(a: Floats, b: Floats, found: Floats) -> tuple[Floats, Floats]:
    """Covariance of the smooth rest, and of the lines."""
    lengths, slope, amplitude = _split(found)
    left, right = a / lengths, b / lengths
    square = (left**2).sum(1)[:, None] + (right**2).sum(1) - 2.0 * left @ right.T
    return amplitude**2 * np.exp(-0.5 * np.maximum(square, 0.0)), slope**2 * (a - 0.5) @ (b - 0.5).T


def _rest(sites: Sites, noise: Floats, found: Floats) -> Floats:
    """Covariance of all else: level, speed-up, what is a trial's own, errors."""
    fixed = _LEVEL_VAR + SPEEDUP_SD**2 * np.outer(sites.log_width, sites.log_width) + np.diag(noise)
    return np.asarray(fixed + np.exp(2.0 * found[-1]) * _same(sites))


def _same(sites: Sites) -> Floats:
    return np.asarray(sites.trial[:, None] == sites.trial[None, :], dtype=float)


def _found(sites: Sites, value: Floats, noise: Floats) -> Floats:
    """[P] of highest posterior density."""
    from scipy.optimize import minimize

    knobs = sites.unit.shape[1]
    length = _LENGTH + 0.5 * math.log(max(knobs, 1))
    mean = np.array([*(length for _ in range(knobs)), *(m for m, _ in _PRIOR)])
    sd = np.array([*(_LENGTH_SD for _ in range(knobs)), *(s for _, s in _PRIOR)])
    square = (sites.unit[:, None, :] - sites.unit[None, :, :]) ** 2
    same = _same(sites)

    def loss(found: Floats) -> tuple[float, Floats]:
        smooth, line = _parts(sites.unit, sites.unit, found)
        inverse = np.linalg.inv(smooth + line + _rest(sites, noise, found))
        pull, (_, log_det) = inverse @ value, np.linalg.slogdet(inverse)
        slack = inverse - np.outer(pull, pull)
        by_length = 0.5 * np.einsum("ij,ijk->k", slack * smooth, square) * np.exp(-2.0 * found[:-3])
        rest = [(slack * smooth).sum(), (slack * line).sum(), np.exp(2.0 * found[-1]) * (slack * same).sum()]
        off = (found - mean) / sd
        total = 0.5 * value @ pull - 0.5 * log_det + 0.5 * off @ off
        return float(total), np.array([*by_length, *rest]) + off / sd

    bounds = [(m - _FARTHEST * s, m + _FARTHEST * s) for m, s in zip(mean, sd, strict=True)]
    curved = mean + np.array([*(-length for _ in range(knobs)), *_CURVED])
    ways = [
        minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _ITERATIONS})
        for start in (mean, curved)
    ]
    return np.asarray(min(ways, key=lambda way: float(way.fun)).x)
