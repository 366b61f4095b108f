"""A study as a notebook shows it by its name alone: light HTML with a sketch, no script and nothing to install."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from foresail.api import wording
from foresail.api.markup import Html, table, tag
from foresail.api.result import Result
from foresail.core.spec import StudySpec
from foresail.core.view import Trial, View
from foresail.space import Space

MOST_SHOWN = 10
"""Trials in the table, best first."""
MOST_CURVES, MOST_POINTS = 100, 50
"""Of the sketch: so that a notebook stays small."""
WIDTH, HEIGHT = 480, 120
"""Of the sketch, in pixels of the screen."""
LEFT_OUT = 0.05
"""Share of the values, the worst, that the sketch may leave outside."""
_LOOK = "font-family: system-ui, sans-serif; line-height: 1.5"


def result_html(result: Result) -> str:
    """The goal, how it ended, the best, the cost, a sketch of the curves, and the best trials."""
    view = result.view
    cost = f"{wording.duration(result.seconds)}, core time {wording.duration(result.device_s)}"
    count = f"{wording.count(len(view.trials), 'trial')}, {wording.count(result.points, 'point')}"
    titles = ("trial", "status", "class", "best", "steps", "configuration")
    rows = [
        (str(r.trial), r.status, r.label or "-", wording.number(r.best), str(r.steps), wording.config(r.config))
        for r in result.trials[:MOST_SHOWN]
    ]
    more = f"and {len(view.trials) - MOST_SHOWN} more" if len(view.trials) > MOST_SHOWN else ""
    lines = (f"{result.end.replace('_', ' ')}: {result.why}", wording.best(view), f"{count}; {cost}")
    return _study(view.spec, *(tag("div", line) for line in lines), _sketch(view), table(titles, rows), more)


def study_html(spec: StudySpec, storage: Path) -> str:
    """A study that has not been started: what is searched."""
    knobs = [(name, *wording.knob(knob)) for name, knob in Space.from_dict(spec.space).knobs.items()]
    waits = tag("div", f"not started; its log will be {storage}")
    return _study(spec, waits, table(("knob", "values", "scale"), knobs))


def _study(spec: StudySpec, *parts: str) -> str:
    return tag("div", tag("b", spec.name), f": {wording.goal(spec.goal)}", *parts, style=_LOOK)


# --- the sketch --------------------------------------------------------------------------------------------------


def _sketch(view: View) -> Html:
    """Learning curves: the best trial's in blue, those of the others in grey, the target dashed."""
    trials = sorted((t for t in view.trials if len(t.values) > 1), key=lambda t: t.last_step)[-MOST_CURVES:]
    best = next((t for t in trials if view.best is not None and t.id == view.best[0]), None)
    values = sorted(v for t in trials for v in t.values if math.isfinite(v))
    if not values:
        return Html()
    cut = int(LEFT_OUT * len(values))
    low, high = (values[cut], values[-1]) if view.spec.goal.mode == "max" else (values[0], values[-1 - cut])
    target = view.spec.goal.target
    if target is not None:
        low, high = min(low, target), max(high, target)
    end = max(t.last_step for t in trials)
    lines = [_line(t, low, high, end, "#bbb", "1") for t in trials if t is not best]
    lines += [_line(best, low, high, end, "#0072b2", "2")] if best is not None else []
    if target is not None:
        y = _y(target, low, high)
        lines.append(tag("path", d=f"M0 {y:.1f}H{WIDTH}", stroke="#333", stroke_dasharray="4 3"))
    about = tag("title", f"{view.spec.goal.metric} from {low:.4g} to {high:.4g} over {end} steps")
    return tag("svg", about, *lines, width=str(WIDTH), height=str(HEIGHT), style="display: block; margin: 6px 0")


def _line(trial: Trial, low: float, high: float, end: int, colour: str, width: str) -> Html:
    every = 1 + len(trial.values) // MOST_POINTS
    points: Sequence[tuple[int, float]] = list(zip(trial.steps, trial.values, strict=True))[::every]
    text = " ".join(f"{WIDTH * s / end:.1f},{_y(v, low, high):.1f}" for s, v in points if math.isfinite(v))
    return tag("polyline", points=text, fill="none", stroke=colour, stroke_width=width)


def _y(value: float, low: float, high: float) -> float:
    """From the top; what is outside stays at the edge."""
    frac = (value - low) / (high - low) if high > low else 0.5
    return HEIGHT - 3 - (HEIGHT - 6) * min(1.0, max(0.0, frac))
