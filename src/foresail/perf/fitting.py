"""Fit a law to measurements, and predict.

Every run has log-parameters of its own, which are jointly normal over runs (`residual.py`): what all share,
what a device adds, what a job adds, and residuals. `fit` finds the most probable ones given the logarithms of
the measurements, by Gauss-Newton steps in the space of runs: take the law as linear, solve the normal
equations of N runs, move. At the end that linear model is Laplace's approximation, which `predict`
conditions on. Noise is Student-t: a run that the others contradict loses weight. What the data cannot
identify stays at the prior.

A measurement may be censored: the value was at least that (a device ran out of memory). Then the value that
is expected above the bound stands in for it (expectation maximisation, Tobin 1958).

A history (`prior=`) is the fit of other jobs. It stays linear where it was fitted, so that a new job's few
measurements cost little. Shapes: N runs, P parameters.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike

from foresail.errors import CallerError
from foresail.perf.law import Law
from foresail.perf.residual import Kinship, variance
from foresail.perf.rows import Bools, Floats, Rows, join

NOISE_SD = 0.015
"""Floor of the relative error of a measurement (median of a few steps)."""
_DEGREES = 4.0
"""Of freedom of the Student-t noise: a deviation of 4 sd counts as one of 2."""
_ROUNDS, _FULL_STEPS, _CLOSE = 30, 6, 2e-3
_REACH = 1.5
"""The farthest that a log-parameter moves in one step: the law is nearly linear within it."""
_AMPLITUDES = (0.5, 0.7, 1.0, 1.4, 2.0)
_NOISES = (NOISE_SD, 0.03, 0.06)
_ENOUGH = 12
"""Measured runs from which the reach of residuals and the noise are learned."""
_CENSORED_SD = 0.1
"""How uncertain a censored value is around what the rest says of it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Fit:
    """What measurements taught: the measured runs, and the linear model around their log-parameters.

    `slopes` [N, P] are gradients there, `surprise` [N] what was measured less what the prior expected,
    `factor` [N, N] the Cholesky factor of its covariance, `weights` [N] the solution.
    """

    law: Law
    rows: Rows
    slopes: Floats
    surprise: Floats
    factor: Floats
    weights: Floats
    amplitude: float
    noise_sd: float

    def theta(self, rows: Rows) -> Floats:
        """[N, P] the most probable log-parameters of runs, measured or not."""
        kin = Kinship(self.law, rows, self.rows, amplitude=self.amplitude)
        return self.law.medians + kin.moved(self.slopes, self.weights)


@dataclasses.dataclass(frozen=True, slots=True)
class Prediction:
    """The logarithm of a quantity of N runs: its median and its standard deviation."""

    log_median: Floats
    log_sd: Floats

    @property
    def median(self) -> Floats:
        """[N] seconds, or bytes."""
        return np.exp(self.log_median)

    def interval(self, *, factor: float = 1.645) -> tuple[Floats, Floats]:
        """[N] lower and upper bounds, `factor` deviations away: 1.645 is 90 % of a normal distribution, and
        `intervals.calibrate` is honest where the distribution is not normal."""
        reach = factor * self.log_sd
        return np.exp(self.log_median - reach), np.exp(self.log_median + reach)


def checked(values: ArrayLike, rows: Rows) -> Floats:
    """Measurements as an array.

    Raises:
        CallerError: there are none, not as many as runs, or one is not a positive finite number.
    """
    found = np.asarray(values, dtype=float)
    if found.shape != (len(rows),):
        raise CallerError(f"{found.size} measurements for {len(rows)} runs", do="give one for each run")
    if found.size == 0:
        raise CallerError("no measurements to fit", do="measure one configuration at least")
    bad = ~(np.isfinite(found) & (found > 0))
    if bad.any():
        raise CallerError(
            f"run {int(np.argmax(bad))} measured {found[bad][0]}",
            allowed="finite numbers above 0",
            do="a run that did not fit is a censored memory observation, not a time",
        )
    return found


