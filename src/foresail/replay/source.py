"""Where a trace comes from, by what stands at a path."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from foresail.core.events import Event
from foresail.errors import CallerError
from foresail.replay.folder import read_folder
from foresail.replay.optuna import read_optuna
from foresail.replay.recorded import read_events
from foresail.replay.trace import Trace
from foresail.stores.export import read_jsonl
from foresail.stores.sqlite import SqliteStore

_SQLITE = b"SQLite format 3"
_GIVE = "give a folder with trace.json, a study of Foresail (.db or .jsonl), or an Optuna storage (journal or SQLite)"


def read(path: Path | str) -> Trace:
    """The trace at `path`: a folder with trace.json, a study of Foresail, or an Optuna storage (journal or SQLite).

    A storage with several studies is written `storage.db::name`.

    Raises:
        CallerError: nothing readable stands there, or it is broken; with file and line.
    """
    text, _, study = str(path).partition("::")
    path = Path(text)
    if path.is_dir():
        return read_folder(path)
    if not path.is_file():
        raise CallerError(f"{path}: there is no such trace", do=_GIVE)
    match _kind(path):
        case "foresail":
            return read_events(events_of(path), where=path)
        case "optuna":
            return read_optuna(path, study=study or None)
    raise CallerError(f"{path} is no trace", do=_GIVE)


def events_of(path: Path) -> Iterable[Event]:
    """The log of a study that Foresail has recorded."""
    with path.open("rb") as file:
        is_sqlite = file.read(16).startswith(_SQLITE)
    if not is_sqlite:
        yield from read_jsonl(path)
        return
    with SqliteStore.open(path, write=False) as store:
        for _, event in store.read():
            yield event


def _kind(path: Path) -> str:
    with path.open("rb") as file:
        first = file.readline(1 << 20)
    if first.startswith(_SQLITE):
        return _kind_of_database(path)
    try:
        line = json.loads(first)
    except (json.JSONDecodeError, UnicodeDecodeError):
        return ""
    keys = line.keys() if isinstance(line, dict) else ()
    return "foresail" if "event" in keys else "optuna" if "op_code" in keys else ""


def _kind_of_database(path: Path) -> str:
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    return "optuna" if {"studies", "trials", "trial_values"} <= tables else "foresail" if "event" in tables else ""
