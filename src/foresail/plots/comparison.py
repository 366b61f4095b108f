"""Policies compared, from the records of replays: how fast the best comes, who reaches the target when, what it costs.

Means are over traces and seeds alike; an interval is a bootstrap over runs, drawn with a fixed seed. Ratios and their
intervals are those of `replay/scores.py`. Letters: R records, M moments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from foresail.plots.palette import CYCLE, INK, SKY, VERMILLION
from foresail.plots.picture import Picture, drawn, graph_objects, log_axis, overlaid, rule, shown
from foresail.replay.record import Record
from foresail.replay.scores import REFERENCE, by_policy, regret_at, speedup, time_to, use

MOMENTS = tuple(i / 50 for i in range(51))
"""Shares of the budget at which a line is drawn."""
RESAMPLES = 500
"""Bootstrap draws of a line's band: its edges then move by a few per cent of its width."""
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")


class Line(Struct, frozen=True):
    """A policy at each of `MOMENTS`: mean over its runs, and its 90 % interval where that is drawn."""

    policy: str
    mean: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


class Regret(Picture, frozen=True):
    """Share of the way from the median configuration to the top 1 % that is left, over the share of the budget."""

    runs: int
    lines: tuple[Line, ...]

    def figure(self) -> Any:
        """A line a policy, with its band."""
        traces = [trace for at, line in enumerate(self.lines) for trace in _line(line, at)]
        title = f"Regret over time ({self.runs} runs a policy)"
        figure = drawn(traces, title=title, yaxis_title="left of the way to the top 1 %")
        figure.update_xaxes(title="share of the budget", tickformat=".0%", range=[0, 1])
        figure.update_yaxes(range=[0, 1.02])
        return figure


class Reached(Picture, frozen=True):
    """Share of the runs that have reached `target`, over the share of the budget."""

    target: str
    lines: tuple[Line, ...]

    def figure(self) -> Any:
        """A line a policy; where it ends below the top, runs never got there."""
        traces = [trace for at, line in enumerate(self.lines) for trace in _line(line, at)]
        figure = drawn(traces, title=f"Runs that have reached {self.target}", yaxis_title="share of the runs")
        figure.update_xaxes(title="share of the budget", tickformat=".0%", range=[0, 1])
        figure.update_yaxes(tickformat=".0%", range=[0, 1.02])
        return figure


class Ratio(Struct, frozen=True):
    """`mean` speed-up over the reference, with its 90 % interval; `censored_frac` of the runs never got there."""

    policy: str
    mean: float
    low: float
    high: float
    censored_frac: float


class TimeToTarget(Picture, frozen=True):
    """How many times sooner than `reference` each policy reaches `target`: geometric means."""

    target: str
    reference: str
    ratios: tuple[Ratio, ...]

    def figure(self) -> Any:
        """A dot a policy, with its interval; right of 1 is sooner."""
        rows = list(reversed(self.ratios))
        trace = graph_objects().Scatter(
            x=[r.mean for r in rows],
            y=[shown(r.policy) for r in rows],
            mode="markers+text",
            marker={"color": CYCLE[0], "size": 10},
            error_x={"array": [r.high - r.mean for r in rows], "arrayminus": [r.mean - r.low for r in rows]},
            text=[f"{r.mean:.2f}x, {r.censored_frac:.0%} never" for r in rows],
            textposition="top center",
            hovertemplate="%{y}: %{x:.2f}<extra></extra>",
        )
        title = f"Speed-up over {self.reference} to {self.target}, 90 % intervals"
        figure = drawn([trace], title=title, height=170 + 48 * len(rows), xaxis_title="times as fast")
        figure.update_xaxes(log_axis([v for r in rows for v in (r.low, r.high)]))
        figure.update_yaxes(automargin=True, range=[-0.6, len(rows) - 0.2])
        rule(figure, x=1.0)
        return figure


class Share(Struct, frozen=True):
    """Of the workers' time: `training`, `starts` (launches and restarts), `idle`; `deciding`: of the wall clock."""

    policy: str
    training: float
    starts: float
    idle: float
    deciding: float


