"""Honest intervals: how many standard deviations hold 90 % of what is measured.

The deviation that a fit claims is right for its own assumptions only. Scores |error| / sd of other jobs,
taken in the same way (as many measured configurations), say how far off it is; their quantile with the
finite-sample correction of split conformal prediction (Vovk et al. 2005; Lei et al. 2018, section 2.2)
covers a further job like them.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from foresail.errors import CallerError
from foresail.perf.fitting import Prediction
from foresail.perf.rows import Floats


def scores(prediction: Prediction, measured: ArrayLike) -> Floats:
    """[N] absolute errors of the logarithm, in claimed deviations."""
    errors = np.log(np.asarray(measured, float)) - prediction.log_median
    found: Floats = np.abs(errors) / prediction.log_sd
    return found


def excess(prediction: Prediction, measured: ArrayLike) -> Floats:
    """[N] how far measurements lie above the median, in claimed deviations: for one-sided bounds."""
    found: Floats = (np.log(np.asarray(measured, float)) - prediction.log_median) / prediction.log_sd
    return found


def calibrate(past: ArrayLike, *, level: float = 0.9, one_sided: bool = False, shrink: int = 20) -> float:
    """The deviations that hold `level` of the measurements of a job like those that gave the scores.

    `one_sided` scores are `excess`, and the result bounds measurements from above only. With few scores the
    normal distribution's figure counts as `shrink` more of them.

    Raises:
        CallerError: the level is not between 0 and 1.

    >>> round(calibrate([], level=0.9), 3)
    1.645
    """
    if not 0 < level < 1:
        raise CallerError(f"level is {level}", allowed="between 0 and 1")
    values = np.asarray(past, float)
    values = values[np.isfinite(values)]
    usual = _normal_quantile(2 * level - 1 if one_sided else level)
    if len(values) == 0:
        return usual
    rank = min(1.0, math.ceil((len(values) + 1) * level) / len(values))
    found = float(np.quantile(values, rank))
    weight = len(values) / (len(values) + shrink)
    return math.exp(weight * math.log(max(found, 1e-3)) + (1 - weight) * math.log(usual))


def _normal_quantile(level: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(0.5 + level / 2))
