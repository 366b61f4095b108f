"""Accuracy potential as policies use it: of each trial, the chance to reach a value and what it would gain.

Part of a policy's index. What all trials say together is folded from the log, and fitted again at moments that the log
alone decides (each time the study has grown by a quarter). A trial's forecast is a function of that and of its curve,
always made for that trial alone, so keeping it changes the speed of a decision and not one bit of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from foresail.core import events as ev
from foresail.core.spec import StudySpec
from foresail.core.view import Trial, View
from foresail.core.words import TrialId
from foresail.curves import Forecast, StudyState
from foresail.policies.horizon import horizon_of
from foresail.space import Space

MOST_STEPS = 64
"""A forecast looks at no more moments than this; longer horizons are thinned."""
GROWTH = 1.25
"""The study is fitted again when it has so many times the points of the last fit: its cost stays a constant share."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Foresight:
    """What is foreseen of one trial for one target.

    `ahead_H`: steps from now, rising; `seen_frac`: share of the trial's steps that has been seen.
    """

    forecast: Forecast
    target: float
    last_step: int
    seen_frac: float

    @cached_property
    def ahead_H(self) -> Array:
        ahead: Array = self.forecast.horizon[self._future] - float(self.last_step)
        return ahead

    @cached_property
    def _future(self) -> NDArray[np.bool_]:
        future: NDArray[np.bool_] = self.forecast.horizon > self.last_step
        return future

    @cached_property
    def reach_H(self) -> Array:
        """P(target reached within so many steps), never falling."""
        reach: Array = self.forecast.prob_reach(self.target, by=self.forecast.horizon)[0, self._future]
        return reach.astype(float)

    @cached_property
    def final(self) -> float:
        """Expected value at the end."""
        return float(self.forecast.mean[0, -1])

    @cached_property
    def ends_beyond(self) -> float:
        """P(the value at the end is at the target or better)."""
        below = float(self.forecast.cdf(self.target)[0, -1])
        return 1.0 - below if self.forecast.sign > 0 else below

    @cached_property
    def gain(self) -> float:
        """Expected improvement over the target by the end."""
        return float(self.forecast.expected_improvement(self.target)[0])

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
    """Forecasts of a study's trials. `begin` makes it, `observe` carries it over an event; nothing else changes it."""

    state: StudyState
    space: Space
    end: int = 4
    points: int = 0
    fitted: int = 0
    fits: int = 0
    kept: dict[TrialId, tuple[tuple[int, int, float], Foresight]] = field(default_factory=dict)

    @classmethod
    def begin(cls, spec: StudySpec) -> Potential:
        space = Space.from_dict(spec.space)
        return cls(StudyState(spec.goal.mode), space, end=spec.max_steps or 4)

    def observe(self, view: View, event: ev.Event) -> None:
        match event:
            case ev.TrialProposed(trial=trial, config=config):
                self.state.update(trial, (), (), features=self.space.to_unit(config))
            case ev.PointReported(attempt=attempt, step=step, metrics=metrics):
                value = metrics.get(view.spec.goal.metric)
                if value is not None:
                    trial_now = view.trial_of(attempt)
                    self.state.update(trial_now.id, (step,), (value,))
                    self._grow(trial_now)
            case ev.TrialEnded(trial=trial):
                self.kept.pop(trial, None)

    def _grow(self, trial: Trial) -> None:
        self.points += 1
        end = max(self.end, horizon_of(trial))
        if end != self.end or self.points > GROWTH * self.fitted:
            self.end = end
            self.state.refit(self._horizon())
            self.fitted, self.fits = self.points, self.fits + 1

    def _horizon(self) -> Array:
        return np.unique(np.linspace(1, self.end, min(self.end, MOST_STEPS)).round())

    def foresee(self, trials: Sequence[Trial], target: float) -> dict[TrialId, Foresight]:
        """Of each of `trials`. Needs one point of the study at least."""
        found = {}
        for trial in trials:
            key = (len(trial.values), self.fits, target)
            known = self.kept.get(trial.id)
            if known is None or known[0] != key:
                known = self.kept[trial.id] = (key, self._foresight(trial, target))
            found[trial.id] = known[1]
        return found

    def _foresight(self, trial: Trial, target: float) -> Foresight:
        seen_frac = trial.last_step / horizon_of(trial)
        forecast = self.state.forecast(self._horizon(), [trial.id])
        return Foresight(forecast, target, trial.last_step, seen_frac)
