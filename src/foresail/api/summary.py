"""What is told when a study has ended: the best, who was what and why, and how to look further."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from foresail.api import wording
from foresail.api.recorded import folder_of
from foresail.api.result import Best, Result, TrialRow
from foresail.api.tables import table
from foresail.core.spec import Entry
from foresail.core.view import View
from foresail.core.words import Label, Status, TrialId, attempt_id
from foresail.worker.folder import StudyFolder

MOST_OF_A_CLASS = 5
"""Trials that are shown of each class; of the others, how many there are."""


def summary(result: Result, *, width: int = 120) -> str:
    """The end of a study on one screen."""
    parts = [_head(result), _best(result), _classes(result, width), _broken(result, width), further(result)]
    return "\n\n".join(part for part in parts if part)


def _head(result: Result) -> str:
    view = result.view
    cost = f"{wording.duration(result.seconds)}, core time {wording.duration(result.device_s)}"
    size = f"{wording.count(len(view.trials), 'trial')}, {wording.count(result.points, 'point')}"
    return f"{result.name}: {wording.goal(view.spec.goal)}\n{result.end}: {result.why}\n{size}; {cost}"


def _best(result: Result) -> str:
    if result.best is None:
        return "no result: no trial reported a finite value of " + repr(result.view.spec.goal.metric)
    return "\n".join(best_lines(result.best, result.view, folder_of(result.storage)))


def best_lines(best: Best, view: View, folder: Path) -> Iterator[str]:
    """The best trial, its configuration, and where its state is kept in the study's `folder`."""
    kept = StudyFolder(folder).kept(TrialId(best.trial))
    yield f"best     {wording.best(view)}"
    yield f"         {wording.config(best.config)}"
    if best.checkpoint is not None:
        yield f"         checkpoint {best.checkpoint}"
    elif best.nearest is not None:
        yield f"         no checkpoint of that step; the nearest, of step {best.nearest_step}: {best.nearest}"
    elif view.spec.entry.command and kept.is_dir() and any(kept.iterdir()):
        yield f"         kept by its script, as it was last: {kept}"
    else:
        yield f"         no checkpoint: {_no_checkpoint(best, view)}"


def _no_checkpoint(best: Best, view: View) -> str:
    if view.spec.entry.command:
        return "a script keeps its state itself, in the folder that foresail.checkpoint_dir() gives"
    if any(trial.saved for trial in view.trials):
        return f"trial {best.trial} ended before the first was due; train the configuration again to have its state"
    return "none was due, or the training code names nothing to save: run.track(...), run.on_save(...)"


# --- who was what ------------------------------------------------------------------------------------------------


def _classes(result: Result, width: int) -> str:
    rows = result.trials
    parts = []
    for label in Label:
        of_class = [row for row in rows if row.label == label and row.status not in (Status.DIVERGED, Status.FAILED)]
        parts.append((str(label), of_class))
    parts.append(("not classified", [r for r in rows if r.label is None and r.steps and r.status != Status.DIVERGED]))
    shown = [row for title, of_class in parts for row in _class_rows(title, of_class)]
    if not shown:
        return ""
    titles = ("class", "trial", "status", "best", "at step", "steps", "why")
    return table(titles, shown, width=width, left=("class", "status"), wrap=True)


def _class_rows(title: str, rows: Sequence[TrialRow]) -> Iterator[Sequence[str]]:
    for row in rows[:MOST_OF_A_CLASS]:
        value = wording.number(row.best)
        trained = "trained to its end; " if row.status == Status.COMPLETED else ""
        yield title, str(row.trial), row.status, value, str(row.best_step), str(row.steps), trained + row.why
    if len(rows) > MOST_OF_A_CLASS:
        yield title, "", "", "", "", "", f"and {len(rows) - MOST_OF_A_CLASS} more"


def _broken(result: Result, width: int) -> str:
    lines = [line[:width] for row in _of(result, Status.DIVERGED)[:MOST_OF_A_CLASS] for line in _failure([row])]
    if (more := len(_of(result, Status.DIVERGED)) - MOST_OF_A_CLASS) > 0:
        lines.append(f"and {more} more diverged")
    alike: dict[str, list[TrialRow]] = {}
    for row in _of(result, Status.FAILED):
        alike.setdefault(row.why, []).append(row)
    for rows in list(alike.values())[:MOST_OF_A_CLASS]:
        lines += [line[:width] for line in _failure(rows)]
        first = result.view.trials[rows[0].trial]
        lines += [f"  {place}" for place in traces(first.id, first.attempts, folder_of(result.storage))[-1:]]
    if (more := sum(len(rows) for rows in list(alike.values())[MOST_OF_A_CLASS:])) > 0:
        lines.append(f"and {more} more failed")
    return "\n".join([*lines, *_other_python(result.view.spec.entry, alike)])


def _of(result: Result, status: Status) -> list[TrialRow]:
    return [row for row in result.trials if row.status == status]


def _failure(rows: Sequence[TrialRow]) -> Iterator[str]:
    """Trials that ended alike, with the configuration of the first."""
    others = f" and {len(rows) - 1} others" if len(rows) > 2 else f" and trial {rows[1].trial}" if rows[1:] else ""
    yield f"{rows[0].status} trial {rows[0].trial}{others}: {rows[0].why}"
    yield f"  {wording.config(rows[0].config)}"


def _other_python(entry: Entry, failures: Iterable[str]) -> Iterator[str]:
    """A hint, where a script lacks a module and is run by another Python than Foresail."""
    found = shutil.which(entry.command[0]) if entry.command else None
    is_other = found is not None and "python" in Path(found).name and Path(found).parent != Path(sys.executable).parent
    if is_other and any("ModuleNotFoundError" in why for why in failures):
        yield f"  {entry.command[0]!r} is {found}; Foresail is installed for {sys.executable}:"
        yield "  activate that environment, or write the Python that is meant in study.command"


def traces(trial: TrialId, attempts: int, folder: Path) -> list[Path]:
    """Files with what the first attempts of a trial said when they failed, in order: tracebacks, else stderr."""
    found = []
    for n in range(1, attempts + 1):
        attempt = StudyFolder(folder).attempt(attempt_id(trial, n))
        for place in (attempt.traceback, attempt.stderr):
            if place.is_file() and place.stat().st_size:
                found.append(place)
                break
    return found


# --- how to look further -----------------------------------------------------------------------------------------


def further(result: Result) -> str:
    """The commands that come next."""
    name, foresail = wording.shell(result.storage), wording.program()
    rows = []
    if result.end == "stopped":
        rows.append((f"{foresail} resume {name}", "go on"))
    if result.best is not None:
        rows.append((f"{foresail} best {name}", "the best trial; --json for scripts"))
        rows.append((f"{foresail} explain {result.best.trial} {name}", "why it got what it got"))
    failed = next((row.trial for row in result.trials if row.status == Status.FAILED), None)
    if failed is not None:
        rows.append((f"{foresail} explain {failed} {name}", "how it failed, with its traceback"))
    rows.append((f"{foresail} status {name} --all", "all trials"))
    rows.append((f"{foresail} export {name} --to {wording.shell(result.storage.with_suffix('.csv'))}", "all points"))
    if result.best is None and result.view.ended is not None and result.end != "stopped":
        files = f"{name} {wording.shell(folder_of(result.storage))}"
        rows.append((f"rm -r {files}", "forget it: an ended study is not run again"))
    longest = max(len(row[0]) for row in rows)
    return "\n".join(f"  {command:<{longest}}  {what}" for command, what in rows)
