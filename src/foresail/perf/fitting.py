"""Fit the step-time model to measured steps, and predict.

`fit` finds the parameters that are most probable given the measurements (robust least squares in log time
around the prior, levels for stack, device and job), then takes the model as linear there: with the residual
processes the log step times of all runs, measured or not, are one Gaussian (Laplace's approximation plus
`residual.py`). `predict` conditions it on the measurements. What the data cannot identify stays at the prior.

A history (`prior=`) is the fit of other jobs; it brings what it learned of hardware and of residuals.
Shapes: N rows, P parameters.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import ArrayLike

from foresail.errors import CallerError
from foresail.perf import parameters, residual
from foresail.perf.rows import Bools, Floats, Ints, Rows, join
from foresail.perf.step_time import gradient, log_step_s

_NOISE_SD = 0.015
"""Floor of the relative error of a measured step (median of a few steps)."""
_DEGREES = 4.0
"""Of freedom of the Student-t noise: an outlier of 4 sd weighs a quarter."""
_SOFT = 2.0
"""Deviations beyond this many sd pull linearly (soft L1)."""


@dataclasses.dataclass(frozen=True, slots=True)
class Fit:
    """What measurements taught. `theta` [N, P] are the measured runs' log-parameters."""

    rows: Rows
    log_s: Floats
    theta: Floats
    slopes: Floats
    noise_var: Floats
    factor: Floats
    weights: Floats
    stack: Floats
    stack_var: Floats
    of_device: dict[int, Floats]
    of_job: dict[int, Floats]

    def theta_of(self, rows: Rows) -> Floats:
        """[N, P] log-parameters at which runs are predicted: their job's, else their device's, else all's."""
        out = np.broadcast_to(self.stack, (len(rows), parameters.COUNT)).copy()
        for table, ids in ((self.of_device, rows.device_id), (self.of_job, rows.job_id)):
            for key, values in table.items():
                out[ids == key] = values
        return out


@dataclasses.dataclass(frozen=True, slots=True)
class Prediction:
    """Log of the seconds of a step: its mean [N] and standard deviation [N]."""

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


def fit(
    rows: Rows, seconds: ArrayLike, *, prior: Fit | None = None, noise_sd: float = _NOISE_SD
) -> Fit:
    """Learn from measured steps (N seconds), on top of what other jobs taught.

    `noise_sd` is the relative error of one measurement.

    Raises:
        CallerError: see `checked_seconds`.
    """
    log_s = np.log(checked_seconds(seconds, rows))
    levels = _Levels.of(rows, prior)
    theta, of_device, of_job, stack, stack_var = _most_probable(levels, rows, log_s, noise_sd)
    _, slopes = gradient(theta, rows)
    noise = np.full(len(rows), noise_sd**2)
    if prior is not None:
        rows = join(prior.rows, rows)
        log_s, theta = np.r_[prior.log_s, log_s], np.r_[prior.theta, theta]
        slopes, noise = np.r_[prior.slopes, slopes], np.r_[prior.noise_var, noise]
        of_device, of_job = prior.of_device | of_device, prior.of_job | of_job
    factor, weights, noise = _condition(rows, log_s, theta, slopes, noise)
    return Fit(rows, log_s, theta, slopes, noise, factor, weights, stack, stack_var, of_device, of_job)


def predict(model: Fit, rows: Rows) -> Prediction:
    """Log step times of runs, measured or not."""
    theta = model.theta_of(rows)
    values, slopes = gradient(theta, rows)
    cross = residual.covariance(rows, slopes, model.rows, model.slopes)
    mean = values + ((parameters.MEDIAN_LOG - theta) * slopes).sum(1) + cross @ model.weights
    shrunk = _forward(model.factor, cross.T)
    var = residual.variance(rows, slopes) - (shrunk**2).sum(0)
    return Prediction(mean, np.sqrt(np.maximum(var, 0.0) + _NOISE_SD**2))


def prior_prediction(rows: Rows) -> Prediction:
    """What is expected before any measurement anywhere."""
    values, slopes = gradient(parameters.MEDIAN_LOG, rows)
    return Prediction(values, np.sqrt(residual.variance(rows, slopes) + _NOISE_SD**2))


def _forward(factor: Floats, right: Floats) -> Floats:
    from scipy.linalg import solve_triangular

    out: Floats = solve_triangular(factor, right, lower=True, check_finite=False)
    return out


def _condition(
    rows: Rows, log_s: Floats, theta: Floats, slopes: Floats, noise: Floats
) -> tuple[Floats, Floats, Floats]:
    """Cholesky factor [N, N], weights [N], and the noise with outliers' inflated (Student-t, two rounds)."""
    from scipy.linalg import cho_solve

    kernel = residual.covariance(rows, slopes, rows, slopes)
    surprise = log_s - log_step_s(theta, rows) - ((parameters.MEDIAN_LOG - theta) * slopes).sum(1)
    inflated = noise.copy()
    for last in (False, True):
        factor = np.linalg.cholesky(kernel + np.diag(inflated))
        weights: Floats = cho_solve((factor, True), surprise, check_finite=False)
        if last:
            break
        own = (_forward(factor, np.eye(len(rows))) ** 2).sum(0)
        left_out = weights**2 / own
        inflated = noise * np.maximum(1.0, (_DEGREES + left_out) / (_DEGREES + 1.0))
    return factor, weights, inflated


