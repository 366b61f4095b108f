"""Parallel coordinates: each trial a line through the values of its hyperparameters to what it has come to."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from foresail.core.view import Trial
from foresail.core.words import Scalar
from foresail.plots.chronicle import Chronicle
from foresail.plots.foreseen import Foreseen
from foresail.plots.trials import label_of
from foresail.space import Choice, Flag, Knob, Space


class Axis(Struct, frozen=True):
    """A knob. `at`: place of each trial in 0 to 1 of the knob's own scale, None where it has none; `values`: the value.

    `scale`: "linear", "log" or "options"; `ticks`: (place, text) pairs to write on it.
    """

    name: str
    scale: str
    ticks: tuple[tuple[float, str], ...]
    at: tuple[float | None, ...]
    values: tuple[Scalar | None, ...]


class ParallelCoordinates(Struct, frozen=True):
    """Fields of the length of `trials` go together. `final`: expected at the end, else the best so far."""

    events: int
    metric: str
    mode: str
    trials: tuple[int, ...]
    labels: tuple[str | None, ...]
    best: tuple[float, ...]
    final: tuple[float, ...]
    axes: tuple[Axis, ...]


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
        labels=tuple(label_of(t) for t in trials),
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
