"""What a person sees of a running study: a picture on a terminal, plain lines elsewhere, on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TextIO

from foresail.core.events import Event
from foresail.core.view import View


class Display(Protocol):
    """A watcher of `foresail.driver.loop` that can be put away."""

    def __call__(self, view: View, events: Sequence[Event]) -> None: ...

    def trouble(self, text: str) -> None: ...

    def close(self) -> None: ...


class Nothing:
    """Shows nothing but trouble."""

    def __call__(self, view: View, events: Sequence[Event]) -> None:
        """Take it and be silent."""

    def trouble(self, text: str) -> None:
        """The host refuses something, or a trial is silent: that is always told."""
        print(f"trouble: {text}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Nothing to put away."""


@contextmanager
def showing(*, quiet: bool = False, stream: TextIO | None = None) -> Iterator[Display]:
    """The display that fits `stream` (stderr if not given), put away at the end of the block."""
    shown = display(quiet=quiet, stream=stream)
    try:
        yield shown
    finally:
        shown.close()


def display(*, quiet: bool = False, stream: TextIO | None = None) -> Display:
    """The display that fits `stream` (stderr if not given)."""
    stream = sys.stderr if stream is None else stream
    if quiet:
        return Nothing()
    if stream.isatty():
        from rich.console import Console

        from foresail.api.screen import Screen

        console = Console(file=stream)
        if not console.is_dumb_terminal:
            return Screen(console)
    from foresail.api.lines import Lines

    return Lines(lambda text: print(text, file=stream, flush=True))
