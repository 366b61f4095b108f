"""Forecasts that are plain arithmetic, the same on every machine: in place of the learnt ones where only the policy's
decisions are of interest. Like the learnt ones they see all curves that they are given, so that they tell on a caller
whose choice of curves depends on anything but the log.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from foresail.core.view import Trial, View
from foresail.policies.potential import Foresight


def plain(view: View, trials: Sequence[Trial], horizon: int, target: float) -> list[Foresight]:
    """In the place of `policies.potential._forecast`."""
    sign = 1.0 if view.spec.goal.mode == "max" else -1.0
    ends = [_end(trial, sign) for trial in trials]
    spread = 0.02 + 0.5 * (max(ends) - min(ends))
    return [
        _one(trial, sign * end, horizon, short=sign * target - end, spread=spread)
        for trial, end in zip(trials, ends, strict=True)
    ]


def _end(trial: Trial, sign: float) -> float:
    """Oriented value at the end: the best, and half of what the last step gained."""
    finite = [sign * v for v in trial.values if math.isfinite(v)]
    if not finite:
        return -1.0
    gained = finite[-1] - finite[-2] if len(finite) > 1 else 0.1
    return max(finite) + 0.5 * max(0.0, gained)


def _one(trial: Trial, end: float, horizon: int, *, short: float, spread: float) -> Foresight:
    """`short`: by how much the end falls short of the target."""
    ahead = np.arange(1.0, max(0, horizon - trial.last_step) + 1.0)
    odds = min(max(0.5 - 0.5 * short / spread, 0.0), 1.0)
    reach = odds * ahead / ahead[-1] if len(ahead) else ahead
    return Foresight(ahead_H=ahead, reach_H=reach, final=end, seen_frac=trial.last_step / horizon)
