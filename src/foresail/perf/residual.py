"""How alike two runs are: the prior covariance of their log step times.

Every run's log-parameters are the sum of stack, device, job and residual terms (`parameters.py`). To first
order log time moves by its gradient G times them, so the covariance of runs i and j is

    sum_p G_ip G_jp [ stack_p + same device x device_p + same job x job_p + residual_p(x_i, x_j) ]

The residual is a Gaussian process (Matern 3/2) on how efficient work and exchange are in a configuration:
what no formula with few parameters says (tile sizes, cache sizes, topology). A part of it is the same for
all jobs whose features are known, and a part is the job's own. Because it enters through the gradient, what
is learned of one micro-batch's work serves every (pp, dp, accumulation) that has the same work.
"""

from __future__ import annotations

import numpy as np

from foresail.perf.law import Law, Residual
from foresail.perf.rows import Floats, Rows

_LINEAR = frozenset({"recompute", "stage"})


class Kinship:
    """What two lists of runs have in common: everything of their covariance but the gradients.

    `a` has N rows and `b` M; `amplitude` multiplies the deviations of all residuals.
    """

    def __init__(self, law: Law, a: Rows, b: Rows, *, amplitude: float = 1.0) -> None:
        self._law = law
        self._same_job = (a.job_id[:, None] == b.job_id[None]).astype(float)
        self._same_device = (a.device_id[:, None] == b.device_id[None]).astype(float)
        self._own_var, self._device_var = law.job_var(b), law.device_var(b)
        both_known = a.known[:, None] & b.known[None]
        self._residuals: list[tuple[int, Floats]] = []
        for residual in law.residuals:
            own_var = np.where(both_known, residual.job_sd**2, residual.blind_sd**2)
            weight = residual.shared_sd**2 * both_known + residual.device_sd**2 * self._same_device
            weight = (weight + own_var * self._same_job) * amplitude**2
            if weight.any():
                self._residuals.append((law.index[residual.parameter], weight * _alike(residual, a, b)))

    def covariance(self, slopes_a: Floats, slopes_b: Floats) -> Floats:
        """[N, M] prior covariance of the log step times; slopes are their gradients [., P]."""
        total: Floats = (slopes_a * self._law.stack_var) @ slopes_b.T
        total += self._same_device * (slopes_a @ (self._device_var * slopes_b).T)
        total += self._same_job * (slopes_a @ (self._own_var * slopes_b).T)
        for column, alike in self._residuals:
            total += np.outer(slopes_a[:, column], slopes_b[:, column]) * alike
        return total

    def moved(self, slopes_b: Floats, weights: Floats) -> Floats:
        """[N, P] posterior mean of a's log-parameters, less the prior's, at weights [M] of b's surprises."""
        pull = slopes_b * weights[:, None]
        total: Floats = self._law.stack_var * pull.sum(0) + self._same_device @ (self._device_var * pull)
        total += self._same_job @ (self._own_var * pull)
        for column, alike in self._residuals:
            total[:, column] += alike @ pull[:, column]
        return total


def variance(law: Law, rows: Rows, slopes: Floats, *, amplitude: float = 1.0) -> Floats:
    """[N] prior variance of the log step times."""
    own = law.job_var(rows) + law.device_var(rows)
    total: Floats = (slopes**2 * (law.stack_var + own)).sum(1)
    for residual in law.residuals:
        share = slopes[:, law.index[residual.parameter]] ** 2
        known = residual.shared_sd**2 + residual.job_sd**2
        weight = residual.device_sd**2 + np.where(rows.known, known, residual.blind_sd**2)
        total = total + amplitude**2 * share * weight
    return total


def _alike(residual: Residual, a: Rows, b: Rows) -> Floats:
    """[N_a, N_b] Matern correlation: 1/2 for a rough process, 3/2 for a smooth one."""
    left, right = _features(a, residual.lengths), _features(b, residual.lengths)
    square = (left**2).sum(1)[:, None] + (right**2).sum(1)[None] - 2 * left @ right.T
    distance = np.sqrt(np.maximum(square, 0.0))
    if residual.rough:
        rough: Floats = np.exp(-distance)
        return rough
    near = np.sqrt(3.0) * distance
    values: Floats = (1.0 + near) * np.exp(-near)
    return values


def _features(rows: Rows, lengths: dict[str, float]) -> Floats:
    """[N, F], each divided by its length."""
    columns = []
    for name, length in lengths.items():
        values = getattr(rows, name)
        columns.append((values if name in _LINEAR else np.log2(np.maximum(values, 0.5))) / length)
    return np.stack(columns, axis=1)
