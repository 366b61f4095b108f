"""Grid search: every combination once, first knob slowest; for few knobs and few values.

A continuous knob gets `LEVELS` values evenly on its scale, both ends included, as does an Int or a stepped
Float that has more. The study ends when the grid does.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from foresail.search.proposal import Ask
from foresail.space import Config

LEVELS = 5


def candidates(ask: Ask) -> Iterator[Config]:
    """The grid from its k-th configuration onwards, then from its start.

    The k proposals before this one took no more than k places; a default outside of the grid took none.
    """
    start = max(ask.k - 1, 0)
    yield from islice(grid(ask), start, None)
    yield from islice(grid(ask), start)


def grid(ask: Ask) -> Iterator[Config]:
    """The grid of a space."""
    return ask.space.grid(continuous=LEVELS, counted=LEVELS)