class Resources(Picture, frozen=True):
    """Where the time of the workers went."""

    shares: tuple[Share, ...]

    def figure(self) -> Any:
        """A bar a policy, in parts; deciding is told beside its name, for it takes time of no worker."""
        rows = list(reversed(self.shares))
        parts = (("training", SKY, ""), ("starts", VERMILLION, "/"), ("idle", "#DDDDDD", "."))
        traces = [
            graph_objects().Bar(
                x=[getattr(row, name) for row in rows],
                y=[f"{shown(row.policy)}<br>deciding {row.deciding:.2%}" for row in rows],
                orientation="h",
                name=name,
                marker={"color": colour, "pattern": overlaid(pattern), "line": {"color": INK, "width": 0.3}},
                hovertemplate=f"%{{y}}: %{{x:.2%}} {name}<extra></extra>",
            )
            for name, colour, pattern in parts
        ]
        figure = drawn(traces, title="Where the workers' time went", height=170 + 44 * len(rows), barmode="stack")
        figure.update_xaxes(tickformat=".0%", title="share of the workers' time")
        figure.update_yaxes(automargin=True)
        return figure


def regret(records: Sequence[Record]) -> Regret:
    """Of each policy, in the order of the records."""
    policies = by_policy(records)
    lines = [_mean(name, np.array([[regret_at(r, m) for m in MOMENTS] for r in own])) for name, own in policies.items()]
    return Regret(max(map(len, policies.values()), default=0), tuple(lines))


def reached(records: Sequence[Record], target: str) -> Reached:
    """Of each policy, the share of its runs that are there."""
    lines = []
    for name, own in by_policy(records).items():
        there_s = np.array([np.inf if r.targets[target] is None else time_to(r, target) for r in own])
        budget_s = np.array([r.budget_s for r in own])
        lines.append(Line(name, tuple(float((there_s <= m * budget_s).mean()) for m in MOMENTS)))
    return Reached(target, tuple(lines))


def time_to_target(records: Sequence[Record], target: str, *, reference: str = REFERENCE) -> TimeToTarget:
    """Of each policy against the reference, in the same traces with the same seeds."""
    policies = by_policy(records)
    found = {name: speedup(own, policies[reference], target) for name, own in policies.items()}
    ratios = (Ratio(name, s.mean, s.low, s.high, s.censored_frac) for name, s in found.items() if s is not None)
    return TimeToTarget(target, reference, tuple(ratios))


def resources(records: Sequence[Record]) -> Resources:
    """Means over the runs of each policy."""
    shares = []
    for name, own in by_policy(records).items():
        found = use(own)
        idle = max(0.0, 1.0 - found.used_frac - found.restart_frac)
        shares.append(Share(name, found.used_frac, found.restart_frac, idle, found.deciding_frac))
    return Resources(tuple(shares))


def _mean(policy: str, values_RM: np.ndarray) -> Line:
    rng = np.random.default_rng(0)
    picks = rng.integers(len(values_RM), size=(RESAMPLES, len(values_RM)))
    low, high = np.quantile(values_RM[picks].mean(axis=1), (0.05, 0.95), axis=0)
    return Line(policy, tuple(values_RM.mean(axis=0).tolist()), tuple(low.tolist()), tuple(high.tolist()))


def _line(line: Line, at: int) -> list[Any]:
    go = graph_objects()
    colour = CYCLE[at % len(CYCLE)]
    band = go.Scatter(
        x=[*MOMENTS, *reversed(MOMENTS)],
        y=[*line.low, *reversed(line.high)],
        fill="toself",
        fillcolor=colour,
        opacity=0.12,
        line={"width": 0},
        hoverinfo="skip",
        showlegend=False,
    )
    mean = go.Scatter(
        x=MOMENTS,
        y=line.mean,
        mode="lines",
        name=shown(line.policy),
        line={"color": colour, "width": 2, "dash": DASHES[at % len(DASHES)], "shape": "linear" if line.low else "hv"},
        hovertemplate=f"{shown(line.policy)}: %{{y:.3f}} at %{{x:.0%}}<extra></extra>",
    )
    return [band, mean] if line.low else [mean]
