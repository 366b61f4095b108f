"""A log in memory: for tests, simulations and replays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foresail.core.events import Event


class MemoryStore:
    """Keeps events as they are, for as long as it lives."""

    def __init__(self) -> None:
        self._events: list[Event] = []

    @property
    def last(self) -> int:
        """Number of the last event; 0 when there is none."""
        return len(self._events)

    def append(self, events: Sequence[Event], *, durable: bool = False) -> None:
        """Append all, in order. Nothing here outlives the process, whatever `durable` says."""
        self._events.extend(events)

    def read(self, after: int = 0) -> Iterator[tuple[int, Event]]:
        """Events with their number (from 1), those above `after`, in order."""
        for number in range(after, len(self._events)):
            yield number + 1, self._events[number]

    def close(self) -> None:
        """Nothing to let go of."""
