"""What a person would attach to a paper or a pull request about a study, as data; `report_html` and `report_markdown`
write it down."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import foresail
from foresail.api import wording
from foresail.api.recorded import folder_of, view_of
from foresail.api.result import Result, TrialRow, result_of
from foresail.core import events as ev
from foresail.core.view import View
from foresail.core.words import Label, Status
from foresail.plots import Chronicle, Foreseen, Saving, foresee, saving
from foresail.plots.best import best_so_far
from foresail.plots.cluster import gantt
from foresail.plots.coordinates import parallel_coordinates
from foresail.plots.curves import learning_curves
from foresail.plots.efficiency import potential_map
from foresail.plots.honesty import calibration
from foresail.plots.influence import importance
from foresail.plots.picture import Picture
from foresail.plots.timing import step_speeds
from foresail.plots.trials import label_of
from foresail.space import Space

MOST_OF_A_CLASS = 8
"""Trials that are shown of each class."""
SMALL = 0.01
"""Chances under this are called so."""
LEAST_FORECASTS = 20
"""Replayed forecasts that are worth a picture."""
TAIL = 0.5
"""Share of a curve, its end, on which its noise is measured."""
LEAST_NOISE = 6
"""Points that the noise of a curve is measured on, at least."""

Row = tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Titles and rows of texts; nothing in it is markup."""

    titles: Row
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Plot:
    """A picture with what it shows, in a sentence or two."""

    name: str
    picture: Picture
    about: str


@dataclass(frozen=True)
class Report:
    """All parts, ready to be written. Every text is plain: who writes it down escapes it.

    `facts`: (number, what it is) at a glance; `best`: sentences on the best configuration and how sure it is;
    `costs`: sentences on what was spent and saved; `method`: on how the figures came about.
    """

    name: str
    goal: str
    outcome: str
    facts: tuple[tuple[str, str], ...]
    best: tuple[str, ...]
    configuration: Table | None
    searched: Table
    settings: Table
    costs: tuple[str, ...]
    classes: Table
    broken: Table | None
    plots: tuple[Plot, ...]
    method: tuple[str, ...]


def report_of(events: Sequence[ev.Event], storage: Path) -> Report:
    """The report on the study of a log that was read from `storage`, as the log stands.

    Raises:
        CallerError: the log holds no study.
    """
    view_of(events, storage)
    chronicle = Chronicle.of(events)
    view = chronicle.view
    foreseen = foresee(view)
    saved = saving(view, events)
    result = result_of(view, storage, folder_of(storage))
    return Report(
        name=result.name,
        goal=wording.goal(view.spec.goal),
        outcome=f"{result.end.replace('_', ' ')}: {result.why}",
        facts=tuple(_facts(result, saved)),
        best=tuple(_best(result, foreseen)),
        configuration=_configuration(result),
        searched=_searched(Space.from_dict(view.spec.space)),
        settings=_settings(view, events),
        costs=tuple(_costs(view, saved)),
        classes=_classes(result),
        broken=_broken(result),
        plots=tuple(_plots(chronicle, foreseen)),
        method=tuple(_method(result, saved)),
    )


def _facts(result: Result, saved: Saving | None) -> Iterator[tuple[str, str]]:
    goal = result.view.spec.goal
    if result.best is not None:
        yield wording.number(result.best.value), f"best {result.best.metric}"
    if goal.target is not None:
        yield ("reached" if result.reached else "not reached"), f"target {wording.number(goal.target)}"
    yield wording.duration(result.seconds), "study time"
    yield wording.duration(result.device_s), "core time"
    yield str(len(result.view.trials)), f"configurations, {result.points} points"
    if saved is not None:
        yield f"{saved.saved_frac:.0%}", "of the core time of training everything saved"


# --- the best ----------------------------------------------------------------------------------------------------


