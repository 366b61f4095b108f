"""Accuracy potential as policies use it: of each trial, the chance to reach a value and what it would gain.

Part of a policy's index. What all trials say together is folded from the log, seen through a lens (`focus.py`), and
fitted again at moments that the log alone decides: when the lens must change, and each time the study has grown by a
quarter. A trial's forecast is a function of that and of its curve, always made for that trial alone, so keeping it
changes the speed of a decision and not one bit of it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
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
from foresail.policies.focus import Focus, Starts
from foresail.policies.horizon import horizon_of
from foresail.space import Space

MOST_STEPS = 64
"""A forecast looks at no more moments than this; longer horizons are thinned."""
GROWTH = 1.25
"""The study is fitted again when it has so many times the points of the last fit: its cost stays a constant share."""
GAIN_STEPS = np.linspace(0.0, 6.0, 13)
"""Where the tail beyond the target is looked at for the expected gain, in units of the lens."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Foresight:
    """What is foreseen of one trial for one target, both in the metric's own units.

    `ahead_H`: steps from now, rising; `seen_frac`: share of the trial's steps that has been seen.
    """

    forecast: Forecast
    focus: Focus
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
    def _threshold(self) -> float:
        return float(self.focus.of(self.target))

    @cached_property
    def reach_H(self) -> Array:
        """P(target reached within so many steps), never falling."""
        reach: Array = self.forecast.prob_reach(self._threshold, by=self.forecast.horizon)[0, self._future]
        return reach.astype(float)

    @cached_property
    def final(self) -> float:
        """Median of the value at the end."""
        return float(self.focus.back(self.forecast.quantile(0.5)[0, -1]))

    @cached_property
    def ends_beyond(self) -> float:
        """P(the value at the end is at the target or better)."""
        below = float(self.forecast.cdf(self._threshold)[0, -1])
        return 1.0 - below if self.forecast.sign > 0 else below

    @cached_property
    def gain(self) -> float:
        """Expected improvement over the target by the end: the integral of P(best > y) beyond it."""
        levels = self._threshold + self.forecast.sign * GAIN_STEPS
        passed = self.forecast.prob_reach_each(levels)[0]
        return float(abs(np.trapezoid(passed, self.focus.back(levels))))

    @cached_property
    def _passing(self) -> tuple[list[float], list[float], list[float]]:
        """By each moment ahead: its steps from now, the chance to have arrived, and the steps that arrivals took, as
        lists: they are asked for at each decision, and a bisection costs a tenth of a call of numpy."""
        took_H = np.cumsum(self.ahead_H * np.diff(self.reach_H, prepend=0.0))
        return self.ahead_H.tolist(), self.reach_H.tolist(), took_H.tolist()

    def within(self, steps: float) -> float:
        """P(the target is reached within `steps` further steps)."""
        ahead, reach, _ = self._passing
        upto = bisect_right(ahead, steps)
        return reach[upto - 1] if upto else 0.0

    def expected_steps(self, steps: float) -> float:
        """Expected steps to the target, given that it is reached within `steps`."""
        ahead, reach, took = self._passing
        upto = bisect_right(ahead, steps)
        return took[upto - 1] / reach[upto - 1] if upto and reach[upto - 1] > 0.0 else math.nan


@dataclass
class Potential:
    """Forecasts of a study's trials. `begin` makes it, `observe` carries it over an event; nothing else changes it."""

    space: Space
    end: int = 4
    state: StudyState | None = None
    focus: Focus | None = None
    starts: Starts = field(default_factory=Starts)
    points: int = 0
    fitted: int = 0
    fits: int = 0
    kept: dict[TrialId, tuple[tuple[int, int, float], Foresight]] = field(default_factory=dict)

    @classmethod
    def begin(cls, spec: StudySpec) -> Potential:
        return cls(Space.from_dict(spec.space), end=spec.max_steps or 4)

    def observe(self, view: View, event: ev.Event) -> None:
        match event:
            case ev.TrialProposed(trial=number):
                self._tell(view.trials[number])
            case ev.PointReported(attempt=attempt, step=step, metrics=metrics):
                value = metrics.get(view.spec.goal.metric)
                if value is not None:
                    self._point(view, view.trial_of(attempt), step, value)

    def _point(self, view: View, trial: Trial, step: int, value: float) -> None:
        self.points += 1
        if len(trial.values) == 1:
            self.starts.add(value)
        focus = self._wanted(view)
        end = max(self.end, horizon_of(trial))
        if focus != self.focus:
            self._refocus(view, focus)
        elif self.state is not None and self.focus is not None:
            self.state.update(trial.id, (step,), self.focus.of(value)[None])
        if end != self.end or self.points > GROWTH * self.fitted:
            self._fit(end)

    def _wanted(self, view: View) -> Focus | None:
        target = view.spec.goal.target
        if target is None and view.best is not None:
            target = view.best[2]
        return self.focus if target is None else self.starts.focus(target, self.focus)

    def _refocus(self, view: View, focus: Focus | None) -> None:
        """A new lens: everything is looked at again."""
        self.state, self.focus = StudyState(view.spec.goal.mode), focus
        for trial in view.trials:
            self._tell(trial)
        self._fit(self.end)

    def _tell(self, trial: Trial) -> None:
        if self.state is not None and self.focus is not None:
            values = self.focus.of(np.asarray(trial.values))
            self.state.update(trial.id, trial.steps, values, features=self.space.to_unit(trial.config))

    def _fit(self, end: int) -> None:
        self.end = end
        if self.state is not None:
            self.state.refit(self._horizon())
            self.fitted, self.fits = self.points, self.fits + 1

    def _horizon(self) -> Array:
        return np.unique(np.linspace(1, self.end, min(self.end, MOST_STEPS)).round())

    def foresee(self, trials: Sequence[Trial], target: float) -> dict[TrialId, Foresight]:
        """Of each of `trials`. Needs one point of the study at least."""
        kept = {}
        for trial in trials:
            key = (trial.told, self.fits, target)
            known = self.kept.get(trial.id)
            kept[trial.id] = known if known and known[0] == key else (key, self._foresight(trial, target))
        self.kept = kept
        return {trial: foresight for trial, (_, foresight) in kept.items()}

    def _foresight(self, trial: Trial, target: float) -> Foresight:
        assert self.state is not None
        assert self.focus is not None
        seen_frac = trial.last_step / horizon_of(trial)
        forecast = self.state.forecast(self._horizon(), [trial.id])
        return Foresight(forecast, self.focus, target, trial.last_step, seen_frac)
