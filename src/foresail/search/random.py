"""Random search: each knob uniform on its own scale, independent of what was learned."""

from __future__ import annotations

from collections.abc import Iterator

from foresail.search.proposal import Ask, systematic
from foresail.space import Config

TRIES = 64
"""Draws before the systematic search for what is left: with 1 in 10 configurations free, the chance to miss
all 64 times is 0.1 %."""


def candidates(ask: Ask) -> Iterator[Config]:
    """Independent draws, then whatever is left, one by one."""
    yield from draws(ask)
    yield from systematic(ask)


def draws(ask: Ask) -> Iterator[Config]:
    """A bounded number of independent draws."""
    stream = ask.stream("random")
    for _ in range(TRIES):
        yield ask.space.point([stream.random() for _ in ask.space.knobs])
