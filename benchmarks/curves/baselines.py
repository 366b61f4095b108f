"""What others would say: each baseline gives, for the trials asked for, a law of the final value.

All work in the scoring scale and see each curve alone. Laws are distribution functions on the grid, (M, X).
Letters: M trials asked for, X grid values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmarks.curves.traces import CLIP, Study
from numpy.typing import NDArray
from scipy.special import ndtr

Floats = NDArray[Any]

GRID = np.arange(CLIP[0], CLIP[1] + 1e-9, 0.0025)


def last_value(study: Study) -> Floats:
    """Point forecasts (M,)."""
    return np.array([prefix[-1] if len(prefix := study.scored_prefix(i)[1]) else 0.0 for i in study.asked])


def power_law(study: Study) -> Floats:
    """Point forecasts (M,): least squares of c - a t^-b, b on a grid, gains not negative (Domhan's pow3)."""
    return np.array([_power_law_end(*study.scored_prefix(i), study.trace.end) for i in study.asked])


def _power_law_end(steps: Floats, values: Floats, end: float) -> float:
    if len(values) < 4:
        return float(values[-1]) if len(values) else 0.0
    unit = steps[1] - steps[0]
    t, far = steps / unit + 1.0, end / unit + 1.0
    best = (np.inf, float(values[-1]))
    for b in np.geomspace(0.05, 3.0, 12):
        x = t**-b
        slope = np.cov(x, values, bias=True)[0, 1] / x.var()
        slope = min(slope, 0.0)
        level = values.mean() - slope * x.mean()
        error = float(((values - level - slope * x) ** 2).sum())
        if error < best[0]:
            best = (error, float(level + slope * far**-b))
    return float(np.clip(best[1], *CLIP))


def with_residuals(points: Floats, residuals: Floats) -> Floats:
    """Laws (M, X): each point plus the empirical residuals, which come from other traces."""
    ordered = np.sort(residuals)
    place = np.searchsorted(ordered, GRID[None, :] - points[:, None], side="right")
    law = place / len(ordered)
    law[:, -1] = 1.0
    return law


def freeze_thaw(study: Study) -> Floats:
    """Laws (M, X) of the freeze-thaw Gaussian process (Swersky et al. 2014), averaged over a grid of its
    parameters by their marginal likelihood; the asymptote has a broad normal prior."""
    laws = np.empty((len(study.asked), len(GRID)))
    for row, i in enumerate(study.asked):
        steps, values = study.scored_prefix(int(i))
        unit = steps[1] - steps[0] if len(steps) > 1 else study.trace.end / len(study.trace.horizon)
        t = np.append(steps, study.trace.end) / unit
        if len(t) > 101:
            keep = np.unique(np.geomspace(1, len(t), 101).round().astype(int)) - 1
            t, values = t[keep], values[keep[:-1]]
        laws[row] = _freeze_thaw_law(t, values)
    return laws


def _freeze_thaw_law(t: Floats, values: Floats) -> Floats:
    evidence, parts = [], []
    n = len(values)
    for alpha in (0.5, 1.0, 2.0):
        for beta in (0.5, 2.0, 8.0):
            decay = (beta / (t[:, None] + t[None, :] + beta)) ** alpha
            for size in (0.1, 0.4, 1.0):
                for noise in (0.003, 0.01, 0.03, 0.1):
                    full = size**2 * decay + 0.4**2 + noise**2 * np.eye(n + 1)
                    residual = values - 0.4
                    solved = np.linalg.solve(full[:n, :n], np.column_stack([residual, full[:n, n]]))
                    mean = 0.4 + full[n, :n] @ solved[:, 0]
                    variance = max(full[n, n] - full[n, :n] @ solved[:, 1], 1e-8)
                    evidence.append(-0.5 * (residual @ solved[:, 0] + np.linalg.slogdet(full[:n, :n])[1]))
                    parts.append((mean, np.sqrt(variance)))
    weight = np.exp(np.array(evidence) - max(evidence))
    mean, sd = np.array(parts).T
    return (weight / weight.sum()) @ ndtr((GRID[None, :] - mean[:, None]) / sd[:, None])
