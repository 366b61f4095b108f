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
    """A named parameter; deviations are of the natural logarithm.

    `cpu_device_sd` and `cpu_job_sd` stand for `device_sd` and `job_sd` on CPUs, where given: no data sheet says what a
    core reaches, and small jobs differ in how much of it they use.
    """

    name: str
    unit: str
    median: float
    stack_sd: float
    device_sd: float
    job_sd: float
    blind_sd: float
    meaning: str
    cpu_device_sd: float | None = None
    cpu_job_sd: float | None = None


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
    def _own_var(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """[P] each: a device's and a job's, the same on a CPU, and that of a job whose features are not known."""
        table = self.table
        on_cpu = [
            (
                p.device_sd if p.cpu_device_sd is None else p.cpu_device_sd,
                p.job_sd if p.cpu_job_sd is None else p.cpu_job_sd,
            )
            for p in table
        ]
        device, job, blind = ([getattr(p, name) for p in table] for name in ("device_sd", "job_sd", "blind_sd"))
        cpu_device, cpu_job = zip(*on_cpu, strict=True)
        return np.square(device), np.square(job), np.square(cpu_device), np.square(cpu_job), np.square(blind)

    def device_var(self, rows: Rows) -> Floats:
        """[N, P] prior variance of what runs on one kind of device share."""
        device, _, cpu_device, _, _ = self._own_var
        return np.where(rows.on_cpu[:, None], cpu_device, device)

    def job_var(self, rows: Rows) -> Floats:
        """[N, P] prior variance of what a job adds, by whether its features are known."""
        _, job, _, cpu_job, blind = self._own_var
        return np.where(rows.known[:, None], np.where(rows.on_cpu[:, None], cpu_job, job), blind)

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
