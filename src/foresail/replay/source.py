"""Where a trace comes from, by what stands at a path."""

from __future__ import annotations

from pathlib import Path

from foresail.errors import CallerError
from foresail.replay.folder import read_folder
from foresail.replay.trace import Trace


def read(path: Path | str) -> Trace:
    """The trace at `path`: a folder with trace.json, a study of Foresail, or an Optuna storage (journal or SQLite).

    Raises:
        CallerError: nothing readable stands there, or it is broken; with file and line.
    """
    path = Path(path)
    if path.is_dir():
        return read_folder(path)
    if not path.exists():
        raise CallerError(f"{path}: there is no such trace", do="give a folder with trace.json, or a study's file")
    raise CallerError(f"{path}: not a trace")
