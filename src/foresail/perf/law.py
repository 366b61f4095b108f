"""A law: named parameters with priors, the formula that they enter, and what the formula leaves over.

A law gives the logarithm of a quantity (seconds of a step, bytes of a device) for runs. Each parameter is
positive and lives in the log; a run's value of it is

    log value = log median + stack + device + job + residual(configuration)

with terms that are normal with mean zero: `stack_sd` for what all jobs under one software stack share,
`device_sd` for what those on one kind of device share, `job_sd` for what is the job's own (`blind_sd`
instead where the job's features are not known), and smooth residuals of some. The first two belong to the
hardware and are kept from job to job.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from foresail.perf.rows import Floats, Rows


class Parameter(NamedTuple):
    """A named parameter; deviations are of the natural logarithm."""

    name: str
    unit: str
    median: float
    stack_sd: float
    device_sd: float
    job_sd: float
    blind_sd: float
    meaning: str


class Residual(NamedTuple):
    """A deviation of one parameter over some features (log2 of a column), with the length of each.

    `shared_sd` for all jobs with known features, `device_sd` for all jobs on one device, `job_sd` for one job
    (`blind_sd` where its features are not known). A rough process may jump from one value to the next.
    """

    parameter: str
    shared_sd: float
    device_sd: float
    job_sd: float
    blind_sd: float
    rough: bool
    lengths: dict[str, float]


@dataclasses.dataclass(frozen=True)
class Law:
    """A formula `log_value(theta, rows)` with the prior of its parameters.

    `theta` is [P], or [..., N, P] for values of a run's own; the result is [..., N].
    """

    name: str
    table: tuple[Parameter, ...]
    residuals: tuple[Residual, ...]
    log_value: Callable[[Floats, Rows], Floats]

    @cached_property
    def medians(self) -> Floats:
        """[P] logs of the prior medians."""
        return np.log([p.median for p in self.table])

    @cached_property
    def stack_var(self) -> Floats:
        """[P] prior variance of what all runs share."""
        return np.square([p.stack_sd for p in self.table])

    @cached_property
    def device_var(self) -> Floats:
        """[P] prior variance of what runs on one kind of device share."""
        return np.square([p.device_sd for p in self.table])

    @cached_property
    def _job_var(self) -> tuple[Floats, Floats]:
        return np.square([p.blind_sd for p in self.table]), np.square([p.job_sd for p in self.table])

    def job_var(self, rows: Rows) -> Floats:
        """[N, P] prior variance of what a job adds, by whether its features are known."""
        blind, known = self._job_var
        return np.where(rows.known[:, None], known, blind)

    @cached_property
    def index(self) -> dict[str, int]:
        """The column of each parameter."""
        return {p.name: i for i, p in enumerate(self.table)}

    def named(self, theta: Floats) -> Named:
        """Values of parameters by name, out of the log."""
        return Named(np.exp(theta), self.index)

    def gradient(self, theta: Floats, rows: Rows) -> tuple[Floats, Floats]:
        """`log_value` [N] and its derivative [N, P] by each log-parameter, by forward differences."""
        width, count = 1e-5, len(self.table)
        moved = np.broadcast_to(theta, (len(rows), count))[None] + np.zeros((count + 1, 1, 1))
        moved[np.arange(count), :, np.arange(count)] += width
        values = self.log_value(moved, rows)
        return values[-1], ((values[:-1] - values[-1]) / width).T


@dataclasses.dataclass(frozen=True, slots=True)
class Named:
    """An array of parameters, [..., P], of which one column is asked for by name."""

    values: Floats
    index: dict[str, int]

    def __getitem__(self, name: str) -> Floats:
        found: Floats = self.values[..., self.index[name]]
        return found
