"""First passage: the chance that the best of a path stays below a target, its normal scores being a g + b e.

g is one normal draw for the path, b = sqrt(1 - a^2), and e a second one that is drawn anew at a step with
probability r and otherwise kept from the step before. Given g, the path stays below if e stays below
thresholds x_h = (z_h - a_h g) / b_h; the chance of that is taken as

    min_h(p_h)^(1 - r) * prod_h(1 - r + r p_h),   p_h = Phi(x_h),

which is exact for r = 0 and for r = 1, and falls with the targets and with time whatever r is. g is
integrated by the trapezoidal rule: with loadings up to 0.97 the integrand is smooth at this spacing (error
below 1e-4). Steps are the first axis, as reductions over it are the quickest. Letters: H steps, C trials, Y targets,
G nodes of the integral over g.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from foresail.curves.normal import density, ndtr

Floats = NDArray[Any]

NODES = np.arange(-3.85, 3.86, 0.35, dtype=np.float32)
NODE_WEIGHTS = (density(NODES) / density(NODES).sum()).astype(np.float32)
BLOCK = 30_000  # elements of a temporary: larger ones are fresh pages each time, which costs more than the arithmetic

# Phi by table, small enough for the cache: absolute error below 2e-4, relative below 4e-3 in the far tail.
_PER_UNIT, _REACH = 1024.0, 6.5
_PHI = ndtr(np.arange(-_REACH, _REACH, 1.0 / _PER_UNIT)).astype(np.float32)
_LEAST = np.float32(1e-12)


def below_given_factor(z: Floats, loading: Floats) -> Floats:
    """Probability that a step is below normal score z (...,) given each node of the factor, (..., G)."""
    scale = (_PER_UNIT / np.sqrt(1.0 - loading * loading)).astype(np.float32)
    index = (z * scale + np.float32(_REACH * _PER_UNIT + 0.5))[..., None] - (loading * scale)[..., None] * NODES
    return _PHI.take(index.astype(np.intp), mode="clip")


def passed_by(z_HC: Floats, loading_HC: Floats, fresh_HC: Floats) -> Floats:
    """Probability that the path has passed its targets at step h or before, (H, C)."""
    below = below_given_factor(z_HC, loading_HC)
    lowest = _running(np.minimum, below.copy())
    np.maximum(lowest, _LEAST, out=lowest)
    np.log(lowest, out=lowest)
    lowest *= 1.0 - fresh_HC[-1, :, None]
    np.exp(lowest, out=lowest)
    below -= 1.0
    below *= fresh_HC[:, :, None]
    below += 1.0
    _running(np.multiply, below)
    below *= lowest
    result: Floats = 1.0 - below @ NODE_WEIGHTS
    return result


def stays_below(z_HCY: Floats, loading_HC: Floats, fresh_HC: Floats, times_HC: Floats | None = None) -> Floats:
    """Probability that the path stays below each of Y targets at all steps, (C, Y).

    `times_HC`: how many steps each stands for, where steps have been grouped; one if left out.
    """
    below = below_given_factor(z_HCY, loading_HC[:, :, None])
    lowest = np.log(np.maximum(below.min(axis=0), _LEAST))
    lowest *= 1.0 - fresh_HC[-1, :, None, None]
    below -= 1.0
    below *= fresh_HC[:, :, None, None]
    if times_HC is None:
        below += 1.0
        staying = np.exp(lowest) * below.prod(axis=0)
    else:
        with np.errstate(divide="ignore"):
            np.log1p(below, out=below)
        below *= times_HC[:, :, None, None]
        staying = np.exp(lowest + below.sum(axis=0))
    result: Floats = staying @ NODE_WEIGHTS
    return result


def _running(combine: np.ufunc, values: Floats) -> Floats:
    """Accumulates along the first axis, in place; numpy's own way is slow where that axis is not the only one."""
    if values[0].size < _FEW:
        combine.accumulate(values, axis=0, out=values)
    else:
        for h in range(1, len(values)):
            combine(values[h - 1], values[h], out=values[h])
    return values


_FEW = 200
