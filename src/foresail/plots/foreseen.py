"""Forecasts of all trials of a study at once, as its policy would make them now, kept to be drawn and asked.

The same model, lens and horizon as `policies/potential.py`. A policy fits what all trials say together at moments that
its log decides; here it is fitted to all that is known, so numbers differ a little from those of an earlier decision.
Letters: C trials, H steps of the horizon, Q quantiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foresail.core.view import Trial, View
from foresail.curves import Forecast, StudyState
from foresail.curves.history import gather
from foresail.curves.scale import sign_of
from foresail.policies.focus import Focus, Starts
from foresail.policies.horizon import horizon_of
from foresail.policies.potential import MOST_STEPS
from foresail.space import Space

Floats = NDArray[Any]

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Foreseen:
    """What is foreseen of every trial that has reported a finite value, in the metric's own units.

    Attributes:
        events: how many events of the log it rests on.
        target: the goal's target, or the best so far where it has none.
        trials: their numbers, (C,), rising; `row` tells where each stands.
        horizon: steps, (H,), rising; the last is the end of the longest training.
        chance: P(target in the time that is left), (C,); by the end of its training once the study has ended.
        reach: P(target reached by each step), (C, H).
        state, forecast: the model behind it, on the lens `focus`.
        worst: the worst finite value that any trial has reported.
    """

    events: int
    target: float
    trials: NDArray[np.int64]
    horizon: Floats
    chance: Floats
    reach: Floats
    state: StudyState
    forecast: Forecast
    focus: Focus
    worst: float

    @cached_property
    def row(self) -> Mapping[int, int]:
        return {int(trial): row for row, trial in enumerate(self.trials)}

    @cached_property
    def quantiles(self) -> Floats:
        """The value at each step at `QUANTILES`, (Q, C, H); where a step is past, the point itself.

        None is worse than the worst value that any trial of the study has reported: so far from the target the lens
        draws the scale together, and its tail says nothing.
        """
        found = np.stack([self.focus.back(self.forecast.quantile(q)) for q in QUANTILES])
        return np.maximum(found, self.worst) if self.forecast.sign > 0 else np.minimum(found, self.worst)

    @cached_property
    def final(self) -> Floats:
        """The value at the end of training at `QUANTILES`, (Q, C)."""
        return self.quantiles[:, :, -1]


def foresee(view: View) -> Foreseen | None:
    """Forecasts of all trials that have started; None while no finite value has been reported.

    Costs about a quarter of a second for 1,000 trials on one core: make it once for all plots of a moment.
    """
    started = [trial for trial in view.trials if trial.best_value is not None]
    if not started or view.best is None:
        return None
    goal = view.spec.goal
    target = view.best[2] if goal.target is None else goal.target
    starts = Starts()
    for trial in started:
        starts.add(trial.values[0])
    focus = starts.focus(target, None)
    space = Space.from_dict(view.spec.space)
    values = [focus.of(np.frombuffer(trial.values)) for trial in started]
    state = StudyState(goal.mode)
    features = np.array([space.to_unit(trial.config) for trial in started])
    state.load(gather(sign_of(goal.mode), [np.asarray(t.steps) for t in started], values), features)
    end = max(view.spec.max_steps or 4, *(horizon_of(trial) for trial in started))
    horizon = np.unique(np.linspace(1, end, min(end, MOST_STEPS)).round())
    forecast = state.forecast(horizon)
    reach = np.asarray(forecast.prob_reach(float(focus.of(target)), by=horizon), dtype=float)
    trials = np.array([trial.id for trial in started])
    chance = _in_time(view, started, horizon, reach)
    return Foreseen(view.events, target, trials, horizon, chance, reach, state, forecast, focus, _worst(view, started))


def _in_time(view: View, started: list[Trial], horizon: Floats, reach: Floats) -> Floats:
    """P(target in the time that is left): the chance at the last step that the trial would still get to."""
    left_s = None if view.ended is not None else view.left_s
    if left_s is None:
        return reach[:, -1]
    steps = np.array([t.last_step + (left_s / t.step_s if t.step_s else np.inf) for t in started])
    upto = np.searchsorted(horizon, steps, side="right")
    return np.where(upto > 0, reach[np.arange(len(started)), np.maximum(upto - 1, 0)], 0.0)


def _worst(view: View, started: list[Trial]) -> float:
    values = np.concatenate([np.frombuffer(trial.values) for trial in started])
    finite = values[np.isfinite(values)]
    return float(finite.min() if view.spec.goal.mode == "max" else finite.max())