def _best(result: Result, foreseen: Foreseen | None) -> Iterator[str]:
    best, view = result.best, result.view
    if best is None:
        yield f"No trial has reported a finite value of {view.spec.goal.metric}."
        return
    trial = view.trials[best.trial]
    of = f" of {trial.max_steps}" if trial.max_steps else ""
    yield f"{best.metric} = {wording.number(best.value)} by trial {best.trial} at step {best.step}{of}."
    noise = noise_of(trial.values)
    if noise is not None:
        yield (
            f"From step to step, the last values of this trial scatter by {noise:.2g} (one standard deviation); the "
            "best of many noisy values is on average too good by one or two of these: expect a little less on new data."
        )
    if foreseen is not None and best.trial in foreseen.row and trial.last_step < (trial.max_steps or 0):
        low, _, middle, _, high = foreseen.final[:, foreseen.row[best.trial]]
        yield (
            f"It was trained for {trial.last_step} steps; at its end it is expected to be at {middle:.6g} "
            f"(90 % interval {low:.6g} to {high:.6g})."
        )
    if foreseen is not None and len(foreseen.trials) > 1:
        chance = float(foreseen.forecast.prob_best()[foreseen.row[best.trial]])
        said = f"{chance:.0%}" if chance >= SMALL else f"under {SMALL:.0%}"
        yield f"Chance that it would still be the best if every trial were trained to its end: {said}."
    if best.checkpoint is not None:
        yield f"Its checkpoint of that very step: {wording.shell(best.checkpoint)}"


def noise_of(values: Sequence[float]) -> float | None:
    """Standard deviation of the scatter of a curve about its trend, on its last half; None with too few points.

    From differences of neighbouring differences, which a straight trend leaves at zero (Gasser, Sroka and
    Jennen-Steinmetz 1986): their variance is six times that of the scatter.
    """
    tail = np.asarray(values[int(TAIL * len(values)) :], dtype=float)
    tail = tail[np.isfinite(tail)]
    if len(tail) < LEAST_NOISE:
        return None
    return float(np.sqrt(np.mean(np.diff(tail, 2) ** 2) / 6.0))


def _configuration(result: Result) -> Table | None:
    if result.best is None:
        return None
    rows = tuple((name, wording.config({name: value}).partition("=")[2]) for name, value in result.best.config.items())
    return Table(("hyperparameter", "value"), rows)


# --- what was searched, and what it cost ---------------------------------------------------------------------------


def _searched(space: Space) -> Table:
    rows = tuple((name, *wording.knob(knob)) for name, knob in space.knobs.items())
    return Table(("hyperparameter", "values", "scale"), rows)


def _settings(view: View, events: Sequence[ev.Event]) -> Table:
    spec = view.spec
    drivers = [event for event in events if isinstance(event, ev.DriverStarted)]
    named = [("policy", spec.policy), ("search", spec.search)]
    rows = [(title, " ".join([c.name, *(f"{k}={v}" for k, v in c.options.items())])) for title, c in named]
    rows.append(("seed", str(spec.seed)))
    cores = spec.resources.cores_per_trial
    rows.append(("at a time", f"{wording.count(view.slots, 'trial')}, {wording.count(cores, 'core')} each"))
    if spec.entry.function or spec.entry.command:
        where, colon, name = spec.entry.function.rpartition(":")
        rows.append(("training", f"{Path(where).name}{colon}{name}" if colon else shlex.join(spec.entry.command)))
    for driver in drivers[:1]:
        rows.append(("machine", f"{driver.host or 'not named'}, {wording.count(len(driver.cores), 'core')} for trials"))
        if driver.wall_time:
            rows.append(("started", driver.wall_time))
    if len(drivers) > 1:
        rows.append(("driven", f"{len(drivers)} times: it was stopped and continued"))
    return Table(("setting", "value"), tuple(rows))


def _costs(view: View, saved: Saving | None) -> Iterator[str]:
    trained_s = sum(trial.seconds for trial in view.trials) * max(1, view.spec.resources.cores_per_trial)
    steps = sum(trial.reached for trial in view.trials)
    share = trained_s / view.device_s_used if view.device_s_used else 0.0
    yield (
        f"The study took {wording.duration(view.now_s)} and {wording.duration(view.device_s_used)} of core time for "
        f"{steps} steps; {share:.0%} of it went into training, the rest into starts, restarts, checkpoints and waiting "
        "for reports."
    )
    if saved is None:
        yield "With fewer than two trials there is nothing to compare with."
        return
    until = "until one reaches the target" if saved.reached else "each to its end"
    word = "less" if saved.saved_frac >= 0 else "more"
    yield (
        f"The same configurations in the same order, trained first in, first out, {until}, on as many workers: "
        f"{wording.duration(saved.all_s)} and {wording.duration(saved.all_device_s)} of core time. The study spent "
        f"{abs(saved.saved_frac):.0%} {word}."
    )
    yield f"Basis: {saved.by}."
    if saved.filled_in:
        lost = "a better value" if view.spec.goal.target is None else "the target, and sooner"
        yield f"What was not trained is not known: it might have brought {lost}. What was saved is an upper bound."


