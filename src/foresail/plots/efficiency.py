"""The map of accuracy and efficiency: where each trial is expected to end against how fast it goes.

The two potentials that decisions rest on, in one picture: expected final value, steps a second, the chance of the
target as size, the class as colour and symbol.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from foresail.core.view import Trial, View
from foresail.core.words import Label
from foresail.plots.chronicle import Chronicle
from foresail.plots.foreseen import Foreseen
from foresail.plots.palette import LOOKS, Look, look_of
from foresail.plots.picture import Picture, drawn, extent, graph_objects, log_axis, rule
from foresail.plots.trials import label_of
from foresail.policies.pop import Pop, threshold


class Spot(Struct, frozen=True):
    """One trial. `final`: median of the value at the end, `low` to `high` holds 90 %; `p`: chance of the target.

    `seen_frac`: share of its training that has been seen; `cores`: of its latest attempt, 0 where not known.
    """

    trial: int
    status: str
    label: str | None
    final: float
    low: float
    high: float
    steps_per_s: float
    p: float
    best: float | None
    seen_frac: float


class PotentialMap(Picture, frozen=True):
    """`classes_by`: "policy", or "forecasts" where the policy has no classes: POP's rule on these very chances.

    `lens_width`: the values are drawn as asinh((value - target) / lens_width), which is sharp around the target, as
    forecasts are made (`policies/focus.py`).
    """

    events: int
    metric: str
    mode: str
    target: float
    has_target: bool
    lens_width: float
    classes_by: str
    spots: tuple[Spot, ...]

    def figure(self) -> Any:
        """Expected final value against steps a second; the better, the higher; the larger, the likelier."""
        by = "" if self.classes_by == "policy" else " (classes by the forecasts: this policy has none)"
        figure = drawn(
            [*self._best(), *(trace for look in LOOKS for trace in self._spots(look))],
            title=f"Accuracy and efficiency{by}",
            height=480,
            xaxis_title="steps a second",
            yaxis_title=f"{self.metric} expected at the end",
        )
        figure.update_xaxes(log_axis([spot.steps_per_s for spot in self.spots]))
        ticks = _ticks(self)
        heights = [self._seen(spot.final) for spot in self.spots]
        figure.update_yaxes(
            tickvals=[self._seen(tick) for tick in ticks],
            ticktext=[f"{tick:.4g}" for tick in ticks],
            range=extent([*heights, self._seen(self.target)], pad=0.08),
            autorange=None if self.mode == "max" else "reversed",
        )
        word = "target" if self.has_target else "best so far"
        rule(figure, y=self._seen(self.target), text=f"{word} {self.target:.6g}")
        return figure

    def _seen(self, value: float) -> float:
        return math.asinh((value - self.target) / self.lens_width)

    def _best(self) -> Iterator[Any]:
        """A ring around the trial with the best value."""
        known = [spot for spot in self.spots if spot.best is not None]
        if known:
            best = (max if self.mode == "max" else min)(known, key=lambda spot: spot.best or 0.0)
            yield graph_objects().Scatter(
                x=[best.steps_per_s],
                y=[self._seen(best.final)],
                mode="markers",
                name=f"best: trial {best.trial}",
                marker={"symbol": "circle-open", "color": "black", "size": 18 + 25 * math.sqrt(best.p)},
                hoverinfo="skip",
            )

    def _spots(self, look: Look) -> Iterator[Any]:
        spots = [spot for spot in self.spots if look_of(spot.label) is look]
        if not spots:
            return
        yield graph_objects().Scatter(
            x=[spot.steps_per_s for spot in spots],
            y=[self._seen(spot.final) for spot in spots],
            mode="markers",
            name=f"{look.name} ({len(spots)})",
            marker={
                "color": look.colour,
                "symbol": look.symbol,
                "size": [7 + 25 * math.sqrt(spot.p) for spot in spots],
                "opacity": 0.75,
                "line": {"color": "white", "width": 0 if look.symbol == "x" else 0.8},
            },
            customdata=[(s.trial, s.status, s.final, s.low, s.high, s.p, s.seen_frac) for s in spots],
            hovertemplate="trial %{customdata[0]}, %{customdata[1]}<br>expected %{customdata[2]:.5g} "
            "(90 %: %{customdata[3]:.5g} to %{customdata[4]:.5g})<br>P(target) %{customdata[5]:.3f}, "
            "%{customdata[6]:.0%} seen<br>%{x:.3g} steps/s<extra></extra>",
        )


def potential_map(chronicle: Chronicle, foreseen: Foreseen) -> PotentialMap:
    """The map; trials without a measured speed are left out."""
    view = chronicle.view
    trials = [view.trials[int(number)] for number in foreseen.trials]
    shown = [t for t in trials if t.step_s]
    by_policy = any(label_of(view, t) for t in view.trials)
    labels = {t.id: label_of(view, t) for t in shown} if by_policy else _labels(view, shown, foreseen)
    goal = view.spec.goal
    return PotentialMap(
        events=view.events,
        metric=goal.metric,
        mode=goal.mode,
        target=foreseen.target,
        has_target=goal.target is not None,
        lens_width=foreseen.focus.width,
        classes_by="policy" if by_policy else "forecasts",
        spots=tuple(_spot(view, t, foreseen, labels[t.id]) for t in shown),
    )


def _labels(view: View, trials: list[Trial], foreseen: Foreseen) -> dict[int, str | None]:
    """POP's classes from the chances alone."""
    chance = {t.id: float(foreseen.chance[foreseen.row[t.id]]) for t in trials}
    p_star, dedicated = threshold(list(chance.values()), max(1, view.slots))
    best = sorted(chance, key=lambda t: -chance[t])[:dedicated]
    promising = {t for t in best if chance[t] >= p_star}
    poor = {t for t in chance if chance[t] < Pop.poor} - promising
    return {
        t: (Label.PROMISING if t in promising else Label.POOR if t in poor else Label.OPPORTUNISTIC).value
        for t in chance
    }


def _spot(view: View, trial: Trial, foreseen: Foreseen, label: str | None) -> Spot:
    row = foreseen.row[trial.id]
    low, _, final, _, high = foreseen.final[:, row].tolist()
    assert trial.step_s is not None
    return Spot(
        trial=trial.id,
        status=view.status(trial).value,
        label=label,
        final=final,
        low=low,
        high=high,
        steps_per_s=1.0 / trial.step_s,
        p=float(foreseen.chance[row]),
        best=trial.best_value,
        seen_frac=min(1.0, trial.last_step / (trial.max_steps or float(foreseen.horizon[-1]))),
    )


def _ticks(data: PotentialMap) -> list[float]:
    """Round values at about equal distances through the lens."""
    seen = [data._seen(spot.final) for spot in data.spots] or [0.0]
    low, high = min([*seen, 0.0]), max([*seen, 0.0])
    places = [low + (high - low) * i / 7 for i in range(8)] if high > low else [0.0]
    found: dict[float, None] = {}
    for place in places:
        value = data.target + data.lens_width * math.sinh(place)
        slope = data.lens_width * math.cosh(place) * (high - low) / 7
        found[_round(value, slope / 3)] = None
    return list(found)


def _round(value: float, room: float) -> float:
    """The value with as few digits as stay within `room` of it."""
    if room <= 0.0 or not math.isfinite(room):
        return value
    unit = 10.0 ** math.floor(math.log10(room))
    return float(f"{round(value / unit) * unit:.12g}")
