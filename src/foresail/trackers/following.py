"""Follow a log to its end and hand what is new to a tracker."""

from __future__ import annotations

import datetime
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Protocol

from foresail.api.recorded import Follower, driver_of, folder_of
from foresail.api.tracking import checked
from foresail.core import events as ev
from foresail.core.view import View
from foresail.errors import CallerError, ForesailError, HostError

EVERY_S = 1.0
"""Seconds between two looks at the log."""
PATIENCE_S = 60.0
"""Seconds in which a study that is being started must have begun."""

_MODULES = {"csv": "foresail.trackers.tables", "parquet": "foresail.trackers.tables"}


class Tracker(Protocol):
    """Told of a log in pieces. `keeps_all`: wants all of the log at each start, not what is new since the last."""

    keeps_all: bool

    def take(self, view: View, events: Sequence[ev.Event]) -> None:
        """What is new; `view` is the study after it."""
        ...

    def close(self) -> None:
        """There is no more for now."""
        ...


def follow(storage: Path, to: str, *, wait: bool = False, sleep: Callable[[float], object] = time.sleep) -> int:
    """Tell the tracker `to` of the study in `storage` until it ends or nobody drives it; how many events were told.

    Args:
        storage: the study's log.
        to: "kind" or "kind:place".
        wait: whether the study may not have begun yet.
        sleep: waits for so many seconds.

    Raises:
        CallerError: no such tracker, or no study.
        MissingExtraError: the tracker's library is not installed.
        HostError: the tracker fails; the study is not touched.
    """
    kind, _, place = checked([to])[0].partition(":")
    follower, fresh = _begun(storage, PATIENCE_S if wait else 0.0, sleep)
    with closing(follower), _blamed(kind):
        tracker: Tracker = import_module(_MODULES.get(kind, f"foresail.trackers.{kind}")).make(
            kind, place, storage, follower.view
        )
        mark = Mark(storage, to)
        fresh, told = fresh[0 if tracker.keeps_all else mark.read() :], 0
        while True:
            driven = driver_of(storage) is not None  # asked before the last look
            fresh += follower.news()
            tracker.take(follower.view, fresh)
            mark.write(follower.view.events)
            told += len(fresh)
            if follower.view.ended is not None or not driven:
                tracker.close()
                return told
            fresh = []
            sleep(EVERY_S)


def _begun(storage: Path, patience_s: float, sleep: Callable[[float], object]) -> tuple[Follower, list[ev.Event]]:
    """A follower of a log that holds a study, and its events so far."""
    waited_s = 0.0
    while True:
        if storage.exists() or waited_s >= patience_s:
            follower = Follower(storage)
            if events := [*follower.news()]:
                return follower, events
            follower.close()
        if waited_s >= patience_s:
            raise CallerError(f"{storage} holds no study yet", do="start it with `foresail run`, or study.run()")
        sleep(EVERY_S)
        waited_s += EVERY_S


@contextmanager
def _blamed(kind: str) -> Iterator[None]:
    """Whatever goes wrong in a library of others, in one sentence."""
    try:
        yield
    except ForesailError:
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {error}".splitlines()[0]
        raise HostError(
            f"tracking to {kind} has ended: {said}", do="the study goes on; mend it and `foresail track`"
        ) from error


class Mark:
    """How many events of a log a tracker was told."""

    def __init__(self, storage: Path, to: str) -> None:
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", to)
        self._file = folder_of(storage) / "trackers" / f"{name}.json"

    def read(self) -> int:
        try:
            return int(json.loads(self._file.read_text())["events"])
        except (OSError, ValueError, KeyError, TypeError):
            return 0

    def write(self, events: int) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        beside = self._file.with_suffix(".part")
        beside.write_text(json.dumps({"events": events}))
        os.replace(beside, self._file)


class WallClock:
    """Study time as time of day: that of the driver's start, and the study time since."""

    def __init__(self) -> None:
        self._origin_s = time.time()

    def heed(self, event: ev.Event) -> None:
        """A driver that started says when that was."""
        if isinstance(event, ev.DriverStarted) and event.wall_time:
            self._origin_s = datetime.datetime.fromisoformat(event.wall_time).timestamp() - event.at_s

    def at(self, at_s: float) -> float:
        """Seconds since 1970 of a moment of the study."""
        return self._origin_s + at_s
