"""Learning curves, with where each is expected to go, and the target."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from msgspec import Struct

from foresail.core.view import Trial, View
from foresail.plots.chronicle import Chronicle
from foresail.plots.foreseen import QUANTILES, Foreseen
from foresail.plots.trials import label_of


class Band(Struct, frozen=True):
    """The future of a curve at `steps`: `low` to `high` holds 90 % of it, `inner_low` to `inner_high` half."""

    steps: tuple[float, ...]
    low: tuple[float, ...]
    inner_low: tuple[float, ...]
    middle: tuple[float, ...]
    inner_high: tuple[float, ...]
    high: tuple[float, ...]


class Curve(Struct, frozen=True):
    """One trial's points; values that are not finite are NaN, null in JSON. `label` is its class, `p` its chance."""

    trial: int
    status: str
    label: str | None
    steps: tuple[int, ...]
    values: tuple[float, ...]
    max_steps: int | None
    p: float | None = None
    band: Band | None = None


class Curves(Struct, frozen=True):
    """`events`: how many the picture rests on. `target` None: the goal has none; `best`: the study's best value."""

    events: int
    metric: str
    mode: str
    target: float | None
    best: float | None
    curves: tuple[Curve, ...]


def learning_curves(
    chronicle: Chronicle,
    foreseen: Foreseen | None = None,
    *,
    trials: Iterable[int] | None = None,
    since: int = 0,
) -> Curves:
    """The curves of a study.

    Args:
        chronicle: the study.
        foreseen: forecasts; trials that may go on then have bands, and those that are asked for by number have too.
        trials: only these.
        since: only trials of which an event after number `since` told anything.
    """
    view = chronicle.view
    asked = None if trials is None else set(trials)
    chosen = [t for t in view.trials if (asked is None or t.id in asked) and chronicle.changed[t.id] > since]
    goal = view.spec.goal
    return Curves(
        events=view.events,
        metric=goal.metric,
        mode=goal.mode,
        target=goal.target,
        best=view.best[2] if view.best else None,
        curves=tuple(_curve(view, t, foreseen, banded=asked is not None or t.ended is None) for t in chosen if t.steps),
    )


def _curve(view: View, trial: Trial, foreseen: Foreseen | None, *, banded: bool) -> Curve:
    row = None if foreseen is None else foreseen.row.get(trial.id)
    return Curve(
        trial=trial.id,
        status=view.status(trial).value,
        label=label_of(trial),
        steps=tuple(trial.steps),
        values=tuple(trial.values),
        max_steps=trial.max_steps,
        p=None if foreseen is None or row is None else float(foreseen.chance[row]),
        band=_band(trial, foreseen, row) if foreseen is not None and row is not None and banded else None,
    )


def _band(trial: Trial, foreseen: Foreseen, row: int) -> Band | None:
    """From the last point to the end of the trial's training."""
    end = trial.max_steps or foreseen.horizon[-1]
    ahead = (foreseen.horizon > trial.last_step) & (foreseen.horizon <= end)
    last = trial.last_value
    if not ahead.any() or last is None or not np.isfinite(last):
        return None
    low, inner_low, middle, inner_high, high = (
        (last, *foreseen.quantiles[q, row, ahead].tolist()) for q in range(len(QUANTILES))
    )
    steps = (float(trial.last_step), *foreseen.horizon[ahead].tolist())
    return Band(steps, low, inner_low, middle, inner_high, high)
