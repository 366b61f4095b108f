"""Learning curves, with where each is expected to go, and the target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from foresail.core.view import Trial, View
from foresail.plots.chronicle import Chronicle
from foresail.plots.foreseen import QUANTILES, Foreseen
from foresail.plots.palette import INK, LOOKS, Look, look_of
from foresail.plots.picture import Picture, core_of, drawn, extent, graph_objects, rule
from foresail.plots.trials import label_of

MOST_BANDS = 4
MOST_DRAWN = 20_000
"""Points beyond which curves are drawn with fewer points each."""


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


class Curves(Picture, frozen=True):
    """`events`: how many the picture rests on. `target` None: the goal has none; `best`: the study's best value."""

    events: int
    metric: str
    mode: str
    target: float | None
    best: float | None
    curves: tuple[Curve, ...]

    def figure(self) -> Any:
        """Curves by class, the best in black; bands of the `MOST_BANDS` trials with the highest chances."""
        banded = sorted((c for c in self.curves if c.band), key=lambda c: -(c.p or 0.0))[:MOST_BANDS]
        traces = [*_bands(banded), *_lines(self.curves), *_best(self)]
        low_high = extent([*self._heights(), *(v for c in banded if c.band for v in c.band.middle)])
        figure = drawn(traces, title=f"Learning curves: {self.metric}", xaxis_title="step", yaxis_title=self.metric)
        if low_high is not None:
            figure.update_yaxes(range=low_high)
        if self.target is not None:
            rule(figure, y=self.target, text=f"target {self.target:.6g}")
        return figure

    def _heights(self) -> list[float]:
        """What the axis must hold: all but the worst twentieth of the values, and the target."""
        values = core_of([v for c in self.curves for v in c.values], self.mode)
        return values if self.target is None else [*values, self.target]


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
        label=label_of(view, trial),
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


def _lines(curves: Sequence[Curve]) -> Iterator[Any]:
    """One trace for each class: a line a trial, with a gap in between."""
    every = max(1, sum(len(c.steps) for c in curves) // MOST_DRAWN)
    for look in reversed(LOOKS):
        chosen = [c for c in curves if look_of(c.label) is look]
        if chosen:
            x = [v for c in chosen for v in (*_thinned(c.steps, every), None)]
            y = [v for c in chosen for v in (*_thinned(c.values, every), None)]
            of = [v for c in chosen for v in ([c.trial] * (len(_thinned(c.steps, every)) + 1))]
            yield graph_objects().Scatter(
                x=x,
                y=y,
                customdata=of,
                mode="lines+markers" if len(chosen) <= MOST_BANDS else "lines",
                name=f"{look.name} ({len(chosen)})",
                line={"color": look.colour, "width": 1.2},
                marker={"symbol": look.symbol, "size": 4},
                opacity=0.75 if len(chosen) < 40 else 0.45,
                hovertemplate="trial %{customdata}<br>step %{x}: %{y:.6g}<extra></extra>",
            )


def _thinned(values: Sequence[float], every: int) -> Sequence[float]:
    return values if every == 1 else (*values[:-1:every], values[-1])


def _best(data: Curves) -> Iterator[Any]:
    """The curve that holds the best value, over all others."""
    best = next((c for c in data.curves if data.best is not None and data.best in c.values), None)
    if best is not None:
        yield graph_objects().Scatter(
            x=best.steps,
            y=best.values,
            mode="lines",
            name=f"best: trial {best.trial}",
            line={"color": "black", "width": 2.4},
            hovertemplate=f"trial {best.trial}<br>step %{{x}}: %{{y:.6g}}<extra></extra>",
        )


def _bands(curves: Sequence[Curve]) -> Iterator[Any]:
    for at, curve in enumerate(curves):
        if curve.band is not None:
            yield from _band_traces(curve, curve.band, look_of(curve.label), first=at == 0)


def _band_traces(curve: Curve, band: Band, look: Look, *, first: bool) -> Iterator[Any]:
    go = graph_objects()
    around = [*band.steps, *reversed(band.steps)]
    for low, high, alpha in ((band.low, band.high, 0.12), (band.inner_low, band.inner_high, 0.22)):
        yield go.Scatter(
            x=around,
            y=[*low, *reversed(high)],
            fill="toself",
            fillcolor=look.colour,
            opacity=alpha,
            line={"width": 0},
            hoverinfo="skip",
            showlegend=False,
        )
    yield go.Scatter(
        x=band.steps,
        y=band.middle,
        mode="lines",
        line={"color": look.colour if look.name != "poor" else INK, "dash": "dot", "width": 1.6},
        name="foreseen: half and 90 %",
        legendgroup="foreseen",
        showlegend=first,
        hovertemplate=f"trial {curve.trial} foreseen<br>step %{{x:.0f}}: %{{y:.6g}}<extra></extra>",
    )
