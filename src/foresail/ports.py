"""The seams between the engine's decisions and the world.

A study is driven by a `Store` (the log), an `Executor` (processes) and a `Clock` (study time). The engine sees
none of them: the driver carries events in and commands out. A simulator is an executor and a clock; no other file
knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from foresail.core.commands import Command
from foresail.core.events import Event, Fact
from foresail.core.words import AttemptId


class Clock(Protocol):
    """Study time."""

    def now_s(self) -> float:
        """Seconds of study time; never falls."""
        ...


class Store(Protocol):
    """An append-only log with one writer. Readers never block it."""

    def append(self, events: Sequence[Event], *, durable: bool) -> None:
        """Append all or none, in order, in one transaction. `durable`: on disk before it returns.

        Raises:
            HostError: the disk is full or cannot be written; nothing of `events` was kept.
        """
        ...

    def read(self, after: int = 0) -> Iterator[tuple[int, Event]]:
        """Events with their number (from 1), those above `after`, in order."""
        ...

    def close(self) -> None: ...


class Executor(Protocol):
    """Runs attempts. Its answers are facts, stamped with study time."""

    def start(self) -> None:
        """Get ready (warm what can be warmed) without waiting for it."""
        ...

    def perform(self, command: Command) -> None:
        """Begin to do it and return at once. Doing the same twice is harmless."""
        ...

    def poll(self, until_s: float) -> Sequence[Fact]:
        """Facts since the last call; waits for one until study time `until_s` at most."""
        ...

    def adopt(self, attempts: Iterable[AttemptId]) -> Sequence[Fact]:
        """After a restart: the attempts that the log believes to be alive.

        Those that live are watched again; of the others, what they still had to tell comes back (their last points),
        followed by their AttemptEnded.
        """
        ...

    def close(self, grace_s: float = 0.0) -> None:
        """Leave nothing behind: every process of every attempt is gone when this returns."""
        ...
