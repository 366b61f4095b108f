"""The normal distribution in plain numpy, so that a forecast needs no scipy.

Shapes are free: each function works element by element and keeps the floating type of its argument.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[Any]

# Abramowitz and Stegun (1964), 26.2.17: absolute error below 7.5e-8.
_TAIL = (0.319381530, -0.356563782, 1.781477937, -1.821255978, 1.330274429)
_INV_SQRT_2PI = 0.3989422804014327


def ndtr(x: ArrayLike) -> Floats:
    """Probability that a standard normal variable is at most `x`.

    >>> [round(float(p), 4) for p in ndtr([-1.6449, 0.0, 40.0])]
    [0.05, 0.5, 1.0]
    """
    x = _floats(x)
    size = np.minimum(np.abs(x), 14.0)
    t = 1.0 / (1.0 + 0.2316419 * size)
    tail = t * _TAIL[4]
    for coefficient in _TAIL[3::-1]:
        tail += coefficient
        tail *= t
    tail *= np.exp(-0.5 * size * size)
    tail *= _INV_SQRT_2PI
    return np.where(x > 0, 1.0 - tail, tail)


def density(x: ArrayLike) -> Floats:
    """Density of the standard normal at `x`."""
    x = _floats(x)
    return np.exp(-0.5 * x * x) * _INV_SQRT_2PI


def ndtri(p: ArrayLike) -> Floats:
    """The `p` quantile of the standard normal, within 1e-6; `p` is held inside [1e-12, 1 - 1e-12].

    >>> round(float(ndtri(0.975)), 4)
    1.96
    """
    p = np.clip(np.asarray(p, dtype=np.float64), 1e-12, 1.0 - 1e-12)
    small = np.minimum(p, 1.0 - p)
    # Abramowitz and Stegun (1964), 26.2.23, then Halley steps on log(tail), which converge in the far tail
    # too.
    t = np.sqrt(-2.0 * np.log(small))
    x = t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)))
    for _ in range(2):
        x += np.log(np.maximum(_upper_tail(x), 1e-300) / small) * _mills(x)
    result: Floats = np.where(p < 0.5, -x, x)
    return result


def _upper_tail(x: Floats) -> Floats:
    """1 - Phi(x) for x >= 0 with a relative error near 1e-7 (Chebyshev fit of erfc, Numerical Recipes
    6.2)."""
    z = np.abs(x) / np.sqrt(2.0)
    t = 1.0 / (1.0 + 0.5 * z)
    powers = (
        -1.26551223,
        1.00002368,
        0.37409196,
        0.09678418,
        -0.18628806,
        0.27886807,
        -1.13520398,
        1.48851587,
    )
    poly = np.full_like(t, 0.17087277)
    poly = poly * t - 0.82215223
    for coefficient in powers[::-1]:
        poly = poly * t + coefficient
    upper = 0.5 * t * np.exp(-z * z + poly)
    result: Floats = np.where(x >= 0, upper, 1.0 - upper)
    return result


def _mills(x: Floats) -> Floats:
    return _upper_tail(x) / density(x)


def _floats(x: ArrayLike) -> Floats:
    x = np.asarray(x)
    return x if x.dtype.kind == "f" else x.astype(np.float64)
