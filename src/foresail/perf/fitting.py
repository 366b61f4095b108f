"""Fit the step-time model to measured steps, and predict.

Every run has log-parameters of its own, which are jointly normal over runs (`residual.py`): what all share,
what a device adds, what a job adds, and smooth residuals. `fit` finds the most probable ones given the
measured log times, by Gauss-Newton steps in the space of runs: take the model as linear, solve the normal
equations of N runs, move. At the end that linear model is Laplace's approximation, which `predict` conditions
on. Noise is Student-t: a run that the others contradict loses weight. What the data cannot identify stays at
the prior.

A history (`prior=`) is the fit of other jobs. It stays linear where it was fitted, so that a new job's few
measurements cost little. Shapes: N runs, M of the history, P parameters.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike

from foresail.errors import CallerError
from foresail.perf import parameters
from foresail.perf.residual import Kinship, variance
from foresail.perf.rows import Floats, Rows, join
from foresail.perf.step_time import gradient, log_step_s

_NOISE_SD = 0.015
"""Floor of the relative error of a measured step (median of a few steps)."""
_DEGREES = 4.0
"""Of freedom of the Student-t noise: a deviation of 4 sd counts as one of 2."""
_ROUNDS, _CLOSE = 30, 2e-3
_REACH = 1.5
"""The farthest that a log-parameter moves in one step: the model is nearly linear within it."""
_AMPLITUDES = (0.5, 0.7, 1.0, 1.4, 2.0)
_ENOUGH = 12
"""Measured runs from which the reach of residuals is learned."""


@dataclasses.dataclass(frozen=True, slots=True)
class Fit:
    """What measurements taught: the measured runs, and the linear model around their log-parameters.

    `slopes` [N, P] are gradients there, `surprise` [N] what was measured less what the prior expected,
    `factor` [N, N] the Cholesky factor of its covariance, `weights` [N] the solution.
    """

    rows: Rows
    slopes: Floats
    surprise: Floats
    factor: Floats
    weights: Floats
    amplitude: float

    def theta(self, rows: Rows) -> Floats:
        """[N, P] the most probable log-parameters of runs, measured or not."""
        kin = Kinship(rows, self.rows, amplitude=self.amplitude)
        return parameters.MEDIAN_LOG + kin.moved(self.slopes, self.weights)


@dataclasses.dataclass(frozen=True, slots=True)
class Prediction:
    """Log of the seconds of a step: its median [N] and standard deviation [N]."""

    log_s: Floats
    log_sd: Floats

    @property
    def seconds(self) -> Floats:
        """Median seconds of a step."""
        return np.exp(self.log_s)

    def interval(self, *, factor: float = 1.645) -> tuple[Floats, Floats]:
        """Seconds within `factor` deviations; 1.645 is 90 % for a normal, `intervals.calibrate` is honest."""
        return np.exp(self.log_s - factor * self.log_sd), np.exp(self.log_s + factor * self.log_sd)


def checked_seconds(seconds: ArrayLike, rows: Rows) -> Floats:
    """Measured seconds as an array.

    Raises:
        CallerError: there are none, not as many as rows, or one is not a positive finite number.
    """
    values = np.asarray(seconds, dtype=float)
    if values.shape != (len(rows),):
        raise CallerError(f"{values.size} times for {len(rows)} runs", do="give one time for each run")
    if values.size == 0:
        raise CallerError("no measured steps to fit", do="measure one configuration at least")
    bad = ~(np.isfinite(values) & (values > 0))
    if bad.any():
        raise CallerError(
            f"a measured step took {values[bad][0]} s (run {int(np.argmax(bad))})",
            allowed="finite times above 0",
            do="a run that did not fit is a memory observation, not a time",
        )
    return values


def fit(rows: Rows, seconds: ArrayLike, *, prior: Fit | None = None, noise_sd: float = _NOISE_SD) -> Fit:
    """Learn from measured steps (N seconds), on top of what other jobs taught.

    `noise_sd` is the relative error of one measurement.

    Raises:
        CallerError: see `checked_seconds`.
    """
    log_s = np.log(checked_seconds(seconds, rows))
    if prior is not None:
        return _Problem(rows, log_s, noise_sd, prior.amplitude, prior).solved()
    first = _Problem(rows, log_s, noise_sd, 1.0, None).solved()
    if len(rows) < _ENOUGH:
        return first
    amplitude = max(_AMPLITUDES, key=lambda one: _evidence(first, noise_sd, one))
    return first if amplitude == 1.0 else _Problem(rows, log_s, noise_sd, amplitude, None).solved()


def predict(model: Fit | None, rows: Rows) -> Prediction:
    """Log step times of runs, measured or not; `None` is what is expected before any measurement."""
    if model is None:
        values, slopes = gradient(parameters.MEDIAN_LOG, rows)
        return Prediction(values, np.sqrt(variance(rows, slopes) + _NOISE_SD**2))
    kin = Kinship(rows, model.rows, amplitude=model.amplitude)
    theta = parameters.MEDIAN_LOG + kin.moved(model.slopes, model.weights)
    values, slopes = gradient(theta, rows)
    known = _forward(model.factor, kin.covariance(slopes, model.slopes).T)
    var = variance(rows, slopes, amplitude=model.amplitude) - (known**2).sum(0)
    return Prediction(values, np.sqrt(np.maximum(var, 0.0) + _NOISE_SD**2))


def joint_covariance(model: Fit | None, rows: Rows) -> Floats:
    """[N, N] covariance of the log step times of runs, given what was measured."""
    if model is None:
        _, slopes = gradient(parameters.MEDIAN_LOG, rows)
        return Kinship(rows, rows).covariance(slopes, slopes)
    kin = Kinship(rows, model.rows, amplitude=model.amplitude)
    _, slopes = gradient(parameters.MEDIAN_LOG + kin.moved(model.slopes, model.weights), rows)
    known = _forward(model.factor, kin.covariance(slopes, model.slopes).T)
    among = Kinship(rows, rows, amplitude=model.amplitude).covariance(slopes, slopes)
    return among - known.T @ known


class _Problem:
    """One fit in progress: the fixed things of its iterations."""

    def __init__(
        self, rows: Rows, log_s: Floats, noise_sd: float, amplitude: float, prior: Fit | None
    ) -> None:
        self.rows, self.log_s, self.amplitude, self.prior = rows, log_s, amplitude, prior
        self.noise = np.full(len(rows), noise_sd**2)
        self.kin = Kinship(rows, rows, amplitude=amplitude)
        if prior is not None:
            self.to_prior = Kinship(rows, prior.rows, amplitude=amplitude)
            self.prior_white = _forward(prior.factor, prior.surprise)

    def start(self) -> Floats:
        """[N, P] where to begin: the history's view; a job without features at the scale of its times."""
        if self.prior is None:
            theta = np.broadcast_to(parameters.MEDIAN_LOG, (len(self.rows), parameters.COUNT)).copy()
        else:
            theta = self.prior.theta(self.rows)
        off = self.log_s - log_step_s(theta, self.rows)
        for job in np.unique(self.rows.job_id[~self.rows.known]):
            mask = self.rows.job_id == job
            theta[np.ix_(mask, _SIZES)] += np.median(off[mask])
        return theta

    def solved(self) -> Fit:
        """The most probable log-parameters, and the linear model there."""
        theta, noise = self.start(), self.noise
        for turn in range(_ROUNDS):
            values, slopes = gradient(theta, self.rows)
            surprise = self.log_s - values + ((theta - parameters.MEDIAN_LOG) * slopes).sum(1)
            model, left_out = self._conditioned(slopes, surprise, noise)
            noise = self.noise * np.maximum(1.0, (_DEGREES + left_out) / (_DEGREES + 1.0))
            step = self._moved(model) + parameters.MEDIAN_LOG - theta
            far = float(np.abs(step).max())
            if far < _CLOSE:
                break
            theta = theta + step * min(1.0, _REACH / far) * (1.0 if turn < _ROUNDS // 2 else 0.5)
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
        if self.prior is None:
            factor = np.linalg.cholesky(among)
            white = _forward(factor, surprise)
            weights = _backward(factor, white)
            left_out = weights**2 / _inverse_diagonal(factor)
            return Fit(self.rows, slopes, surprise, factor, weights, self.amplitude), left_out
        prior = self.prior
        lower = _forward(prior.factor, self.to_prior.covariance(slopes, prior.slopes).T)
        corner = np.linalg.cholesky(among - lower.T @ lower)
        white = _forward(corner, surprise - lower.T @ self.prior_white)
        new = _backward(corner, white)
        old = _backward(prior.factor, self.prior_white - lower @ new)
        factor = np.block([[prior.factor, np.zeros((len(prior.rows), len(slopes)))], [lower.T, corner]])
        model = Fit(
            join(prior.rows, self.rows),
            np.r_[prior.slopes, slopes],
            np.r_[prior.surprise, surprise],
            factor,
            np.r_[old, new],
            self.amplitude,
        )
        return model, new**2 / _inverse_diagonal(corner)


_SIZES = [parameters.INDEX[name] for name in ("compute_scale", "kernel_scale", "sync_scale")]


def _evidence(model: Fit, noise_sd: float, amplitude: float) -> float:
    """Log marginal likelihood of a history at an amplitude of residuals, around one linear model."""
    kin = Kinship(model.rows, model.rows, amplitude=amplitude)
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
