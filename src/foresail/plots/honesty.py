"""Calibration: whether earlier forecasts were as right as they said.

Two witnesses. *Replayed*: each finished trial is cut at several fractions of its training and forecast with what the
study knows now, its own end left out (`curves/trackrecord.py`); coverage of central intervals, and reliability of the
chance to end among the best fifth. *Claimed*: what the decisions of the log said of trials that were trained to their
ends, beside what they came to; nothing is made anew there, so it is the harder witness, of fewer trials.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from msgspec import Struct

from foresail.core.words import Status
from foresail.curves.score import coverage, interval, reliability
from foresail.curves.trackrecord import GRID, RESOLUTION
from foresail.plots.chronicle import Chronicle
from foresail.plots.foreseen import Foreseen
from foresail.plots.palette import BLUE, INK, ORANGE, VERMILLION
from foresail.plots.picture import Picture, drawn, graph_objects

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
BINS = 5
"""Of the reliability: a study finishes few trials."""


class Covered(Struct, frozen=True):
    """`level`: probability of a central interval; `seen`: share of the outcomes that it held."""

    level: float
    seen: float


class Bin(Struct, frozen=True):
    """Events that were given about the same chance: mean of what was `said`, share that was `seen` to come."""

    said: float
    seen: float
    count: int


class Kept(Struct, frozen=True):
    """A decision's expectation of a trial that was trained to its end: `said` and `came` in the metric's units."""

    trial: int
    at_s: float
    seen_frac: float
    said: float
    came: float


class Calibration(Picture, frozen=True):
    """`forecasts`: replayed ones, `trials` of them finished; `error`: expected calibration error; NaN without any."""

    events: int
    metric: str
    forecasts: int
    coverage: tuple[Covered, ...]
    reliability: tuple[Bin, ...]
    error: float
    claims: tuple[Kept, ...]

    def figure(self) -> Any:
        """On the diagonal, what was said is what was seen; the third part shows the decisions of the log itself."""
        bare = {} if self.claims else {"showticklabels": False, "showgrid": False}
        figure = drawn(
            _parts(self),
            title=f"Calibration: {self.forecasts} replayed forecasts, {len(self.claims)} claims of decisions",
            xaxis={"domain": [0.0, 0.27], "title": "interval, probability", "range": [0, 1.02]},
            yaxis={"title": "share of outcomes inside", "range": [0, 1.05]},
            xaxis2={
                "domain": [0.38, 0.65],
                "anchor": "y2",
                "title": "chance of the best fifth, said",
                "range": [0, 1.02],
            },
            yaxis2={"anchor": "x2", "title": "share that came", "range": [0, 1.05]},
            xaxis3={"domain": [0.76, 1.0], "anchor": "y3", "title": f"{self.metric} expected by decisions", **bare},
            yaxis3={"anchor": "x3", "title": "value at the end", **bare},
        )
        if not self.forecasts and not self.claims:
            nothing = "no trial has been trained to its end: nothing is known of how right forecasts are"
            figure.add_annotation(text=nothing, showarrow=False, x=0.5, y=0.5, xref="paper", yref="paper")
        elif not self.claims:
            figure.add_annotation(text="none so far", showarrow=False, x=0.88, y=0.5, xref="paper", yref="paper")
        for axis in (figure.layout.xaxis2, figure.layout.xaxis3, figure.layout.yaxis2, figure.layout.yaxis3):
            axis.update(gridcolor="#EEEEEE", linecolor=INK, zeroline=False, ticks="outside")
        return figure


def calibration(chronicle: Chronicle, foreseen: Foreseen | None) -> Calibration:
    """How right the forecasts were; with `foreseen` None, the claims alone."""
    view = chronicle.view
    past = None if foreseen is None else foreseen.state.past_forecasts(foreseen.horizon)
    if past is None or not len(past.outcome):
        return Calibration(view.events, view.spec.goal.metric, 0, (), (), float("nan"), _claims(chronicle))
    below, upto = interval(GRID, past.law, past.outcome, RESOLUTION)
    said = reliability(past.said, past.came, BINS)
    return Calibration(
        events=view.events,
        metric=view.spec.goal.metric,
        forecasts=len(past.outcome),
        coverage=tuple(Covered(level, coverage(below, upto, level)) for level in LEVELS),
        reliability=tuple(
            Bin(s, e, n) for s, e, n in zip(said.said.tolist(), said.seen.tolist(), said.count.tolist(), strict=True)
        ),
        error=said.error,
        claims=_claims(chronicle),
    )


def _claims(chronicle: Chronicle) -> tuple[Kept, ...]:
    trials = chronicle.view.trials
    found = []
    for claim in chronicle.claims:
        trial = trials[claim.trial]
        came, end = trial.last_value, trial.last_step
        if trial.ended is Status.COMPLETED and came is not None and np.isfinite(came) and claim.step < end:
            found.append(Kept(claim.trial, claim.at_s, claim.step / end, claim.final, came))
    return tuple(found)


def _parts(data: Calibration) -> Iterator[Any]:
    go = graph_objects()
    came = [v for kept in data.claims for v in (kept.said, kept.came)]
    for axis, ends in (("", [0, 1]), ("2", [0, 1]), ("3", [min(came), max(came)] if came else [])):
        line = {"color": INK, "dash": "dash", "width": 1}
        yield go.Scatter(
            x=ends, y=ends, xaxis=f"x{axis}", yaxis=f"y{axis}", mode="lines", line=line, showlegend=False,
            hoverinfo="skip",
        )  # fmt: skip
    yield go.Scatter(
        x=[c.level for c in data.coverage],
        y=[c.seen for c in data.coverage],
        mode="lines+markers",
        name="coverage",
        line={"color": BLUE},
        hovertemplate="%{x:.0%} intervals held %{y:.0%}<extra></extra>",
    )
    yield go.Scatter(
        x=[b.said for b in data.reliability],
        y=[b.seen for b in data.reliability],
        xaxis="x2",
        yaxis="y2",
        mode="lines+markers",
        name="reliability",
        line={"color": VERMILLION},
        marker={"size": [6 + 3 * np.log10(b.count) for b in data.reliability], "symbol": "diamond"},
        customdata=[b.count for b in data.reliability],
        hovertemplate="said %{x:.0%}, came %{y:.0%} of %{customdata}<extra></extra>",
    )
    yield go.Scatter(
        x=[kept.said for kept in data.claims],
        y=[kept.came for kept in data.claims],
        xaxis="x3",
        yaxis="y3",
        mode="markers",
        name="claims",
        marker={"color": ORANGE, "symbol": "square", "size": 6, "opacity": 0.7},
        customdata=[(kept.trial, kept.seen_frac) for kept in data.claims],
        hovertemplate="trial %{customdata[0]} after %{customdata[1]:.0%}<br>"
        "expected %{x:.5g}, came %{y:.5g}<extra></extra>",
    )
