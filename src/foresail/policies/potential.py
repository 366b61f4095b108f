"""Accuracy potential as policies use it: for each trial, the chance to reach a value within so many further steps.

Curves are looked at through a lens that is sharp around the target: y -> asinh((y - target) / s), with s a twentieth of
the way from where trials start to the target. What is far from the target is drawn together logarithmically, so that the
difference between 0.95 and 0.98 counts when the target is 0.98, and the difference between 0.2 and 0.4 counts little.
The map is monotone, so a chance to reach the target is the same chance on both sides of it; measured on recorded curves
(docs/decisions/0002-focus-on-the-target.md) it takes a third off the Brier score of such chances.

Forecasts are pure functions of the curves, so keeping them (by trial and by how much of its curve was seen) changes the
speed of a decision and never the decision.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from foresail.core import events as ev
from foresail.core.view import Trial, View
from foresail.core.words import TrialId

MOST_STEPS = 64
"""A forecast looks at no more moments than this; longer horizons are thinned."""
UNKNOWN_HORIZON = 3
"""Where nobody said how long a trial is, so many times what it has done."""

FOCUS = 0.05
"""Width of the sharp zone around the target, as a share of the way from where trials start to it."""
FEWEST_STARTS = 3
"""So many trials must have started before where they start is known."""

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Focus:
    """The lens: monotone, linear near `target`, logarithmic far from it. `width` in units of the metric."""

    target: float
    width: float

    def of(self, values: Array) -> Array:
        return np.asarray(np.arcsinh((values - self.target) / self.width))

    def back(self, seen: float) -> float:
        return self.target + self.width * float(np.sinh(np.clip(seen, -300.0, 300.0)))


@dataclass(frozen=True, slots=True)
class Foresight:
    """What is foreseen of one trial.

    `ahead_H`: steps from now; `reach_H`: P(target reached within so many steps), never falling; `final`: median
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
    """Forecasts of a study's trials, and the values with which trials start (sorted)."""

    starts: list[float] = field(default_factory=list)
    kept: dict[TrialId, tuple[int, Focus, Foresight]] = field(default_factory=dict)

    def observe(self, view: View, event: ev.Event) -> None:
        """Carry it over one event."""
        match event:
            case ev.PointReported(attempt=attempt):
                trial = view.trial_of(attempt)
                if len(trial.values) == 1 and math.isfinite(trial.values[0]):
                    insort(self.starts, trial.values[0])
            case ev.TrialEnded(trial=number):
                self.kept.pop(number, None)

    def focus(self, target: float) -> Focus:
        """The lens for a target. Its width moves in steps of two, so that forecasts can be kept."""
        starts = self.starts if len(self.starts) >= FEWEST_STARTS else [target - 1.0]
        way = abs(target - starts[len(starts) // 2])
        scale = FOCUS * max(way, 1e-6 * max(abs(target), 1e-6))
        return Focus(target, 2.0 ** round(math.log2(scale)))

    def foresee(self, view: View, trials: Sequence[Trial], target: float) -> dict[TrialId, Foresight]:
        """Of each of `trials`, which have at least one point."""
        focus = self.focus(target)
        stale = [t for t in trials if self.kept.get(t.id, (0, None))[:2] != (len(t.values), focus)]
        for horizon in sorted({horizon_of(t) for t in stale}):
            group = [t for t in stale if horizon_of(t) == horizon]
            for trial, foresight in zip(group, _forecast(view, group, horizon, focus), strict=True):
                self.kept[trial.id] = (len(trial.values), focus, foresight)
        return {t.id: self.kept[t.id][2] for t in trials}


def horizon_of(trial: Trial) -> int:
    """The step at which the trial will end."""
    return max(trial.max_steps or UNKNOWN_HORIZON * max(trial.last_step, 4), trial.last_step)


def _forecast(view: View, trials: Sequence[Trial], horizon: int, focus: Focus) -> list[Foresight]:
    from foresail.curves import forecast

    steps_H = np.unique(np.linspace(1, horizon, min(horizon, MOST_STEPS)).round()).astype(int)
    seen = forecast(
        [np.asarray(t.steps, float) for t in trials],
        [focus.of(np.asarray(t.values, float)) for t in trials],
        steps_H,
        mode=view.spec.goal.mode,
    )
    reach_CH = seen.prob_reach(0.0, by=steps_H)
    final_C = seen.quantile(0.5)[:, -1]
    found = []
    for i, trial in enumerate(trials):
        ahead = steps_H > trial.last_step
        found.append(
            Foresight(
                ahead_H=(steps_H[ahead] - trial.last_step).astype(float),
                reach_H=np.maximum.accumulate(reach_CH[i, ahead]) if ahead.any() else np.zeros(0),
                final=focus.back(float(final_C[i])),
                seen_frac=trial.last_step / horizon,
            )
        )
    return found
