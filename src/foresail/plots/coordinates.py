"""Parallel coordinates: each trial a line through the values of its hyperparameters to what it has come to."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from foresail.core.view import Trial
from foresail.core.words import Scalar
from foresail.plots.chronicle import Chronicle
from foresail.plots.foreseen import Foreseen
from foresail.plots.palette import INK
from foresail.plots.picture import Picture, drawn, graph_objects, shown
from foresail.plots.trials import label_of
from foresail.space import Choice, Flag, Knob, Space

VEIL = "rgba(255,255,255,0.7)"
ABSENT = -0.12
"""Where a trial passes an axis that does not exist for it."""
MOST_BEST = 20
RANKS = (
    ("the best", "#002051"),
    ("to the third", "#31446B"),
    ("to two thirds", "#7F7C75"),
    ("the rest", "#D9C34C"),
)
"""Colours of ranks: from cividis, which is even to the eye and safe for the colour blind (Nunez et al. 2018)."""


class Axis(Struct, frozen=True):
    """A knob. `at`: place of each trial in 0 to 1 of the knob's own scale, None where it has none; `values`: the value.

    `scale`: "linear", "log" or "options"; `ticks`: (place, text) pairs to write on it.
    """

    name: str
    scale: str
    ticks: tuple[tuple[float, str], ...]
    at: tuple[float | None, ...]
    values: tuple[Scalar | None, ...]


class ParallelCoordinates(Picture, frozen=True):
    """Fields of the length of `trials` go together. `final`: expected at the end, else the best so far."""

    events: int
    metric: str
    mode: str
    trials: tuple[int, ...]
    labels: tuple[str | None, ...]
    best: tuple[float, ...]
    final: tuple[float, ...]
    axes: tuple[Axis, ...]

    def figure(self) -> Any:
        """A line a trial, coloured by the rank of its final value; one without a knob passes below its axis."""
        figure = drawn(_lines(self), title=f"Configurations and {self.metric}", height=440)
        names = [axis.name for axis in self.axes]
        low = ABSENT if any(None in axis.at for axis in self.axes) else 0.0
        figure.update_xaxes(
            tickvals=list(range(len(names) + 1)),
            ticktext=[shown(name) for name in (*names, f"{self.metric} expected")],
            showgrid=False,
            range=[-0.3, len(names) + 0.45],
            ticks="",
            linecolor="white",
        )
        figure.update_yaxes(visible=False, range=[low - 0.04, 1.05])
        ticks = [(at, *tick) for at, axis in enumerate(self.axes) for tick in axis.ticks]
        ticks += [(len(names), place, text) for place, text in _ends(self)]
        upright = {"type": "line", "y0": 0, "y1": 1, "line": {"color": INK, "width": 1}}
        beside = {"showarrow": False, "xanchor": "left", "xshift": 3, "font": {"size": 10}, "bgcolor": VEIL}
        figure.update_layout(
            shapes=[{**upright, "x0": at, "x1": at} for at in range(len(names) + 1)],
            annotations=[{**beside, "x": at, "y": place, "text": shown(text)} for at, place, text in ticks],
        )
        return figure


def parallel_coordinates(chronicle: Chronicle, foreseen: Foreseen | None = None) -> ParallelCoordinates:
    """Of every trial that has reported a finite value."""
    view = chronicle.view
    space = Space.from_dict(view.spec.space)
    trials = [t for t in view.trials if t.best_value is not None]
    best = tuple(t.best_value for t in trials if t.best_value is not None)
    final = best if foreseen is None else tuple(_final(t, foreseen) for t in trials)
    return ParallelCoordinates(
        events=view.events,
        metric=view.spec.goal.metric,
        mode=view.spec.goal.mode,
        trials=tuple(t.id for t in trials),
        labels=tuple(label_of(view, t) for t in trials),
        best=best,
        final=final,
        axes=tuple(_axis(name, knob, trials) for name, knob in space.knobs.items()),
    )


def _final(trial: Trial, foreseen: Foreseen) -> float:
    row = foreseen.row.get(trial.id)
    assert trial.best_value is not None
    return trial.best_value if row is None else float(foreseen.final[2, row])


def _axis(name: str, knob: Knob, trials: Sequence[Trial]) -> Axis:
    values = tuple(t.config.get(name) for t in trials)
    at = tuple(None if value is None else knob.unit(value) for value in values)
    return Axis(name, _scale(knob), _ticks(knob), at, values)


def _scale(knob: Knob) -> str:
    if isinstance(knob, Choice | Flag):
        return "options"
    return "log" if knob.log else "linear"


def _ticks(knob: Knob) -> tuple[tuple[float, str], ...]:
    if isinstance(knob, Choice | Flag):
        return tuple((knob.unit(knob.level(i)), str(knob.level(i))) for i in range(knob.levels))
    values = dict.fromkeys(knob.at(i / 4) for i in range(5))
    return tuple((knob.unit(value), f"{value:.3g}") for value in values)


def _lines(data: ParallelCoordinates) -> Iterator[Any]:
    """One trace for each group of ranks, the best on top."""
    order = sorted(range(len(data.trials)), key=lambda i: data.final[i], reverse=data.mode == "max")
    best = min(MOST_BEST, math.ceil(0.1 * len(order)))
    edges = [0, best, *(max(best, round(share * len(order))) for share in (1 / 3, 2 / 3)), len(order)]
    places = _heights(data)
    for at in reversed(range(len(RANKS))):
        group, (name, colour) = order[edges[at] : edges[at + 1]], RANKS[at]
        if group:
            lines = [[ABSENT if (p := axis.at[i]) is None else p for axis in data.axes] + [places[i]] for i in group]
            yield graph_objects().Scatter(
                x=[x for _ in group for x in (*range(len(data.axes) + 1), None)],
                y=[y for line in lines for y in (*line, None)],
                customdata=[(data.trials[i], data.final[i]) for i in group for _ in range(len(data.axes) + 2)],
                mode="lines",
                line={"color": colour, "width": 2.2 if at == 0 else 1.0},
                opacity=0.9 if at == 0 else 0.55,
                name=f"{name} ({len(group)})",
                hovertemplate="trial %{customdata[0]}: %{customdata[1]:.6g}<extra></extra>",
            )


def _heights(data: ParallelCoordinates) -> list[float]:
    """Final values by rank in 0 to 1, the better the higher: a few bad ones do not press the others together."""
    order = sorted(range(len(data.final)), key=lambda i: data.final[i], reverse=data.mode == "min")
    heights = [0.0] * len(order)
    for rank, i in enumerate(order):
        heights[i] = rank / max(1, len(order) - 1)
    return heights


def _ends(data: ParallelCoordinates) -> list[tuple[float, str]]:
    """Ticks of the last axis: the values at quarters of the ranks."""
    order = sorted(data.final, reverse=data.mode == "min")
    last = len(order) - 1
    return [(i / 4, f"{order[round(i / 4 * last)]:.4g}") for i in range(5)] if order else []
