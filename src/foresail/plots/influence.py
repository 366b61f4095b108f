"""Importance of hyperparameters: how much of the variation over the space each of them accounts for.

Functional analysis of variance of a surrogate (Hutter, Hoos and Leyton-Brown 2014), here a Gaussian process with one
length scale a knob (Oakley and O'Hagan 2004), the one that forecasts use (`curves/neighbours.py`). It is fitted to what
each trial is expected to end at and how sure that is, so that trials that were ended early count too. `alone` is the
first-order and `total` the total index, by Jansen's estimators (Saltelli et al. 2010, table 2). Where the surrogate
does not predict trials that it has not seen (`explained`), its indices mean nothing.

Letters: N samples, K knobs, C trials, F feature columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from foresail.core.view import Trial, View
from foresail.curves.history import gather
from foresail.curves.neighbours import Neighbours, fit_neighbours
from foresail.curves.scale import fit_scale, sign_of
from foresail.plots.chronicle import Chronicle
from foresail.plots.foreseen import Foreseen
from foresail.plots.palette import BLUE, SKY
from foresail.plots.picture import Picture, drawn, graph_objects, overlaid, shown
from foresail.space import Choice, Space

Floats = NDArray[np.float64]

LEAST = 8
"""Trials below which nothing is said."""
LEAST_EXPLAINED = 0.2
"""Under this the picture says that it is unsure."""
SAMPLES = 512
"""The standard error of an index is then at most 0.04: over seeds, on the linear function of the tests."""
MOST_TRIALS = 256
SAME = 1e-6
"""Spread under which all trials are the same."""
_NINETY = 2 * 1.645
"""Normal deviations from the 5 % to the 95 % quantile."""


class Influence(Struct, frozen=True):
    """A knob. `alone`: share of the variance that it accounts for by itself; `total`: with all its interactions."""

    name: str
    alone: float
    total: float


class Importance(Picture, frozen=True):
    """Knobs, the most important first; none with fewer than `LEAST` trials.

    `of`: "value" or "speed". `explained`: share of the variance over trials that the surrogate predicts of each from
    the others; at most 1, and below 0 where it is worse than their mean.
    """

    events: int
    of: str
    trials: int
    explained: float
    knobs: tuple[Influence, ...]

    def figure(self) -> Any:
        """A pair of bars a knob."""
        names = [shown(knob.name) for knob in reversed(self.knobs)]
        parts = (("alone", SKY, "/"), ("with interactions", BLUE, ""))
        values = ([k.alone for k in reversed(self.knobs)], [k.total for k in reversed(self.knobs)])
        traces = [
            graph_objects().Bar(
                y=names,
                x=value,
                orientation="h",
                name=name,
                marker={"color": colour, "pattern": overlaid(pattern)},
                hovertemplate="%{y}: %{x:.0%} " + name + "<extra></extra>",
            )
            for (name, colour, pattern), value in zip(parts, values, strict=True)
        ]
        what = "final value" if self.of == "value" else "seconds of a step"
        title = f"What the {what} hangs on ({self.explained:.0%} of it predicted, {self.trials} trials)"
        figure = drawn(traces, title=title, height=170 + 40 * max(1, len(names)), xaxis_title="share of the variance")
        figure.update_layout(legend_traceorder="reversed", bargap=0.25)
        if self.explained < LEAST_EXPLAINED:
            unsure = "the trials tell too little: do not rest on this"
            figure.add_annotation(text=unsure, showarrow=False, x=0.99, y=0.05, xref="paper", yref="paper")
        figure.update_xaxes(tickformat=".0%", rangemode="tozero")
        figure.update_yaxes(automargin=True)
        return figure


def importance(
    chronicle: Chronicle, foreseen: Foreseen | None = None, *, of: Literal["value", "speed"] = "value"
) -> Importance:
    """Of the value that trials end at (by `foreseen`; the best so far without it), or of the seconds of a step."""
    view = chronicle.view
    trials = [t for t in view.trials if (t.best_value is not None if of == "value" else t.step_s)]
    if len(trials) < LEAST:
        return Importance(view.events, of, len(trials), float("nan"), ())
    level, variance = _values(view, trials, foreseen) if of == "value" else _speeds(trials)
    if level.std() < SAME:
        return Importance(view.events, of, len(trials), float("nan"), ())
    chosen = np.argsort(variance, kind="stable")[:MOST_TRIALS]
    space = Space.from_dict(view.spec.space)
    units = np.array([space.to_unit(trials[i].config) for i in chosen])
    level, variance = level[chosen], variance[chosen]
    surrogate = fit_neighbours(units, level, variance)
    explained = 1.0 - ((level - surrogate.level) ** 2).mean() / level.var()
    alone, total = _indices(surrogate, space)
    found = [Influence(name, a, t) for name, a, t in zip(space.knobs, alone, total, strict=True)]
    knobs = tuple(sorted(found, key=lambda k: -k.total))
    return Importance(view.events, of, len(trials), float(explained), knobs)


def _values(view: View, trials: Sequence[Trial], foreseen: Foreseen | None) -> tuple[Floats, Floats]:
    """Expected ends and their variances in internal units of the curves, in which half of the way is halved again."""
    sign = sign_of(view.spec.goal.mode)
    history = gather(sign, [np.asarray(t.steps) for t in trials], [np.frombuffer(t.values) for t in trials])
    scale = fit_scale(history.ends)
    best = np.array([t.best_value for t in trials], dtype=float)
    middle, low, high = best.copy(), best.copy(), best.copy()
    if foreseen is not None:
        for i, trial in enumerate(trials):
            if trial.id in foreseen.row:
                low[i], _, middle[i], _, high[i] = foreseen.final[:, foreseen.row[trial.id]]
    level, ends = scale.inside(sign * middle), (scale.inside(sign * low), scale.inside(sign * high))
    return np.asarray(level, dtype=float), np.asarray(((ends[1] - ends[0]) / _NINETY) ** 2 + 1e-4, dtype=float)


def _speeds(trials: Sequence[Trial]) -> tuple[Floats, Floats]:
    """Log seconds of a step, put on the scale that the process expects."""
    log_s = np.log([t.step_s or 1.0 for t in trials])
    width = float(log_s.std())
    return 0.4 + 0.25 * (log_s - log_s.mean()) / max(width, SAME), np.full(len(trials), 1e-4)


def _indices(surrogate: Neighbours, space: Space) -> tuple[list[float], list[float]]:
    """First-order and total index of each knob, (K,) each.

    A knob's columns are swapped together. Whether a knob with a condition is active is one of its columns, so that its
    importance holds that it is active.
    """
    rng = np.random.default_rng(0)
    first, second = (_sample(space, rng) for _ in range(2))
    rows = min(len(first), len(second))
    first, second = first[:rows], second[:rows]
    y_first, y_second = surrogate.predict(first)[0], surrogate.predict(second)[0]
    variance = max(float(np.concatenate([y_first, y_second]).var()), 1e-12)
    alone, total = [], []
    for columns in _columns(space):
        mixed = first.copy()
        mixed[:, columns] = second[:, columns]
        y_mixed = surrogate.predict(mixed)[0]
        total.append(min(1.0, float(((y_first - y_mixed) ** 2).mean()) / (2.0 * variance)))
        by_itself = 1.0 - float(((y_second - y_mixed) ** 2).mean()) / (2.0 * variance)
        alone.append(min(total[-1], max(0.0, by_itself)))
    return alone, total


def _sample(space: Space, rng: np.random.Generator) -> Floats:
    """Feature columns of a Latin hypercube (McKay, Beckman and Conover 1979), without what is forbidden, (N, F)."""
    places = np.array([rng.permutation(SAMPLES) for _ in space.knobs]).T
    draws = (places + rng.random(places.shape)) / SAMPLES
    return np.array([space.to_unit(config) for row in draws if not space.forbidding(config := space.point(row))])


def _columns(space: Space) -> list[slice]:
    """The feature columns of each knob."""
    found, start = [], 0
    for knob in space.knobs.values():
        width = (knob.levels if isinstance(knob, Choice) else 1) + (knob.when is not None)
        found.append(slice(start, start + width))
        start += width
    return found
