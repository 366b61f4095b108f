"""Which storage a command means."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from foresail.errors import CallerError, nearest

_GIVE = "name it, `foresail status digits.db`"


def storage_argument(function: Callable[..., Any]) -> Callable[..., Any]:
    """An optional STORAGE; the command gets the path of an existing file as `storage`."""
    return click.argument("storage", required=False, callback=lambda ctx, param, value: find_storage(value))(function)


def find_storage(given: str | None, folder: Path = Path()) -> Path:
    """The storage that is meant: a log, the one of a study file, or the only one in the folder.

    Raises:
        CallerError: there is none, or more than one.
    """
    if given is None:
        return _only_one(folder)
    path = Path(given)
    if path.suffix == ".toml":
        from foresail.api.study_file import storage_of

        path = storage_of(path)
    if not path.exists():
        logs = [log.name for log in path.parent.glob("*.db")] if path.parent.is_dir() else []
        raise CallerError(f"there is no study at {path}", do=nearest(path.name, logs) if logs else _GIVE)
    return path


def _only_one(folder: Path) -> Path:
    logs = sorted(folder.glob("*.db"))
    if len(logs) == 1:
        return logs[0]
    if not logs:
        raise CallerError("there is no study in this folder", do=_GIVE)
    raise CallerError("this folder holds more than one study", allowed=", ".join(map(str, logs)), do=_GIVE)
