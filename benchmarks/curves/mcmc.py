"""Eleven parametric families combined and sampled by MCMC: the predictor that HyperDrive rested on.

Domhan, Springenberg and Hutter (IJCAI 2015), written from its formulas: f(x) = sum_k w_k f_k(x), normal
noise, weights not negative, f(end) between 0 and 1 and not below f(2), recency weights 10^(i/n), walkers
started in a small ball round the least-squares fits. The sampler is emcee's stretch move with all walkers
evaluated at once, which makes it several times faster than the original. Curves must be mostly within [0,
1]: the scoring scale is. Letters: W walkers, T points, P parameters.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.special import ndtr

Floats = NDArray[Any]

WALKERS, STEPS, BURN_IN, THIN = 100, 700, 500, 10


def _between(p: Floats, left: Floats) -> Floats:
    return p[:, :1] - (p[:, :1] - p[:, 1:2]) * left


# Each takes x (T,) and parameters (W, p), and gives (W, T).
FAMILIES: tuple[tuple[Callable[[Floats, Floats], Floats], tuple[float, ...]], ...] = (
    (lambda x, p: np.exp(p[:, :1] + p[:, 1:2] / x + p[:, 2:3] * np.log(x)), (-0.622, -0.470, 0.0423)),
    (lambda x, p: p[:, 1:2] - p[:, :1] / np.log(x + 1.0), (0.43, 0.78)),
    (lambda x, p: _between(p, np.exp(-((p[:, 2:3] * x) ** p[:, 3:4]))), (0.7, 0.1, 0.01, 1.0)),
    (lambda x, p: p[:, :1] - p[:, 1:2] * x ** -p[:, 2:3], (0.84, 0.52, 0.01)),
    (lambda x, p: p[:, :1] - (p[:, 1:2] * x + p[:, 2:3]) ** -p[:, 3:4], (0.8, 200.0, 0.0, 0.1)),
    (lambda x, p: np.log(p[:, :1] * np.log(x) + p[:, 1:2]), (1.0, 1.0)),
    (lambda x, p: _between(p, 1 / (1 + (p[:, 2:3] * x) ** p[:, 3:4])), (0.7, 0.1, 0.01, 5.0)),
    (lambda x, p: _between(p, np.exp(-p[:, 2:3] * x ** p[:, 3:4])), (0.73, 0.07, 0.355, 0.46)),
    (lambda x, p: p[:, :1] / (1 + (p[:, 2:3] / x) ** p[:, 1:2]), (0.772, 0.586, 2.461)),
    (lambda x, p: p[:, :1] / (1 + (x / np.exp(p[:, 1:2])) ** p[:, 2:3]), (0.77, 2.98, -0.51)),
    (lambda x, p: p[:, :1] - np.exp(-p[:, 1:2] * x ** p[:, 3:4] + p[:, 2:3]), (0.7, 0.8, -0.8, 0.3)),
)  # fmt: skip


def law(values: Floats, end: float, grid: Floats, seed: int) -> Floats | None:
    """Distribution function on the grid (X,) of the value at step `end`, with points at steps 1..T.

    None where no family fits, as the original gives up there too.
    """
    import emcee

    x = np.arange(1.0, len(values) + 1)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        fits = [(k, fit) for k in range(len(FAMILIES)) if (fit := _fit(k, x, values, end)) is not None]
        if not fits:
            return None
        target = _Target(fits, x, values, end)
        rng = np.random.default_rng(seed)
        walkers = max(WALKERS, 2 * len(target.start) + 2)
        first = target.start + 1e-6 * rng.normal(size=(walkers, len(target.start)))
        sampler = emcee.EnsembleSampler(walkers, len(target.start), target.log_density, vectorize=True)
        sampler.random_state = np.random.RandomState(seed).get_state()
        sampler.run_mcmc(first, STEPS, skip_initial_state_check=True)
        chain = sampler.get_chain(discard=BURN_IN, thin=THIN, flat=True)
        mean = target.curves(chain, np.array([end]))[:, 0]
        fine = np.isfinite(mean) & (chain[:, -1] > 0)
        if not fine.any():
            return None
        return ndtr((grid[None, :] - mean[fine, None]) / chain[fine, -1:]).mean(axis=0)


def _fit(k: int, x: Floats, values: Floats, end: float) -> Floats | None:
    family, start = FAMILIES[k]

    def residual(p: Floats) -> Floats:
        return np.nan_to_num(family(x, p[None])[0] - values, nan=10.0, posinf=10.0, neginf=-10.0)

    try:
        found = least_squares(residual, start, method="lm" if len(x) >= len(start) else "trf", max_nfev=400).x
    except ValueError:
        return None
    at_end = family(np.array([end]), found[None])[0, 0]
    return found if np.isfinite(at_end) and 0.0 <= at_end <= 1.0 else None


class _Target:
    """The posterior over all parameters, the weights and the noise."""

    def __init__(self, fits: list[tuple[int, Floats]], x: Floats, values: Floats, end: float) -> None:
        self.fits, self.x, self.values, self.end = fits, x, values, end
        fitted = np.mean([FAMILIES[k][0](x, p[None])[0] for k, p in fits], axis=0)
        noise = max(float((fitted - values).std()), 1e-3)
        weights = np.full(len(fits), 1.0 / len(fits))
        self.start = np.concatenate([*(p for _, p in fits), weights, [noise]])
        self.recency = 10.0 ** (np.arange(len(x)) / len(x))

    def curves(self, theta: Floats, x: Floats) -> Floats:
        total = np.zeros((len(theta), len(x)))
        at, first_weight = 0, len(self.start) - 1 - len(self.fits)
        for j, (k, p) in enumerate(self.fits):
            part = FAMILIES[k][0](x, theta[:, at : at + len(p)])
            total += theta[:, first_weight + j : first_weight + j + 1] * part
            at += len(p)
        return total

    def log_density(self, theta: Floats) -> Floats:
        noise = theta[:, -1:]
        weights = theta[:, -1 - len(self.fits) : -1]
        curves = self.curves(theta, np.concatenate([self.x, [2.0, self.end]]))
        early, late = curves[:, -2], curves[:, -1]
        fine = (weights >= 0).all(axis=1) & (noise[:, 0] > 0) & (late >= 0) & (late <= 1) & (early <= late)
        z = (curves[:, :-2] - self.values) / noise
        density = -(self.recency * (0.5 * z * z + np.log(np.abs(noise)))).sum(axis=1)
        return np.where(fine & np.isfinite(density), density, -np.inf)
