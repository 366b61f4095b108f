"""The best so far, over time and over steps."""

from __future__ import annotations

from typing import Any

from foresail.plots.chronicle import Chronicle, Improvement
from foresail.plots.palette import BLUE, VERMILLION
from foresail.plots.picture import Picture, core_of, drawn, extent, graph_objects, rule


class BestSoFar(Picture, frozen=True):
    """Each change of the best, and where the study stands. `within_s`: its deadline, None without one."""

    events: int
    metric: str
    mode: str
    target: float | None
    within_s: float | None
    now_s: float
    steps: int
    device_s: float
    improvements: tuple[Improvement, ...]

    def figure(self) -> Any:
        """Over study time, and over the steps of all trials on a second axis above."""
        values = [i.value for i in self.improvements]
        ends = [*values, values[-1]] if values else []
        over = (
            ("study time, s", "x", [i.at_s for i in self.improvements], self.now_s, BLUE, "solid"),
            ("steps of all trials", "x2", [i.steps for i in self.improvements], self.steps, VERMILLION, "dot"),
        )
        traces = [
            graph_objects().Scatter(
                x=[*at, now][: len(ends)],
                y=ends,
                xaxis=axis,
                mode="lines+markers",
                name=f"over {name}",
                line={"shape": "hv", "color": colour, "dash": dash},
                marker={"size": 5},
                customdata=[i.trial for i in self.improvements] + [None],
                hovertemplate="%{y:.6g} by trial %{customdata}<br>%{x:.6g} " + name + "<extra></extra>",
            )
            for name, axis, at, now, colour, dash in over
        ]
        figure = drawn(
            traces,
            title=f"Best {self.metric} so far",
            xaxis_title=over[0][0],
            xaxis2={"overlaying": "x", "side": "top", "showgrid": False, "tickmode": "auto"},
            yaxis_title=self.metric,
            margin_t=96,
            legend_y=1.12,
        )
        figure.update_layout(xaxis2_title={"text": over[1][0], "standoff": 4}, xaxis2_ticks="outside")
        figure.update_layout(xaxis_rangemode="tozero", xaxis2_rangemode="tozero")
        known = core_of([v for v in values if v is not None], self.mode, 0.1)
        figure.update_yaxes(range=extent(known if self.target is None else [*known, self.target]))
        if self.target is not None:
            rule(figure, y=self.target, text=f"target {self.target:.6g}")
        return figure


def best_so_far(chronicle: Chronicle) -> BestSoFar:
    """The best value against study seconds, steps of all trials, and core-seconds."""
    view = chronicle.view
    goal = view.spec.goal
    return BestSoFar(
        events=view.events,
        metric=goal.metric,
        mode=goal.mode,
        target=goal.target,
        within_s=goal.within_s,
        now_s=view.now_s,
        steps=chronicle.steps,
        device_s=view.device_s_used,
        improvements=tuple(chronicle.improvements),
    )