def fit(
    law: Law,
    rows: Rows,
    values: ArrayLike,
    *,
    prior: Fit | None = None,
    noise_sd: float | None = None,
    at_least: ArrayLike | None = None,
) -> Fit:
    """Learn from N measurements, on top of what other jobs taught.

    `noise_sd` is the relative error of one (default: the history's, which learned it); `at_least` marks
    those of which only a lower bound is known.

    Raises:
        CallerError: see `checked`.
    """
    log_value = np.log(checked(values, rows))
    censored = np.zeros(len(rows), bool) if at_least is None else np.asarray(at_least, bool)
    if prior is not None:
        noise = prior.noise_sd if noise_sd is None else noise_sd
        return _Problem(law, rows, log_value, censored, noise, prior.amplitude, prior).solved()
    start = NOISE_SD if noise_sd is None else noise_sd
    first = _Problem(law, rows, log_value, censored, start, 1.0, None).solved()
    if len(rows) < _ENOUGH:
        return first
    noises = _NOISES if noise_sd is None else (noise_sd,)
    best = max(
        ((amplitude, noise) for amplitude in _AMPLITUDES for noise in noises),
        key=lambda pair: _evidence(first, pair[1], pair[0]),
    )
    if best == (1.0, start):
        return first
    return _Problem(law, rows, log_value, censored, best[1], best[0], None).solved()


def predict(law: Law, model: Fit | None, rows: Rows) -> Prediction:
    """What runs will measure; without a model, what is expected before any measurement."""
    if model is None:
        values, slopes = law.gradient(law.medians, rows)
        return Prediction(values, np.sqrt(variance(law, rows, slopes) + NOISE_SD**2))
    kin = Kinship(law, rows, model.rows, amplitude=model.amplitude)
    theta = law.medians + kin.moved(model.slopes, model.weights)
    values, slopes = law.gradient(theta, rows)
    known = _forward(model.factor, kin.covariance(slopes, model.slopes).T)
    var = variance(law, rows, slopes, amplitude=model.amplitude) - (known**2).sum(0)
    return Prediction(values, np.sqrt(np.maximum(var, 0.0) + NOISE_SD**2))


def joint_covariance(law: Law, model: Fit | None, rows: Rows) -> Floats:
    """[N, N] covariance of the logarithms of what runs will measure, given what was measured."""
    if model is None:
        _, slopes = law.gradient(law.medians, rows)
        return Kinship(law, rows, rows).covariance(slopes, slopes)
    kin = Kinship(law, rows, model.rows, amplitude=model.amplitude)
    _, slopes = law.gradient(law.medians + kin.moved(model.slopes, model.weights), rows)
    known = _forward(model.factor, kin.covariance(slopes, model.slopes).T)
    among = Kinship(law, rows, rows, amplitude=model.amplitude).covariance(slopes, slopes)
    return among - known.T @ known


