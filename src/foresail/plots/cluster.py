"""The cluster over time: which trial held which cores, as a Gantt chart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from foresail.plots.chronicle import Chronicle, Hold
from foresail.plots.palette import LOOKS, look_of
from foresail.plots.picture import Picture, drawn, graph_objects, overlaid, rule


class Bar(Struct, frozen=True):
    """An attempt on its cores. `end_s` None and `outcome` None: it lasts. `label`: its class in its last decision."""

    trial: int
    attempt: str
    cores: tuple[int, ...]
    start_s: float
    end_s: float | None
    label: str | None
    outcome: str | None
    resume_step: int


class Gantt(Picture, frozen=True):
    """`cores`: all that the study may use or has used, rising. `now_s`: where bars without an end have got to."""

    events: int
    now_s: float
    within_s: float | None
    cores: tuple[int, ...]
    bars: tuple[Bar, ...]

    def figure(self) -> Any:
        """A row a core, a bar an attempt, coloured and patterned by class."""
        height = min(900, 170 + 34 * max(1, len(self.cores)))
        figure = drawn(_bars(self), title="Who had which cores", height=height, xaxis_title="study time, s")
        figure.update_layout(barmode="overlay", bargap=0.15, uniformtext={"minsize": 8, "mode": "hide"})
        rows = [f"core {core}" for core in self.cores]
        figure.update_yaxes(categoryorder="array", categoryarray=rows[::-1], range=[-0.6, len(rows) - 0.4])
        figure.update_xaxes(range=[0, 1.02 * max(self.now_s, 1e-3)])
        if self.within_s is not None and self.within_s <= 1.05 * self.now_s:
            rule(figure, x=self.within_s, text="deadline")
        return figure


def gantt(chronicle: Chronicle, *, since: int = 0) -> Gantt:
    """Who held which cores when; `since`: only bars that an event after that number has begun or changed."""
    view = chronicle.view
    cores = {*view.cores, *(core for hold in chronicle.holds for core in hold.cores)}
    return Gantt(
        events=view.events,
        now_s=view.now_s,
        within_s=view.spec.goal.within_s,
        cores=tuple(sorted(cores)),
        bars=tuple(_bar(hold) for hold in chronicle.holds if hold.changed > since),
    )


def _bar(hold: Hold) -> Bar:
    return Bar(
        trial=hold.trial,
        attempt=hold.attempt,
        cores=hold.cores,
        start_s=hold.start_s,
        end_s=hold.end_s,
        label=hold.label and hold.label.value,
        outcome=hold.outcome and hold.outcome.value,
        resume_step=hold.resume_step,
    )


def _bars(data: Gantt) -> Iterator[Any]:
    for look in LOOKS:
        held = [(bar, core) for bar in data.bars if look_of(bar.label) is look for core in bar.cores]
        if held:
            ends = [data.now_s if bar.end_s is None else bar.end_s for bar, _ in held]
            yield graph_objects().Bar(
                orientation="h",
                y=[f"core {core}" for _, core in held],
                base=[bar.start_s for bar, _ in held],
                x=[end - bar.start_s for (bar, _), end in zip(held, ends, strict=True)],
                text=[str(bar.trial) for bar, _ in held],
                textposition="inside",
                insidetextanchor="middle",
                textangle=0,
                customdata=[(bar.attempt, bar.outcome or "runs", bar.start_s, end)
                            for (bar, _), end in zip(held, ends, strict=True)],
                marker={
                    "color": look.colour,
                    "line": {"color": "white", "width": 1},
                    "pattern": overlaid(look.pattern),
                },
                name=look.name,
                hovertemplate="attempt %{customdata[0]}, %{customdata[1]}<br>"
                "%{customdata[2]:.1f} s to %{customdata[3]:.1f} s<extra></extra>",
            )  # fmt: skip
