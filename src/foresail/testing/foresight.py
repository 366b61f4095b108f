"""Forecasts that are plain arithmetic, quick and the same on every machine: in place of the learnt ones where only what
follows from a forecast is of interest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foresail.core.view import Trial
from foresail.core.words import TrialId
from foresail.policies.horizon import horizon_of


@dataclass(frozen=True)
class PlainForesight:
    """Answers what `policies.potential.Foresight` answers. `odds`: P(the target is reached by the end)."""

    ahead: int
    odds: float
    final: float
    gain: float
    seen_frac: float

    @property
    def ends_beyond(self) -> float:
        return self.odds

    @property
    def reach_H(self) -> NDArray[np.float64]:
        return self.odds * np.arange(1.0, self.ahead + 1.0) / max(1, self.ahead)

    def within(self, steps: float) -> float:
        return self.odds * min(1.0, steps / self.ahead) if self.ahead else 0.0

    def expected_steps(self, steps: float) -> float:
        return 0.5 * min(steps, self.ahead) if self.within(steps) > 0.0 else math.nan


def plain(potential: Any, trials: Sequence[Trial], target: float) -> dict[TrialId, PlainForesight]:
    """In the place of `policies.potential.Potential.foresee`: of each trial alone, from its curve alone.

    The end is the last value and half of the last gain; the odds fall with the distance from there to the target. Which
    way is better is not known here, so being far beyond the target counts like being far from it.
    """
    return {trial.id: _of(trial, target) for trial in trials}


def _of(trial: Trial, target: float) -> PlainForesight:
    values = [v for v in trial.values if math.isfinite(v)]
    gained = values[-1] - values[-2] if len(values) > 1 else 0.1
    end = values[-1] + 0.5 * gained if values else 0.0
    horizon = horizon_of(trial)
    short = abs(target - end)
    return PlainForesight(
        ahead=max(0, horizon - trial.last_step),
        odds=max(0.0, 1.0 - 4.0 * short),
        final=end,
        gain=max(0.0, 0.2 - short),
        seen_frac=trial.last_step / horizon,
    )
