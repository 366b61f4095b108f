"""From the times of single steps to one figure: warm-up left out, noise stated, drift noticed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from foresail.errors import CallerError

_FAR = 3.0
"""Robust deviations from the settled median beyond which a leading step is warm-up."""
_LEAST_SPREAD = 0.01
"""Relative deviation below which steps are taken as equal."""


class Settled(NamedTuple):
    """One figure for many steps.

    `noise_sd` is the relative error of `seconds`; `dropped` leading steps were warm-up (compilation, caches);
    `is_drifting` says that the last third is slower or faster than the one before by more than noise
    explains.
    """

    seconds: float
    noise_sd: float
    dropped: int
    is_drifting: bool


def settled(step_s: ArrayLike) -> Settled:
    """The median of the steps after warm-up.

    Raises:
        CallerError: no step, or one that is not a positive finite number of seconds.

    >>> settled([3.0, 1.2, 1.0, 1.0, 1.01, 0.99]).dropped
    2
    """
    times = np.asarray(step_s, float)
    if times.size == 0 or not (np.isfinite(times) & (times > 0)).all():
        raise CallerError(f"step times {times[:5].tolist()}", allowed="at least one, all finite and above 0")
    late = times[len(times) // 2 :]
    middle, spread = _robust(late)
    dropped = 0
    most = min(len(times) // 2, max(2, len(times) // 4))  # a later change is drift, not warm-up
    while dropped < most and abs(times[dropped] - middle) > _FAR * spread:
        dropped += 1
    kept = times[dropped:]
    middle, spread = _robust(kept)
    noise = 1.25 * spread / middle / np.sqrt(len(kept))  # of a median, in units of the mean's (normal noise)
    return Settled(float(middle), float(noise), dropped, _drifts(kept, spread))


def _robust(times: np.ndarray) -> tuple[float, float]:
    middle = float(np.median(times))
    spread = 1.4826 * float(np.median(np.abs(times - middle)))
    return middle, max(spread, _LEAST_SPREAD * middle)


def _drifts(times: np.ndarray, spread: float) -> bool:
    if len(times) < 9:
        return False
    third = len(times) // 3
    before, after = np.median(times[-2 * third : -third]), np.median(times[-third:])
    return bool(abs(after - before) > _FAR * 1.25 * spread * np.sqrt(2 / third))
