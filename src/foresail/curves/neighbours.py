"""The global view: what the other trials of the study say about a trial's final value.

Every trial brings a site: the mean and variance of its own final value with the shipped prior divided out
(a finished trial brings its value). A Gaussian process over the hyperparameters with one length scale a
knob (Rasmussen and Williams 2006, sec. 5.1) smooths them; a trial is told what the others imply for it by
leaving its own site out (their eq. 5.12). Without hyperparameters the process has only its mean.
Letters: C trials, N sites, K knobs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[Any]

MOST_SITES = 256  # trials that the process rests on: those that know most about their end
MOST_FITTED = 64  # of these, how many its length scales are fitted on
ITERATIONS = 14
USELESS = 10.0  # variance from which a site says nothing
# Priors on the logarithms (mean, sd): length scale in units of sqrt(K), amplitude, nugget; internal units.
_LENGTH_SD, _AMPLITUDE, _NUGGET = 0.8, (np.log(0.25), 0.6), (np.log(0.03), 0.8)
PRIOR_SD = 0.36  # spread of final values about which nothing is known


@dataclass(frozen=True, slots=True)
class Neighbours:
    """A fitted process. `level`, `level_sd`: what the others say, for each of the trials it was fitted on
    (C,)."""

    level: Floats
    level_sd: Floats
    sites: Floats  # (N, K), divided by the length scales
    centre: float
    amplitude: float  # variance of the process
    nugget: float
    pull: Floats  # K^-1 (m - centre), (N,)
    inverse: Floats  # K^-1, (N, N)
    lengths: Floats  # (K,)

    def predict(self, features_MK: Floats) -> tuple[Floats, Floats]:
        """Mean and sd of the final value of trials that it was not fitted on, (M,) each."""
        if not len(self.pull):
            return np.full(len(features_MK), self.centre), np.full(len(features_MK), PRIOR_SD)
        if features_MK.shape[1] == 0 and len(features_MK) > 1:  # nothing tells them apart
            level, sd = self.predict(features_MK[:1])
            return np.repeat(level, len(features_MK)), np.repeat(sd, len(features_MK))
        cross = self.amplitude * _kernel(features_MK / self.lengths, self.sites)
        explained = ((cross @ self.inverse) * cross).sum(axis=1)
        variance = self.amplitude + self.nugget - explained
        return self.centre + cross @ self.pull, np.sqrt(np.maximum(variance, 1e-4))


def fit_neighbours(features_CK: Floats, mean_C: Floats, noise_C: Floats) -> Neighbours:
    """Fits the process to the sites `mean_C` with variances `noise_C` (at least `USELESS`: nothing known)."""
    trials = len(mean_C)
    known = np.flatnonzero(noise_C < USELESS)
    if len(known) < 3:
        return _nothing(features_CK, mean_C[known])
    order = known[np.argsort(noise_C[known], kind="stable")][:MOST_SITES]
    chosen = np.sort(order)
    x, m, v = features_CK[chosen], mean_C[chosen], noise_C[chosen]
    base = float(np.average(m, weights=1.0 / (v + 0.05)))
    subset = np.unique(np.linspace(0, len(chosen) - 1, min(len(chosen), MOST_FITTED)).round().astype(np.int64))
    lengths, amplitude, nugget, centre = _maximise(x[subset], m[subset], v[subset], base)
    scaled = x / lengths
    covariance = amplitude * _kernel(scaled, scaled) + np.diag(v + nugget)
    inverse = np.linalg.inv(covariance)
    pull = inverse @ (m - centre)
    empty = np.zeros(0)
    process = Neighbours(empty, empty, scaled, centre, amplitude, nugget, pull, inverse, lengths)
    level, sd = process.predict(features_CK)
    own = np.diag(inverse)
    level[chosen] = m - pull / own
    sd[chosen] = np.sqrt(np.maximum(1.0 / own - v, 1e-4))
    assert len(level) == trials
    return Neighbours(level, sd, scaled, centre, amplitude, nugget, pull, inverse, lengths)


def _nothing(features_CK: Floats, known: Floats) -> Neighbours:
    trials, knobs = features_CK.shape
    centre = float(known.mean()) if len(known) else 0.4
    spread = PRIOR_SD if len(known) else 9.0
    none = np.zeros(0)
    return Neighbours(np.full(trials, centre), np.full(trials, spread), np.zeros((0, knobs)), centre,
    spread**2, 0.0,
                      none, np.zeros((0, 0)), np.ones(knobs))  # fmt: skip


def _kernel(a: Floats, b: Floats) -> Floats:
    """Squared-exponential correlations of scaled points, (A, B)."""
    if a.shape[1] == 0:
        return np.ones((len(a), len(b)))
    square = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1) - 2.0 * (a @ b.T)
    result: Floats = np.exp(-0.5 * np.maximum(square, 0.0))
    return result


def _maximise(x: Floats, m: Floats, v: Floats, base: float) -> tuple[Floats, float, float, float]:
    """Length scales (K,), variance, nugget variance and centre of highest posterior density."""
    from scipy.optimize import minimize

    knobs = x.shape[1]
    square = (x[:, None, :] - x[None, :, :]) ** 2
    prior_mean = np.array([*np.full(knobs, 0.5 * np.log(max(knobs, 1))), _AMPLITUDE[0], _NUGGET[0], base])
    prior_sd = np.array([*np.full(knobs, _LENGTH_SD), _AMPLITUDE[1], _NUGGET[1], 0.2])

    def objective(p: Floats) -> tuple[float, Floats]:
        return _negative_log_posterior(p, square, m, v, prior_mean, prior_sd)

    found = minimize(objective, prior_mean, jac=True, method="L-BFGS-B", options={"maxiter": ITERATIONS})
    p = np.clip(found.x, prior_mean - 6 * prior_sd, prior_mean + 6 * prior_sd)
    return (
        np.exp(p[:knobs]),
        float(np.exp(2 * p[knobs])),
        float(np.exp(2 * p[knobs + 1])),
        float(p[knobs + 2]),
    )


def _negative_log_posterior(
    p: Floats, square: Floats, m: Floats, v: Floats, prior_mean: Floats, prior_sd: Floats
) -> tuple[float, Floats]:
    knobs = square.shape[2]
    p = np.clip(p, prior_mean - 8 * prior_sd, prior_mean + 8 * prior_sd)
    precision = np.exp(-2 * p[:knobs])
    variance, nugget = np.exp(2 * p[knobs]), np.exp(2 * p[knobs + 1])
    smooth = square @ (-0.5 * precision)
    np.exp(smooth, out=smooth)
    smooth *= variance
    covariance = smooth.copy()
    covariance.flat[:: len(m) + 1] += v + nugget + 1e-8
    half_log_determinant, inverse = _inverted(covariance)
    residual = m - p[knobs + 2]
    pull = inverse @ residual
    away = (p - prior_mean) / prior_sd
    value = 0.5 * (residual @ pull + away @ away) + half_log_determinant
    slope = 0.5 * (inverse - pull[:, None] * pull)
    smooth *= slope
    gradient = np.empty_like(p)
    gradient[:knobs] = (smooth.reshape(-1) @ square.reshape(len(m) ** 2, knobs)) * precision
    gradient[knobs] = 2.0 * smooth.sum()
    gradient[knobs + 1] = 2.0 * nugget * slope.trace()
    gradient[knobs + 2] = -pull.sum()
    return float(value), gradient + away / prior_sd


def _inverted(covariance: Floats) -> tuple[float, Floats]:
    """Half the logarithm of its determinant, and its inverse; `covariance` is overwritten."""
    from scipy.linalg.lapack import dpotrf, dpotri

    factor, failed = dpotrf(covariance.T, lower=1, overwrite_a=1)
    half_log_determinant = float(np.log(factor.diagonal()).sum())
    inverse, failed_too = dpotri(factor, lower=1, overwrite_c=1)
    if failed or failed_too:
        raise np.linalg.LinAlgError(f"a covariance of {len(covariance)} trials is not positive definite")
    inverse = inverse + inverse.T  # the upper half was zero
    inverse.flat[:: len(inverse) + 1] *= 0.5
    return half_log_determinant, inverse