@dataclasses.dataclass(frozen=True, slots=True)
class _Levels:
    """Which deviations are free, for each group of runs: a design for the whitened unknowns.

    Columns: parameter, deviation (sd) and the mask of rows that it moves.
    """

    mean: Floats
    column: Ints
    sd: Floats
    mask: Bools
    devices: tuple[int, ...]
    jobs: tuple[int, ...]
    owner: tuple[tuple[str, int], ...]

    @staticmethod
    def of(rows: Rows, prior: Fit | None) -> _Levels:
        devices = tuple(int(d) for d in np.unique(rows.device_id))
        jobs = tuple(int(j) for j in np.unique(rows.job_id))
        mean = parameters.MEDIAN_LOG if prior is None else prior.stack
        base = np.broadcast_to(mean, (len(rows), parameters.COUNT)).copy()
        groups: list[tuple[str, int, Bools, Floats]] = []
        var = parameters.STACK_VAR if prior is None else prior.stack_var
        groups.append(("stack", 0, np.ones(len(rows), bool), var))
        for d in devices:
            mask = rows.device_id == d
            known = prior is not None and d in prior.of_device
            if prior is not None and known:
                base[mask] = prior.of_device[d]
            groups.append(("device", d, mask, parameters.DEVICE_VAR * (0.25 if known else 1.0)))
        for j in jobs:
            mask = rows.job_id == j
            var = parameters.JOB_VAR if rows.known[mask].all() else parameters.BLIND_VAR
            groups.append(("job", j, mask, var))
        return _Levels._stacked(base, groups, devices, jobs)

    @staticmethod
    def _stacked(
        base: Floats, groups: list[tuple[str, int, Bools, Floats]], devices: tuple[int, ...], jobs: tuple[int, ...]
    ) -> _Levels:
        column, sd, mask, owner = [], [], [], []
        for kind, key, rows_of_it, var in groups:
            for p in np.flatnonzero(var):
                column.append(p)
                sd.append(math.sqrt(var[p]))
                mask.append(rows_of_it)
                owner.append((kind, key))
        return _Levels(
            base, np.array(column), np.array(sd), np.array(mask), devices, jobs, tuple(owner)
        )

    def theta(self, z: Floats, *, kinds: tuple[str, ...] = ("stack", "device", "job")) -> Floats:
        """[N, P] log-parameters of the runs at whitened deviations z, counting only some levels."""
        out = self.mean.copy()
        counted = np.array([kind in kinds for kind, _ in self.owner])
        moves = self.mask * (z * self.sd * counted)[:, None]
        for p in np.unique(self.column):
            out[:, p] += moves[self.column == p].sum(0)
        return out


def _most_probable(
    levels: _Levels, rows: Rows, log_s: Floats, noise_sd: float
) -> tuple[Floats, dict[int, Floats], dict[int, Floats], Floats, Floats]:
    """Log-parameters of the runs [N, P], by device, by job, the stack's, and the stack's variance."""
    from scipy.optimize import least_squares

    spread = math.hypot(noise_sd, 0.08)  # what residuals leave: the sd of a whole configuration's deviation
    count = len(levels.sd)

    def misfit(z: Floats) -> Floats:
        return np.r_[(log_step_s(levels.theta(z), rows) - log_s) / spread, z]

    def slopes(z: Floats) -> Floats:
        _, by_parameter = gradient(levels.theta(z), rows)
        moved = by_parameter[:, levels.column] * levels.mask.T * levels.sd
        return np.r_[moved / spread, np.eye(count)]

    start = _start(levels, rows, log_s)
    found = least_squares(misfit, start, slopes, loss="soft_l1", f_scale=_SOFT, max_nfev=60, method="trf")
    z = found.x
    theta = levels.theta(z)
    curvature = slopes(z)
    var = np.linalg.inv(curvature.T @ curvature)[np.arange(count), np.arange(count)]
    stack_theta = levels.theta(z, kinds=("stack",))
    device_theta = levels.theta(z, kinds=("stack", "device"))
    of_device = {d: device_theta[np.argmax(rows.device_id == d)] for d in levels.devices}
    of_job = {j: theta[np.argmax(rows.job_id == j)] for j in levels.jobs}
    stack_var = np.zeros(parameters.COUNT)
    is_stack = np.array([kind == "stack" for kind, _ in levels.owner])
    stack_var[levels.column[is_stack]] = levels.sd[is_stack] ** 2 * var[is_stack]
    return theta, of_device, of_job, stack_theta[0], stack_var


def _start(levels: _Levels, rows: Rows, log_s: Floats) -> Floats:
    """Whitened deviations to start from: a job without features begins at the scale of its own times."""
    z = np.zeros(len(levels.sd))
    guess = log_step_s(levels.theta(z), rows)
    for i, (kind, key) in enumerate(levels.owner):
        if kind == "job" and levels.sd[i] >= 1.0 and parameters.NAMES[levels.column[i]] in _SIZES:
            mask = rows.job_id == key
            z[i] = np.median(log_s[mask] - guess[mask]) / levels.sd[i]
    return z


_SIZES = ("compute_scale", "kernel_scale", "sync_scale")
