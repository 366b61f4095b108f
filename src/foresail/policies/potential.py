"""Accuracy potential as policies use it: for each trial, the chance to reach a value within so many further steps.

A forecast sees all curves that it is given, so they are always all of the same: those of every trial that may go on
and has the same horizon. It is then a pure function of the view, and keeping it until one of these curves changes is a
matter of speed and never changes a decision.
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
    """Forecasts of a study's trials. `kept`: by horizon, what they were made from, and they."""

    kept: dict[int, tuple[object, dict[TrialId, Foresight]]] = field(default_factory=dict)

    def foresee(self, view: View, trials: Sequence[Trial], target: float) -> dict[TrialId, Foresight]:
        """Of each of `trials`, which have at least one point."""
        groups: dict[int, list[Trial]] = {}
        for trial in sorted(trials, key=lambda t: t.id):
            groups.setdefault(horizon_of(trial), []).append(trial)
        self.kept = {horizon: self._of(view, group, horizon, target) for horizon, group in groups.items()}
        return {trial: foresight for _, found in self.kept.values() for trial, foresight in found.items()}

    def _of(
        self, view: View, group: list[Trial], horizon: int, target: float
    ) -> tuple[object, dict[TrialId, Foresight]]:
        made_from = (target, tuple((t.id, t.told) for t in group))
        known = self.kept.get(horizon)
        if known is not None and known[0] == made_from:
            return known
        found = _forecast(view, group, horizon, target)
        return made_from, {t.id: foresight for t, foresight in zip(group, found, strict=True)}


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