class _Problem:
    """One fit in progress: what stays the same in its iterations."""

    def __init__(
        self,
        law: Law,
        rows: Rows,
        log_value: Floats,
        censored: Bools,
        noise_sd: float,
        amplitude: float,
        prior: Fit | None,
    ) -> None:
        self.law, self.rows, self.log_value, self.censored = law, rows, log_value, censored
        self.amplitude, self.prior = amplitude, prior
        self.noise_sd = noise_sd
        self.noise = np.where(censored, _CENSORED_SD**2, noise_sd**2)
        self.kin = Kinship(law, rows, rows, amplitude=amplitude)
        if prior is not None:
            self.to_prior = Kinship(law, rows, prior.rows, amplitude=amplitude)
            self.prior_white = _forward(prior.factor, prior.surprise)

    def start(self) -> Floats:
        """[N, P] where to begin: the history's view; a job without features at the scale of its values."""
        law = self.law
        if self.prior is None:
            theta = np.broadcast_to(law.medians, (len(self.rows), len(law.table))).copy()
        else:
            theta = self.prior.theta(self.rows)
        off = self.log_value - law.log_value(theta, self.rows)
        sizes = [i for i, p in enumerate(law.table) if p.blind_sd >= _WIDE]
        for job in np.unique(self.rows.job_id[~self.rows.known]):
            mask = self.rows.job_id == job
            theta[np.ix_(mask, sizes)] += np.median(off[mask])
        return theta

    def solved(self) -> Fit:
        """The most probable log-parameters, and the linear model there."""
        theta, noise = self.start(), self.noise
        for turn in range(_ROUNDS):
            values, slopes = self.law.gradient(theta, self.rows)
            measured = self.log_value
            if self.censored.any():
                measured = np.where(self.censored, _above(values, self.log_value), self.log_value)
            surprise = measured - values + ((theta - self.law.medians) * slopes).sum(1)
            model, left_out = self._conditioned(slopes, surprise, noise)
            doubt = np.maximum(1.0, (_DEGREES + left_out) / (_DEGREES + 1.0))
            noise = self.noise * np.where(self.censored, 1.0, doubt)
            step = self._moved(model) + self.law.medians - theta
            far = float(np.abs(step).max())
            if far < _CLOSE:
                break
            damped = min(1.0, _FULL_STEPS / (turn + 1))  # a knee between two regimes makes full steps swing
            theta = theta + step * min(damped, _REACH / far)
        return model

    def _moved(self, model: Fit) -> Floats:
        """[N, P] posterior mean of the measured runs' log-parameters, less the prior's."""
        count = len(self.rows)
        own = self.kin.moved(model.slopes[-count:], model.weights[-count:])
        if self.prior is None:
            return own
        return own + self.to_prior.moved(self.prior.slopes, model.weights[:-count])

    def _conditioned(self, slopes: Floats, surprise: Floats, noise: Floats) -> tuple[Fit, Floats]:
        """The linear model at these slopes, and each new run's squared deviation from what the rest says."""
        among = self.kin.covariance(slopes, slopes) + np.diag(noise)
        prior = self.prior
        if prior is None:
            factor = np.linalg.cholesky(among)
            weights = _backward(factor, _forward(factor, surprise))
            model = Fit(self.law, self.rows, slopes, surprise, factor, weights, self.amplitude, self.noise_sd)
            return model, weights**2 / _inverse_diagonal(factor)
        lower = _forward(prior.factor, self.to_prior.covariance(slopes, prior.slopes).T)
        corner = np.linalg.cholesky(among - lower.T @ lower)
        new = _backward(corner, _forward(corner, surprise - lower.T @ self.prior_white))
        old = _backward(prior.factor, self.prior_white - lower @ new)
        model = Fit(
            self.law,
            join(prior.rows, self.rows),
            np.r_[prior.slopes, slopes],
            np.r_[prior.surprise, surprise],
            np.block([[prior.factor, np.zeros_like(lower)], [lower.T, corner]]),
            np.r_[old, new],
            self.amplitude,
            self.noise_sd,
        )
        return model, new**2 / _inverse_diagonal(corner)


_WIDE = 2.0
"""A parameter with this deviation for a job without features is the job's size, and starts at its data."""


def _above(expected: Floats, bound: Floats) -> Floats:
    """[N] the mean of a normal around what is expected, given that it lies above a bound (inverse Mills
    ratio)."""
    from scipy.special import log_ndtr

    z = (bound - expected) / _CENSORED_SD
    hazard = np.exp(-0.5 * z**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(-z))
    mean: Floats = expected + _CENSORED_SD * hazard
    return mean


def _evidence(model: Fit, noise_sd: float, amplitude: float) -> float:
    """Log marginal likelihood of a history at an amplitude of residuals, around one linear model."""
    kin = Kinship(model.law, model.rows, model.rows, amplitude=amplitude)
    kernel = kin.covariance(model.slopes, model.slopes) + noise_sd**2 * np.eye(len(model.rows))
    factor = np.linalg.cholesky(kernel)
    white = _forward(factor, model.surprise)
    return float(-0.5 * white @ white - np.log(np.diag(factor)).sum())


def _forward(factor: Floats, right: Floats) -> Floats:
    from scipy.linalg import solve_triangular

    out: Floats = solve_triangular(factor, right, lower=True, check_finite=False)
    return out


def _backward(factor: Floats, right: Floats) -> Floats:
    from scipy.linalg import solve_triangular

    out: Floats = solve_triangular(factor, right, lower=True, trans=1, check_finite=False)
    return out


def _inverse_diagonal(factor: Floats) -> Floats:
    out: Floats = (_forward(factor, np.eye(len(factor))) ** 2).sum(0)
    return out
