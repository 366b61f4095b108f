"""Speed, measured and predicted: seconds of a step, by configuration.

The prediction for a trial is that of the other trials, by the process that policies expect new configurations with
(`perf/smooth.py`); the trial itself is left out, which is exact (Rasmussen and Williams 2006, eq. 5.12).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from msgspec import Struct

from foresail.perf.smooth import Sites, fit_smooth
from foresail.plots.chronicle import Chronicle
from foresail.plots.palette import INK, LOOKS, look_of
from foresail.plots.picture import Picture, drawn, graph_objects, log_axis
from foresail.plots.trials import label_of
from foresail.space import Space

LEAST = 4
"""Trials with a measured speed, before any is predicted from the others."""

_ERROR_SD = 0.05
"""Relative deviation of a trial's measured seconds of a step."""


class Speed(Struct, frozen=True):
    """One trial: measured seconds of a step, and what the others make one expect; None with too few of them."""

    trial: int
    label: str | None
    step_s: float
    predicted_s: float | None


class Speeds(Picture, frozen=True):
    """`error`: typical factor between prediction and measurement, 1.1 for 10 %; None where nothing was predicted."""

    events: int
    error: float | None
    speeds: tuple[Speed, ...]

    def figure(self) -> Any:
        """Measured against predicted; on the diagonal they agree."""
        error = "" if self.error is None else f" (typically within {self.error - 1.0:.0%})"
        title = f"Seconds of a step, predicted by the other trials and measured{error}"
        figure = drawn(_spots(self), title=title, xaxis_title="predicted, s", yaxis_title="measured, s")
        both = [v for s in self.speeds if s.predicted_s is not None for v in (s.predicted_s, s.step_s)]
        figure.update_xaxes(log_axis(both))
        figure.update_yaxes(log_axis(both))
        return figure


def step_speeds(chronicle: Chronicle) -> Speeds:
    """Of every trial that has a measured speed."""
    view = chronicle.view
    trials = [t for t in view.trials if t.step_s]
    measured = np.array([t.step_s for t in trials], dtype=float)
    predicted: list[float | None] = [None] * len(trials)
    error = None
    if len(trials) >= LEAST:
        space = Space.from_dict(view.spec.space)
        units = np.array([space.to_unit(t.config) for t in trials])
        left_out = _left_out(units, np.log(measured))
        predicted = list(np.exp(left_out))
        error = math.exp(float(np.median(np.abs(left_out - np.log(measured)))))
    rows = zip(trials, measured.tolist(), predicted, strict=True)
    speeds = tuple(Speed(t.id, label_of(view, t), s, None if p is None else float(p)) for t, s, p in rows)
    return Speeds(view.events, error, speeds)


def _left_out(units_NK: np.ndarray, log_s_N: np.ndarray) -> np.ndarray:
    """Prediction for each row from all others."""
    count = len(log_s_N)
    sites = Sites(units_NK, np.zeros(count), np.arange(count))
    smooth = fit_smooth(sites, log_s_N, np.full(count, _ERROR_SD**2))
    left_out, _ = smooth.predict(units_NK)
    fitted = len(smooth.pull)
    left_out[-fitted:] = log_s_N[-fitted:] - smooth.pull / np.diag(smooth.inverse)
    return left_out


def _spots(data: Speeds) -> Iterator[Any]:
    go = graph_objects()
    both = [(s.predicted_s, s) for s in data.speeds if s.predicted_s is not None]
    ends = [f([v for p, s in both for v in (p, s.step_s)]) for f in (min, max)] if both else []
    yield go.Scatter(x=ends, y=ends, mode="lines", line={"color": INK, "dash": "dash", "width": 1}, showlegend=False)
    for look in LOOKS:
        chosen = [(p, s) for p, s in both if look_of(s.label) is look]
        if chosen:
            yield go.Scatter(
                x=[p for p, _ in chosen],
                y=[s.step_s for _, s in chosen],
                customdata=[s.trial for _, s in chosen],
                mode="markers",
                name=look.name,
                marker={"color": look.colour, "symbol": look.symbol, "size": 8, "opacity": 0.8},
                hovertemplate="trial %{customdata}<br>measured %{y:.3g} s, predicted %{x:.3g} s<extra></extra>",
            )
