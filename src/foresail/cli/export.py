"""`foresail export STORAGE`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from foresail.cli.exits import Exit
from foresail.cli.output import emit_json, json_option, say
from foresail.cli.storage import storage_argument
from foresail.errors import CallerError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from foresail.core.events import Event

_BY_ENDING = {".csv": "csv", ".parquet": "parquet", ".jsonl": "jsonl", ".sqlite": "optuna", ".journal": "optuna"}
_BY_ENDING |= {".log": "optuna", "": "trace"}


@click.command("export")
@storage_argument
@click.option("--to", type=click.Path(path_type=Path), help="File or, for a trace, folder; stdout if not given.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "parquet", "jsonl", "trace", "optuna"]),
    help="By the ending of --to, else csv.",
)
@click.option("--trials", "of_trials", is_flag=True, help="CSV or Parquet of the trials in place of the points.")
@click.option("--force", is_flag=True, help="Replace what is there.")
@json_option
def command(storage: Path, to: Path | None, form: str | None, of_trials: bool, force: bool, as_json: bool) -> Exit:
    """The study in STORAGE in a form that others read.

    \b
      csv     points (trial, step, metrics, seconds), or one line a trial with --trials
      parquet the same, for pandas and its like
      jsonl   the log itself: every event as a line of JSON
      trace   a folder in the learning-curve format that replays and benchmarks read
      optuna  an Optuna storage, for optuna-dashboard: SQLite, or a journal where --to ends in .journal or .log
    """
    from foresail.api.recorded import load_events

    form = form or _form_of(to)
    if to is None and form not in ("csv", "jsonl"):
        raise CallerError(f"{form} does not go to stdout", do="say where: --to PATH")
    if to is not None and to.exists() and not force:
        raise CallerError(f"{to} is there already", do="choose another name, or --force")
    events = load_events(storage)
    if form == "trace" and to is not None:
        from foresail.stores.export import write_trace

        write_trace(events, to)
    elif form == "optuna" and to is not None:
        _write_optuna(events, to)
    elif to is None:
        _write(events, form, of_trials, sys.stdout)
        return Exit.DONE
    else:
        _write_file(events, form, of_trials, to)
    if as_json:
        emit_json({"storage": str(storage), "format": form, "to": str(to)})
    else:
        say(f"written: {to}")
    return Exit.DONE


def _form_of(to: Path | None) -> str:
    if to is None:
        return "csv"
    if to.suffix not in _BY_ENDING:
        raise CallerError(
            f"{to}: its ending does not tell the format",
            allowed="csv, jsonl, trace, parquet, optuna",
            do="give --format",
        )
    return _BY_ENDING[to.suffix]


def _write(events: Sequence[Event], form: str, of_trials: bool, stream: TextIO) -> None:
    from foresail.api.spreadsheet import point_rows, trial_rows, write_csv
    from foresail.core import codec
    from foresail.core.view import fold

    if form == "csv":
        write_csv(trial_rows(fold(events)) if of_trials else point_rows(events), stream)
        return
    for event in events:
        stream.write(codec.encode(event).decode() + "\n")


def _write_optuna(events: Sequence[Event], to: Path) -> None:
    """Written elsewhere, then moved: a file of that name is whole."""
    try:
        from foresail.optuna.records import write_study
    except ImportError:
        raise MissingExtraError("Optuna", "optuna") from None
    beside = to.with_name(f".{os.getpid()}-{to.name}")
    try:
        write_study(events, beside)
        os.replace(beside, to)
    finally:
        beside.unlink(missing_ok=True)


def _write_file(events: Sequence[Event], form: str, of_trials: bool, to: Path) -> None:
    """Written elsewhere, then moved: a file of that name is whole."""
    if form == "jsonl":
        from foresail.stores.export import write_jsonl

        write_jsonl(events, to)
        return
    from foresail.api.frames import write_table
    from foresail.api.spreadsheet import point_rows, trial_rows
    from foresail.core.view import fold

    write_table(trial_rows(fold(events)) if of_trials else point_rows(events), to, parquet=form == "parquet")
