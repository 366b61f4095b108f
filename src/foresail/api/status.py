"""Where a study stands, as text."""

from __future__ import annotations

from foresail.api import wording
from foresail.api.json_form import counts_data
from foresail.api.result import Result, TrialRow
from foresail.api.speeds import Pace, told_of_all
from foresail.api.tables import table

_TITLES = ("trial", "status", "class", "best", "at step", "steps", "attempts", "time", "configuration")


def status(
    result: Result, driver: str | None, *, pace: Pace | None = None, most: int | None = 20, width: int = 120
) -> str:
    """Goal, best, costs, and the trials, best first.

    Args:
        driver: who is at work on the study, None if nobody is.
        pace: what steps take.
        most: trials to show; None for all.
        width: columns of a line.
    """
    rows = result.trials
    shown = table(_TITLES, [_cells(row) for row in rows[:most]], width=width, left=("status", "class"))
    more = f"\nand {len(rows) - most} more: --all" if most is not None and len(rows) > most else ""
    head = _head(result, driver, pace)
    return f"{head}\n\n{shown}{more}" if rows else head


def _head(result: Result, driver: str | None, pace: Pace | None) -> str:
    view = result.view
    counts = ", ".join(f"{n} {name}" for name, n in counts_data(view).items() if n)
    lines = [
        ("study", f"{result.name}: {wording.goal(view.spec.goal)}"),
        ("state", _state(result, driver)),
        ("best", wording.best(view)),
        ("time", _time(result)),
        ("trials", f"{len(view.trials)}: {counts}" if view.trials else "none yet"),
    ]
    if pace is not None:
        lines.append(("speed", told_of_all(pace)))
    return "\n".join(f"{title:<8}{text}" for title, text in lines)


def _state(result: Result, driver: str | None) -> str:
    if result.view.ended is not None:
        return f"ended ({result.end}): {result.why}"
    if driver is not None:
        return f"running: {driver}"
    return f"not running and not ended: {wording.program()} resume {wording.shell(result.storage)}"


def _time(result: Result) -> str:
    left_s = result.view.left_s
    left = "" if left_s is None or result.view.ended is not None else f", {wording.duration(left_s)} left"
    return f"{wording.duration(result.seconds)}{left}; core time {wording.duration(result.device_s)}"


def _cells(row: TrialRow) -> list[str]:
    return [
        str(row.trial),
        row.status,
        row.label or "-",
        wording.number(row.best),
        str(row.best_step) if row.best is not None else "-",
        str(row.steps),
        str(row.attempts),
        wording.duration(row.seconds),
        wording.config(row.config),
    ]
