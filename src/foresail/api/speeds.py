"""How long steps take in a study: what was foreseen and what was measured, folded from the log."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from foresail.api import wording
from foresail.core import events as ev
from foresail.core.view import Trial, View, apply
from foresail.perf.speeds import Speeds
from foresail.policies.costs import Costs
from foresail.space import Space


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of a step of one trial on `cores` cores.

    `foreseen_s`, with 90 % between `low_s` and `high_s`: before its first report, from the trials that had run (None:
    there were none). `measured_s`: mean of its steps; `expected_s`: of its next ones.
    """

    cores: int
    foreseen_s: float | None
    low_s: float | None
    high_s: float | None
    measured_s: float | None
    expected_s: float | None


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds of a step over the trials that have run.

    `error_frac`: median over `compared` trials of how far measured seconds were from those foreseen before the start.
    `twice_the_cores`: how many times faster a trial is on twice the cores; None while all ran on as many.
    """

    fastest_s: float
    slowest_s: float
    compared: int
    error_frac: float | None
    twice_the_cores: float | None


def folded(events: Iterable[ev.Event]) -> tuple[View, Speeds]:
    """The view of a log, and what its reports say of speeds."""
    view, costs = View(), Costs()
    space: Space | None = None
    for event in events:
        apply(view, event)
        match event:
            case ev.StudyCreated(spec=spec):
                space = Space.from_dict(spec.space)
            case ev.PointReported(attempt=attempt) if space is not None:
                costs.observe(view, event, space.to_unit(view.trial_of(attempt).config))
    return view, costs.speeds


def step_time(view: View, speeds: Speeds, trial: Trial) -> StepTime | None:
    """What is known of the steps of a trial; None while no trial has reported."""
    unit = Space.from_dict(view.spec.space).to_unit(trial.config)
    cores = next(iter(speeds.own.get(trial.id, ())), view.spec.resources.cores_per_trial)
    before, now = speeds.before(trial.id, unit, cores), speeds.expected(trial.id, unit, cores)
    if before is None and now is None:
        return None
    low, high = (None, None) if before is None else before.interval()
    return StepTime(
        cores=cores,
        foreseen_s=None if before is None else before.median,
        low_s=low,
        high_s=high,
        measured_s=trial.step_s,
        expected_s=None if now is None else now.median,
    )


def pace(view: View, speeds: Speeds) -> Pace | None:
    """Over all trials; None while none has reported."""
    measured = {t.id: t.step_s for t in view.trials if t.id in speeds.own and t.step_s}
    if not measured:
        return None
    errors = []
    for number, seconds in measured.items():
        before = speeds.before(number, (), next(iter(speeds.own[number])))
        if before is not None and seconds:
            errors.append(abs(seconds / before.median - 1.0))
    widths = {width for own in speeds.own.values() for width in own}
    return Pace(
        fastest_s=min(s for s in measured.values() if s),
        slowest_s=max(s for s in measured.values() if s),
        compared=len(errors),
        error_frac=statistics.median(errors) if errors else None,
        twice_the_cores=2.0 ** speeds.speedup[0] if len(widths) > 1 else None,
    )


def told_of(step: StepTime) -> str:
    """One line on a trial's steps."""
    parts = []
    if step.foreseen_s is not None:
        bounds = f"{_seconds(step.low_s)} to {_seconds(step.high_s)} with 90 %"
        parts.append(f"{_seconds(step.foreseen_s)} foreseen before its first report ({bounds})")
    if step.measured_s is not None:
        parts.append(f"{_seconds(step.measured_s)} measured")
    held = "core" if step.cores == 1 else "cores"
    return f"a step on {step.cores} {held}: {', '.join(parts)}"


def told_of_all(found: Pace) -> str:
    """One line on a study's steps."""
    text = f"a step takes {_seconds(found.fastest_s)}"
    if found.slowest_s > found.fastest_s:
        text += f" to {_seconds(found.slowest_s)}"
    if found.error_frac is not None:
        text += f"; foreseen before the start within {found.error_frac:.0%} (median of {found.compared})"
    if found.twice_the_cores is not None:
        text += f"; {found.twice_the_cores:.2g} times as fast on twice the cores"
    return text


def _seconds(value: float | None) -> str:
    if value is None or value >= 10.0:
        return wording.duration(value)
    return f"{value:.2g} s" if value >= 1.0 else f"{1e3 * value:.3g} ms"
