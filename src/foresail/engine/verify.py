"""Same log, same decisions: feed the facts of a log to a fresh engine and compare what comes out."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from foresail.core import codec
from foresail.core import events as ev
from foresail.engine.controller import Controller


class Difference(Struct, frozen=True):
    """The first place where the log and a fresh engine part. `at`: number of the event in the log, from 1."""

    at: int
    recorded: ev.Event | None
    decided: ev.Event | None


def verify(events: Iterable[ev.Event], controller: Controller) -> Difference | None:
    """None if the engine decides exactly what was recorded."""
    expected: list[ev.Event] = []
    for at, event in enumerate(events, start=1):
        if not expected:
            if isinstance(event, ev.Decision):
                return Difference(at, event, None)
            expected = controller.feed(event).events[::-1]
        if not expected:
            return Difference(at, event, None)
        decided = expected.pop()
        if _as_read(decided) != _as_read(event):
            return Difference(at, event, decided)
    return None


def _as_read(event: ev.Event) -> bytes:
    """The bytes of an event that has been through a store: 1 and 1.0 are the same number there."""
    return codec.encode(codec.decode(codec.encode(event)))
