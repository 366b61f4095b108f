"""Accuracy potential as policies use it: for each trial, the chance to reach a value within so many further steps.

Forecasts are pure functions of the curves, so keeping them (by trial and by how much of its curve was seen) changes the
speed of a decision and never the decision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from foresail.core.view import Trial, View
from foresail.core.words import TrialId

MOST_STEPS = 64
"""A forecast looks at no more moments than this; longer horizons are thinned."""
UNKNOWN_HORIZON = 3
"""Where nobody said how long a trial is, so many times what it has done."""

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Foresight:
    """What is foreseen of one trial.

    `ahead_H`: steps from now; `reach_H`: P(target reached within so many steps), never falling; `final`: expected
    value at the horizon; `seen_frac`: share of the horizon that has been seen.
    """

    ahead_H: Array
    reach_H: Array
    final: float
    seen_frac: float

    def within(self, steps: float) -> float:
        """P(the target is reached within `steps` further steps)."""
        upto = int(np.searchsorted(self.ahead_H, steps, side="right"))
        return float(self.reach_H[upto - 1]) if upto else 0.0

    def expected_steps(self, steps: float) -> float:
        """Expected steps to the target, given that it is reached within `steps`."""
        upto = int(np.searchsorted(self.ahead_H, steps, side="right"))
        if not upto or self.reach_H[upto - 1] <= 0.0:
            return float("nan")
        mass = np.diff(self.reach_H[:upto], prepend=0.0)
        return float((self.ahead_H[:upto] * mass).sum() / self.reach_H[upto - 1])


@dataclass
class Potential:
    """Forecasts of a study's trials."""

    kept: dict[TrialId, tuple[int, float, Foresight]] = field(default_factory=dict)

    def foresee(self, view: View, trials: Sequence[Trial], target: float) -> dict[TrialId, Foresight]:
        """Of each of `trials`, which have at least one point."""
        stale = [t for t in trials if self.kept.get(t.id, (0, 0.0))[:2] != (len(t.values), target)]
        for horizon in {horizon_of(t) for t in stale}:
            group = [t for t in stale if horizon_of(t) == horizon]
            for trial, foresight in zip(group, _forecast(view, group, horizon, target), strict=True):
                self.kept[trial.id] = (len(trial.values), target, foresight)
        return {t.id: self.kept[t.id][2] for t in trials}

    def forget(self, trial: TrialId) -> None:
        self.kept.pop(trial, None)


def horizon_of(trial: Trial) -> int:
    """The step at which the trial will end."""
    return max(trial.max_steps or UNKNOWN_HORIZON * max(trial.last_step, 4), trial.last_step)


def _forecast(view: View, trials: Sequence[Trial], horizon: int, target: float) -> list[Foresight]:
    from foresail.curves import forecast

    steps_H = np.unique(np.linspace(1, horizon, min(horizon, MOST_STEPS)).round()).astype(int)
    seen = forecast(
        [np.asarray(t.steps, float) for t in trials],
        [np.asarray(t.values, float) for t in trials],
        steps_H,
        mode=view.spec.goal.mode,
    )
    reach_CH = seen.prob_reach(target, by=steps_H)
    final_C = seen.mean[:, -1]
    found = []
    for i, trial in enumerate(trials):
        ahead = steps_H > trial.last_step
        found.append(
            Foresight(
                ahead_H=(steps_H[ahead] - trial.last_step).astype(float),
                reach_H=np.maximum.accumulate(reach_CH[i, ahead]) if ahead.any() else np.zeros(0),
                final=float(final_C[i]),
                seen_frac=trial.last_step / horizon,
            )
        )
    return found
