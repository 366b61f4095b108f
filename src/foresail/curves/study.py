"""Forecasts for a whole study: the function `forecast`, and `StudyState`, which takes points as they come.

A state holds the points and, fitted now and then, what all trials say together (scale, neighbours, gains of
finished trials, honesty). A new point touches its own trial alone. Letters: C trials, H horizon, K knobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from foresail.curves.earlier import Earlier
from foresail.curves.forecasts import Forecast
from foresail.curves.history import History, gather
from foresail.curves.network import Network, shipped
from foresail.curves.posterior import Cut, cut, spread_over
from foresail.curves.scale import FLOOR, Scale, sign_of
from foresail.curves.score import Scorecard
from foresail.curves.trackrecord import PastForecasts, past_forecasts, track_record
from foresail.curves.view import GlobalView, fit_view
from foresail.errors import CallerError

Floats = NDArray[Any]
Rows = NDArray[np.int64]

ABOVE_CEILING = 0.1  # what is left of forecasts above a ceiling of the metric that the study has run into
REFIT_GROWTH = 0.25  # a state refits itself once it has this share of points more than at the last fit


def forecast(
    steps: Sequence[ArrayLike],
    values: Sequence[ArrayLike],
    horizon: ArrayLike,
    *,
    mode: str,
    features: ArrayLike | None = None,
    draws: int = 1000,
    rng: Generator | None = None,
    earlier: Sequence[Earlier] = (),
) -> Forecast:
    """Where the curves of a study will go.

    Args:
        steps, values: one 1-D array a trial, empty for a trial that has not started. Gaps are fine; values
            that are not finite count as divergence where the curve ends on them, and are left out elsewhere.
        horizon: the H steps asked for, common to all, increasing; the last is the end of the schedule.
        mode: "max" if more of the metric is better, "min" if less.
        features: hyperparameters in the unit cube, (C, K).
        draws: how many joint futures `Forecast.draws` holds; nothing else depends on it.
        rng: where those come from; a fixed seed if left out.
        earlier: studies of the same space as a prior, made by `summarise`.

    Raises:
        CallerError: shapes that do not fit, an empty or unsorted horizon, or an unknown mode.

    >>> f = forecast([[1, 2, 3], []], [[0.1, 0.4, 0.5], []], [1, 2, 3, 4, 5, 6], mode="max")
    >>> f.mean.shape, f.prob_reach(0.5, by=3).tolist()[0]
    ((2, 6), 1.0)
    """
    state = StudyState(mode=mode, earlier=earlier)
    state.load(gather(sign_of(mode), steps, values), features)
    return state.forecast(horizon, draws=draws, rng=rng)


@dataclass(frozen=True, slots=True)
class Layers:
    """Which parts of the global view are on; all of them but in measurements of what each is worth."""

    study: bool = True  # neighbours, gains of finished trials
    honesty: bool = True  # recalibration on the study's own record


class StudyState:
    """A study whose points arrive one by one.

    `update` and a forecast of a few trials cost the same whatever the size of the study. What all trials say
    together is fitted when first needed and again after the study has grown by a quarter, so its cost is
    spread out too; `refit` does it on demand. A horizon that ends at another step
    than the last one asks for a new fit too, so ask always to the end of the schedule.

    Args:
        mode: "max" or "min".
        features: hyperparameters in the unit cube of trials known already, (C, K).
        earlier: studies of the same space as a prior, made by `summarise`.
        network: the posterior; the shipped one if left out.
        layers: parts of the global view to use.
    """

    def __init__(
        self,
        mode: str,
        features: ArrayLike | None = None,
        *,
        earlier: Sequence[Earlier] = (),
        network: Network | None = None,
        layers: Layers | None = None,
    ) -> None:
        self._sign = sign_of(mode)
        self._network = network or shipped()
        self._layers = layers or Layers()
        self._earlier = tuple(earlier)
        self._history = History(self._sign, 0)
        self._features: Floats | None = None
        self._view: GlobalView | None = None
        self._points, self._fitted_points = 0, -1
        if features is not None:
            known = _matrix(features)
            self.load(gather(self._sign, [()] * len(known), [()] * len(known)), known)

    def __len__(self) -> int:
        return len(self._history)

    def load(self, history: History, features: ArrayLike | None = None) -> None:
        """Replaces all that is known by a whole study."""
        self._features = None if features is None else _matrix(features)
        if self._features is not None and len(self._features) != len(history):
            raise CallerError(f"features of {len(self._features)} trials", allowed=f"as many as trials: {len(history)}")
        self._history = history
        self._view, self._points = None, int(history.total.sum())

    def update(self, trial: int, steps: ArrayLike, values: ArrayLike, features: ArrayLike | None = None) -> None:
        """Adds new points to a trial; `trial` may be the next new number, then with its hyperparameters
        (K,)."""
        if trial == len(self) and (self._features is not None or (features is not None and trial == 0)):
            row = _matrix(np.asarray(features, dtype=np.float64)[None] if features is not None else np.empty((1, 0)))
            self._features = row if self._features is None else self._joined(row, trial)
        self._history.extend(trial, steps, values)
        self._points += np.size(values)

    def _joined(self, row: Floats, trial: int) -> Floats:
        assert self._features is not None
        if row.shape[1] != self._features.shape[1]:
            raise CallerError(
                f"trial {trial}: {row.shape[1]} features", allowed=f"{self._features.shape[1]}, as before"
            )
        if trial == len(self._features):  # room for some more, so that a new trial costs the same in any study
            self._features = np.pad(self._features, ((0, 8 + trial // 8), (0, 0)))
        self._features[trial] = row[0]
        return self._features

    def refit(self, horizon: ArrayLike) -> None:
        """Fits what all trials say together, now."""
        steps = _horizon(horizon)
        self._view = fit_view(
            self._history,
            self._knobs(np.arange(len(self))),
            self._network,
            float(steps[-1]),
            _gap(steps),
            study=self._layers.study,
            honesty=self._layers.honesty,
            earlier=self._earlier,
        )
        self._fitted_points = self._points

    def forecast(
        self,
        horizon: ArrayLike,
        trials: Sequence[int] | Rows | None = None,
        *,
        draws: int = 1000,
        rng: Generator | None = None,
    ) -> Forecast:
        """As the function `forecast`, for the trials asked for (all if left out), in their order."""
        steps = _horizon(horizon)
        rows = np.arange(len(self)) if trials is None else np.asarray(trials, dtype=np.int64)
        view = self._current_view(steps)
        now = cut(self._history, rows, self._history.count[rows], view.scale, view.end, view.gap)
        laws = view.laws(self._network, now, rows, self._knobs(rows))
        laws.tables[self._history.lost[rows]] = FLOOR
        outside = Scale(0.0, 1.0).outside(laws.tables)
        if view.capped:
            outside = np.where(outside > 0, ABOVE_CEILING * outside, outside)
        joint = spread_over(steps, now, replace(laws, tables=outside))
        return self._assemble(steps, rows, now, view.scale, joint, draws, rng)

    def track_record(self, horizon: ArrayLike) -> Scorecard:
        """Scores of what would have been forecast for the trials that have finished by now."""
        return track_record(self.past_forecasts(horizon))

    def past_forecasts(self, horizon: ArrayLike) -> PastForecasts:
        """What would have been forecast for the trials that have finished by now, and what came of it."""
        view = self._current_view(_horizon(horizon))
        return past_forecasts(view, self._network, self._history, self._knobs(np.arange(len(self))))

    def _knobs(self, rows: Rows) -> Floats:
        return np.empty((len(rows), 0)) if self._features is None else self._features[rows]

    def _current_view(self, steps: Floats) -> GlobalView:
        grown = self._points > (1.0 + REFIT_GROWTH) * self._fitted_points
        if self._view is None or grown or self._view.end != steps[-1]:
            self.refit(steps)
        assert self._view is not None
        return self._view

    def _assemble(
        self,
        steps: Floats,
        rows: Rows,
        now: Cut,
        scale: Scale,
        joint: tuple[Floats, Floats, Floats],
        draws: int,
        rng: Generator | None,
    ) -> Forecast:
        history = self._history
        table, loading, fresh = joint
        started = history.count[rows] > 0
        future = ~started[:, None] | (steps[None, :] > now.last_step[:, None])
        origin, unit = float(scale.best), float(scale.width)
        high = history.ends.high[rows]
        best = np.where(started, (high - origin) / unit, -np.inf)
        if not future.all():
            _write_past(history, rows, steps, future, table, origin, unit)
            loading = np.where(future, loading, np.float32(0.0))
        return Forecast(
            steps,
            self._sign,
            origin,
            unit,
            table,
            loading,
            fresh.astype(np.float32),
            future,
            best,
            now.last_step,
            draws,
            rng,
        )


def _write_past(
    history: History,
    rows: Rows,
    steps: Floats,
    future: NDArray[np.bool_],
    table: Floats,
    origin: float,
    unit: float,
) -> None:
    """Past steps of the horizon hold their points; between points, the straight line."""
    for i in np.flatnonzero(~future.all(axis=1)):
        row, past = rows[i], ~future[i]
        n = history.count[row]
        known = np.interp(steps[past], history.steps[row, :n], history.values[row, :n])
        known -= origin
        known /= unit
        np.minimum(known, 1e37, out=known)
        table[i, past] = np.maximum(known, -1e37, out=known)[:, None]


def _horizon(horizon: ArrayLike) -> Floats:
    steps = np.asarray(horizon, dtype=np.float64).reshape(-1)
    rising = len(steps) > 0 and bool((steps[1:] > steps[:-1]).all())  # false with a nan in it
    if not rising or not (np.isfinite(steps[0]) and 0 < steps[-1] < np.inf):
        raise CallerError(
            f"horizon {horizon!r}"[:200],
            allowed="at least one step, finite, strictly increasing, the last above zero",
        )
    return steps


def _gap(steps: Floats) -> float:
    """The median distance between the steps asked for."""
    if len(steps) == 1:
        return float(steps[0]) / 50.0
    apart = np.sort(steps[1:] - steps[:-1])
    return float(apart[(len(apart) - 1) // 2] + apart[len(apart) // 2]) / 2.0


def _matrix(features: ArrayLike) -> Floats:
    known = np.asarray(features, dtype=np.float64)
    if known.ndim != 2 or not np.isfinite(known).all():
        raise CallerError(f"features of shape {known.shape}", allowed="finite numbers of shape (trials, knobs)")
    return known
