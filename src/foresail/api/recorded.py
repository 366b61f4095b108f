"""A study as its log stands, read beside whoever writes it. Nothing here writes, locks or waits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from foresail.api.result import Result, result_of
from foresail.api.speeds import Pace, folded, pace
from foresail.core import events as ev
from foresail.core.view import View, fold
from foresail.errors import CallerError
from foresail.stores.sqlite import SqliteStore


def folder_of(storage: Path) -> Path:
    """Where the attempts and checkpoints of the study in `storage` lie."""
    return storage.with_suffix(".runs")


class Follower:
    """A view that keeps up with a log: each `news` reads what was appended since the last.

    Raises:
        CallerError: there is no such study, or it is of a newer version.
        HostError: the log is damaged or cannot be read.
    """

    def __init__(self, storage: Path) -> None:
        self.storage = storage
        self.view = View()
        self._store = SqliteStore.open(storage, write=False)

    def news(self) -> Sequence[ev.Event]:
        """Events since the last call, already folded into `view`."""
        events = [event for _, event in self._store.read(self.view.events)]
        fold(events, self.view)
        return events

    def close(self) -> None:
        self._store.close()


def load_events(storage: Path) -> list[ev.Event]:
    """The log, read without disturbing who writes it.

    Raises:
        CallerError: there is no such study, or it is of a newer version.
        HostError: the log is damaged or cannot be read.
    """
    store = SqliteStore.open(storage, write=False)
    try:
        return [event for _, event in store.read()]
    finally:
        store.close()


def load_view(storage: Path) -> View:
    """The study as its log stands; errors as `load_events`, and CallerError for a log without a study."""
    store = SqliteStore.open(storage, write=False)
    try:
        view = fold(event for _, event in store.read())
    finally:
        store.close()
    if not view.events:
        raise _no_study(storage)
    return view


def view_of(events: Sequence[ev.Event], storage: Path) -> View:
    """The study of a log that was read from `storage`.

    Raises:
        CallerError: the log holds no study.
    """
    if not events:
        raise _no_study(storage)
    return fold(events)


def _no_study(storage: Path) -> CallerError:
    return CallerError(f"{storage} holds no study yet", do="start it with `foresail run`, or study.run()")


def load_result(storage: Path) -> Result:
    """The result as the log stands; errors as `load_view`."""
    return result_of(load_view(storage), storage, folder_of(storage))


def load_paced(storage: Path) -> tuple[Result, Pace | None]:
    """The result as the log stands, and what steps take; errors as `load_view`."""
    events = load_events(storage)
    view_of(events[:1], storage)
    view, speeds = folded(events)
    return result_of(view, storage, folder_of(storage)), pace(view, speeds)


def driver_of(storage: Path) -> str | None:
    """Who is driving the study now, "process 4711 on myhost"; None if nobody is.

    Tells the truth for drivers on this machine; one on another machine is believed as long as its lock is held.
    """
    if not storage.is_file():
        return None
    lock = storage.with_name(storage.name + ".lock")
    try:
        holder = json.loads(lock.read_bytes()[:512])
        name = f"process {holder['pid']} on {holder['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return name if is_locked(lock) else None


def is_locked(path: Path) -> bool:
    """Whether another process holds the lock of `path`; always False where locks cannot be asked about."""
    try:
        import fcntl
    except ImportError:
        return False
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
