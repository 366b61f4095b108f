"""Levels of a knob by the stretch, so that counting a space need not visit every value of a wide Int."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from foresail.space.conditions import Between, OneOf
from foresail.space.knobs import Choice, Float, Int, Knob, Value


def runs_of(knob: Knob, tests: Sequence[OneOf | Between]) -> list[tuple[Value, int]]:
    """Stretches of levels over which no test changes: the first value of each, and how many there are."""
    assert knob.levels is not None
    cuts = {0, knob.levels}
    for test in tests:
        for first, last in _stretches(knob, test):
            cuts |= {first, last}
    edges = sorted(cuts)
    return [(knob.level(a), b - a) for a, b in pairwise(edges)]


def _stretches(knob: Knob, test: OneOf | Between) -> Iterator[tuple[int, int]]:
    if isinstance(test, OneOf):
        for value in test.values:
            yield knob.index(value), knob.index(value) + 1
        return
    assert isinstance(knob, Float | Int)
    step = knob.step or 1
    first = max(math.ceil((max(test.at_least, knob.low) - knob.low) / step - 1e-9), 0)
    last = math.floor((min(test.at_most, knob.high) - knob.low) / step + 1e-9)
    yield first, max(last + 1, first)


def axis_of(knob: Knob, continuous: int, counted: int | None) -> Sequence[Value]:
    """Values of one knob for a grid, evenly on its scale: see `Space.grid`."""
    levels = knob.levels
    if levels is not None and (counted is None or levels <= counted or isinstance(knob, Choice)):
        return [knob.level(i) for i in range(levels)]
    many = continuous if levels is None else counted
    assert many is not None
    values = [knob.at(i / (many - 1)) for i in range(many)] if many > 1 else [knob.at(0.5)]
    return list(dict.fromkeys(values))
