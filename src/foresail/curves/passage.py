"""First passage: the chance that the best of a path stays below a target, its normal scores being a g + b e.

g is one normal draw for the path, b = sqrt(1 - a^2), and e a second one that is drawn anew at a step with
probability r and otherwise kept from the step before. Given g, the path stays below if e stays below
thresholds x_h = (z_h - a_h g) / b_h; the chance of that is taken as

    min_h(p_h)^(1 - r) * prod_h(1 - r + r p_h),   p_h = Phi(x_h),

which is exact for r = 0 and for r = 1, and falls with the targets and with time whatever r is. g is
integrated by the trapezoidal rule: with loadings up to 0.97 the integrand is smooth at this spacing (error
below 1e-4). Letters: C trials, Y targets, H steps, G nodes of the integral over g.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from foresail.curves.normal import density, ndtr

Floats = NDArray[Any]

NODES = np.arange(-3.85, 3.86, 0.35, dtype=np.float32)
NODE_WEIGHTS = (density(NODES) / density(NODES).sum()).astype(np.float32)
BLOCK = 120_000  # elements of a temporary: small enough for the cache, large enough for numpy

# Phi by table: relative error below 1e-3 and absolute below 5e-5, which is all that the loadings are worth.
_PER_UNIT, _REACH = 4096.0, 6.5
_PHI = ndtr(np.arange(-_REACH, _REACH, 1.0 / _PER_UNIT)).astype(np.float32)
_LEAST = np.float32(1e-12)


def below_given_factor(z: Floats, loading: Floats) -> Floats:
    """Probability that a step is below normal score z (...,) given each node of the factor, (..., G)."""
    scale = (_PER_UNIT / np.sqrt(1.0 - loading * loading)).astype(np.float32)
    index = (z * scale + np.float32(_REACH * _PER_UNIT + 0.5))[..., None] - (loading * scale)[
        ..., None
    ] * NODES
    return _PHI.take(index.astype(np.int32), mode="clip")


def passed_by(z_CH: Floats, loading_CH: Floats, fresh_CH: Floats) -> Floats:
    """Probability that the path has passed its targets at step h or before, (C, H)."""
    below = below_given_factor(z_CH, loading_CH)
    lowest = np.minimum.accumulate(below, axis=1)
    np.maximum(lowest, _LEAST, out=lowest)
    np.log(lowest, out=lowest)
    lowest *= 1.0 - fresh_CH[:, -1:, None]
    np.exp(lowest, out=lowest)
    below -= 1.0
    below *= fresh_CH[:, :, None]
    below += 1.0
    np.cumprod(below, axis=1, out=below)
    below *= lowest
    result: Floats = 1.0 - below @ NODE_WEIGHTS
    return result


def stays_below(
    z_CYH: Floats, loading_CH: Floats, fresh_CH: Floats, times_CH: Floats | None = None
) -> Floats:
    """Probability that the path stays below each of Y targets at all steps, (C, Y).

    `times_CH`: how many steps each stands for, where steps have been grouped; one if left out.
    """
    below = below_given_factor(z_CYH, loading_CH[:, None])
    lowest = np.log(np.maximum(below.min(axis=2), _LEAST))
    lowest *= 1.0 - fresh_CH[:, None, -1:]
    below -= 1.0
    below *= fresh_CH[:, None, :, None]
    if times_CH is None:
        below += 1.0
        staying = np.exp(lowest) * below.prod(axis=2)
    else:
        with np.errstate(divide="ignore"):
            np.log1p(below, out=below)
        below *= times_CH[:, None, :, None]
        staying = np.exp(lowest + below.sum(axis=2))
    result: Floats = staying @ NODE_WEIGHTS
    return result
