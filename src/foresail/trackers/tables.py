"""CSV and Parquet: the points of a study as one table at `place`, written anew from time to time and at the end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from foresail.core import events as ev
from foresail.core.view import View

EVERY_S = 10.0


def make(kind: str, place: str, storage: Path, view: View) -> Table:
    """A tracker of this study."""
    return Table(Path(place or storage.with_suffix(f".{kind}").name))


class Table:
    """A file that is whole at any moment."""

    keeps_all = True

    def __init__(self, path: Path) -> None:
        self._path = path
        self._events: list[ev.Event] = []
        self._written_s = float("-inf")

    def take(self, view: View, events: Sequence[ev.Event]) -> None:
        """Keep the points, and write them if that was long ago."""
        self._events += [event for event in events if isinstance(event, ev.PointReported)]
        if time.monotonic() - self._written_s >= EVERY_S:
            self.close()

    def close(self) -> None:
        """Write the table."""
        from foresail.api.frames import write_points

        write_points(self._events, self._path)
        self._written_s = time.monotonic()
