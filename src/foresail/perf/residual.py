"""How alike two runs are: the prior covariance of their log step times.

Every run's log-parameters are the sum of stack, device, job and residual terms (`parameters.py`). To first
order log time moves by its gradient G times them, so the covariance of runs i and j is

    sum_p G_ip G_jp [ stack_p + same device x device_p + same job x job_p + residual_p(x_i, x_j) ]

The residual is a Gaussian process (Matern 3/2) on how efficient work and exchange are in a configuration: what
no formula with few parameters says (tile sizes, cache sizes, topology). A part of it is the same for all jobs
whose features are known, and a part is the job's own. Because it enters through the gradient, what is
learned of one micro-batch's work serves every (pp, dp, accumulation) that has the same work.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from foresail.perf import parameters
from foresail.perf.rows import Floats, Rows


class Residual(NamedTuple):
    """A smooth deviation of one scale over some features (log2 of a column), with the length of each."""

    parameter: str
    shared_sd: float
    job_sd: float
    blind_sd: float
    lengths: dict[str, float]


RESIDUALS = (
    Residual(
        "compute_scale",
        0.15,
        0.08,
        0.20,
        {"micro_batch": 1.2, "tp": 1.0, "hidden": 2.5, "seq_len": 2.0, "recompute": 1.5},
    ),
    Residual("sync_scale", 0.20, 0.15, 0.6, {"dp": 1.0, "nodes": 1.0, "stage": 2.0, "hidden": 3.0}),
    Residual(
        "total_scale",
        0.04,
        0.03,
        0.05,
        {
            "micro_batch": 2.0,
            "tp": 1.5,
            "pp": 2.0,
            "dp": 2.0,
            "accumulation": 3.0,
            "hidden": 3.0,
            "layers": 3.0,
            "threads": 1.0,
            "nodes": 1.5,
        },
    ),
)
_LINEAR = frozenset({"recompute", "stage"})


def _features(rows: Rows, lengths: dict[str, float]) -> Floats:
    """[N, F], each divided by its length."""
    columns = []
    for name, length in lengths.items():
        values = getattr(rows, name)
        columns.append((values if name in _LINEAR else np.log2(np.maximum(values, 0.5))) / length)
    return np.stack(columns, axis=1)


def _matern32(a: Floats, b: Floats) -> Floats:
    square = (a**2).sum(1)[:, None] + (b**2).sum(1)[None] - 2 * a @ b.T
    distance = np.sqrt(3.0 * np.maximum(square, 0.0))
    values: Floats = (1.0 + distance) * np.exp(-distance)
    return values


def covariance(a: Rows, gradient_a: Floats, b: Rows, gradient_b: Floats) -> Floats:
    """[N_a, N_b] prior covariance of the log step times; gradients are [N, P]."""
    same_job = a.job_id[:, None] == b.job_id[None]
    same_device = a.device_id[:, None] == b.device_id[None]
    total = (gradient_a * parameters.STACK_VAR) @ gradient_b.T
    total += same_device * ((gradient_a * parameters.DEVICE_VAR) @ gradient_b.T)
    if same_job.any():
        own = np.where(b.known[:, None], parameters.JOB_VAR, parameters.BLIND_VAR)
        total += same_job * (gradient_a @ (own * gradient_b).T)
    both_known = a.known[:, None] & b.known[None]
    for residual in RESIDUALS:
        total += _residual_part(residual, (a, gradient_a), (b, gradient_b), same_job, both_known)
    return total


def _residual_part(
    residual: Residual, a: tuple[Rows, Floats], b: tuple[Rows, Floats], same_job: Floats, both_known: Floats
) -> Floats:
    column = parameters.INDEX[residual.parameter]
    alike = _matern32(_features(a[0], residual.lengths), _features(b[0], residual.lengths))
    own = np.where(both_known, residual.job_sd**2, residual.blind_sd**2)
    weight = residual.shared_sd**2 * both_known + own * same_job
    part: Floats = np.outer(a[1][:, column], b[1][:, column]) * weight * alike
    return part


def variance(rows: Rows, gradient: Floats) -> Floats:
    """[N] the diagonal of `covariance` of rows with themselves."""
    own = np.where(rows.known[:, None], parameters.JOB_VAR, parameters.BLIND_VAR)
    total: Floats = (gradient**2 * (parameters.STACK_VAR + parameters.DEVICE_VAR + own)).sum(1)
    for residual in RESIDUALS:
        share = gradient[:, parameters.INDEX[residual.parameter]] ** 2
        known = residual.shared_sd**2 + residual.job_sd**2
        total = total + share * np.where(rows.known, known, residual.blind_sd**2)
    return total