# --- the trials --------------------------------------------------------------------------------------------------


def _classes(result: Result) -> Table:
    fine = [r for r in result.trials if r.steps and r.status not in (Status.DIVERGED, Status.FAILED)]
    labels: tuple[str | None, ...] = (*(label.value for label in Label), None)
    label = {row.trial: label_of(result.view, result.view.trials[row.trial]) for row in fine}
    rows = [cells for wanted in labels for cells in _class(wanted, [r for r in fine if label[r.trial] == wanted])]
    return Table(("class", "trial", "status", "best", "at step", "steps", "configuration", "why"), tuple(rows))


def _class(label: str | None, rows: Sequence[TrialRow]) -> Iterator[Row]:
    title = label or "not classified"
    for row in rows[:MOST_OF_A_CLASS]:
        values = (str(row.trial), row.status, wording.number(row.best), str(row.best_step), str(row.steps))
        yield (title, *values, wording.config(row.config), row.why)
    if len(rows) > MOST_OF_A_CLASS:
        yield title, "", "", "", "", "", "", f"and {len(rows) - MOST_OF_A_CLASS} more"


def _broken(result: Result) -> Table | None:
    rows = [row for row in result.trials if row.status in (Status.DIVERGED, Status.FAILED)]
    if not rows:
        return None
    cells = [(str(row.trial), row.status, wording.config(row.config), row.why) for row in rows[:MOST_OF_A_CLASS]]
    if len(rows) > MOST_OF_A_CLASS:
        cells.append(("", "", "", f"and {len(rows) - MOST_OF_A_CLASS} more"))
    return Table(("trial", "status", "configuration", "why"), tuple(cells))


# --- the plots ---------------------------------------------------------------------------------------------------


def _plots(chronicle: Chronicle, foreseen: Foreseen | None) -> Iterator[Plot]:
    if foreseen is None:
        return
    spots = potential_map(chronicle, foreseen)
    if spots.spots:
        yield Plot("map", spots, _ABOUT["map"])
    yield Plot("curves", learning_curves(chronicle, foreseen), _ABOUT["curves"])
    yield Plot("best", best_so_far(chronicle), _ABOUT["best"])
    yield Plot("cores", gantt(chronicle), _ABOUT["cores"])
    yield Plot("configurations", parallel_coordinates(chronicle, foreseen), _ABOUT["configurations"])
    knobs = importance(chronicle, foreseen)
    if knobs.knobs:
        yield Plot("importance", knobs, _ABOUT["importance"])
    speeds = step_speeds(chronicle)
    if speeds.error is not None:
        yield Plot("speed", speeds, _ABOUT["speed"])
    honesty = calibration(chronicle, foreseen)
    if honesty.forecasts >= LEAST_FORECASTS or honesty.claims:
        yield Plot("calibration", honesty, _ABOUT["calibration"])


_ABOUT = {
    "map": "Each trial by where it is expected to end and how fast it goes; the larger, the likelier it reaches the "
    "target (without one: the best so far). Values are drawn sharply around the target.",
    "curves": "What was reported. Dotted, with bands of half and 90 % probability: where the likeliest of the trials "
    "that may go on are expected to go.",
    "best": "The best value so far, over the time of the study and over the steps of all trials together.",
    "cores": "Which trial held which core when, coloured by the class of its latest decision then.",
    "configurations": "Each line is a trial. The last axis is the value expected at the end, by rank.",
    "importance": "Share of the variance of the expected final value over the search space that each hyperparameter "
    "accounts for, alone and with its interactions (functional ANOVA of a Gaussian process).",
    "speed": "Seconds of a step against what the other trials make one expect of the configuration.",
    "calibration": "Forecasts that would have been made for trials that were trained to their ends, from parts of "
    "their curves, and what decisions said of them at the time; on the diagonal, what was said is what came.",
}


def _method(result: Result, saved: Saving | None) -> Iterator[str]:
    name = wording.shell(result.storage)
    yield (
        f"Made by Foresail {foresail.__version__} from the {result.view.events} events of the study's log; every "
        "figure follows from that log alone."
    )
    yield (
        "Forecasts are made now from all that the log holds, as the policy makes them; numbers in the reasons are "
        "those of their own moment."
    )
    yield f"Any trial's story: foresail explain TRIAL {name}. The decisions, checked: foresail replay --verify {name}."
    if saved is not None:
        yield "What was saved: the log's configurations and curves, played again by the same engine without a policy."
