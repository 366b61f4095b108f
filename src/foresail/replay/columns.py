"""Columns of a trace's configurations as knobs of a space.

A table says less than a space does. Bounds are widened to what the rows hold, since tables round; where a number does
not apply in some rows, its knob exists only where a flag `<name>_given` says so, and text has an option `none`; rows
that are equal are told apart by a knob `repeat`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foresail.core.words import Config, Scalar
from foresail.errors import nearest
from foresail.space import Choice, Flag, Float, Int, Knob, Space

NONE = "none"
GIVEN = "_given"
REPEAT = "repeat"
_ROUNDING = 1e-5
"""Bounds hold to this share: tables write ten digits or fewer."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `gaps`: it is empty in some rows."""

    name: str
    declared: Mapping[str, Any]
    gaps: bool

    def parse(self, text: str) -> Iterator[tuple[str, Scalar]]:
        """What the cell adds to its configuration.

        Raises:
            ValueError: the value is not of the declared type, not among its choices, or outside its bounds.
        """
        if self.declared["type"] == "categorical":
            yield self.name, self._option(text)
            return
        if self.gaps:
            yield self.name + GIVEN, bool(text)
        if text:
            yield self.name, self._number(text)

    def _option(self, text: str) -> str:
        choices = self.declared.get("choices")
        if text and choices is not None and text not in map(str, choices):
            raise ValueError(f"{self.name} is {text!r}; {nearest(text, choices)}")
        return text or NONE

    def _number(self, text: str) -> float | int:
        whole = self.declared["type"] == "int"
        try:
            value = int(text) if whole else float(text)
        except ValueError:
            raise ValueError(f"{self.name} is {text!r}; allowed: a {'whole ' if whole else ''}number") from None
        low, high = self.declared["low"], self.declared["high"]
        slack = _ROUNDING * max(abs(low), abs(high))
        if not low - slack <= value <= high + slack:
            raise ValueError(f"{self.name} is {text}; allowed: {low} to {high}")
        return value

    def knobs(self, rows: Sequence[Config]) -> Iterator[tuple[str, Knob]]:
        """The knobs of this column, over all rows."""
        values = [row[self.name] for row in rows if self.name in row]
        if self.declared["type"] == "categorical":
            yield self.name, Choice(sorted({str(value) for value in values}))
            return
        if self.gaps:
            yield self.name + GIVEN, Flag()
        if values:
            yield self.name, self._number_knob([float(value) for value in values])

    def _number_knob(self, values: Sequence[float]) -> Knob:
        whole = self.declared["type"] == "int"
        low, high = min(self.declared["low"], *values), max(self.declared["high"], *values)
        when = {self.name + GIVEN: True} if self.gaps else None
        log = bool(self.declared.get("log")) and low > 0
        if low == high:
            return Choice([int(low) if whole else low], when=when)
        if whole:
            return Int(int(low), int(high), log=log, when=when)
        return Float(float(low), float(high), log=log, when=when)


def columns_of(
    names: Sequence[str], declared: Mapping[str, Mapping[str, Any]], rows: Iterable[Sequence[str]]
) -> tuple[Column, ...]:
    """The columns of a table in its order."""
    gaps = [False] * len(names)
    for row in rows:
        for at, text in enumerate(row):
            gaps[at] |= not text
    return tuple(Column(name, declared[name], gap) for name, gap in zip(names, gaps, strict=True))


def space_of(columns: Sequence[Column], rows: Sequence[Config]) -> Space:
    """The space that holds every row; `told_apart` rows."""
    knobs = {name: knob for column in columns for name, knob in column.knobs(rows)}
    most = max((int(row[REPEAT]) for row in rows if REPEAT in row), default=0)
    return Space.of({**knobs, REPEAT: Int(0, most)} if most else knobs)


def told_apart(rows: Iterable[Config]) -> tuple[Config, ...]:
    """The rows, with a number where several are equal."""
    rows = tuple(dict(row) for row in rows)
    keys = [tuple(row.items()) for row in rows]
    if len(set(keys)) == len(keys):
        return rows
    times: Counter[tuple[tuple[str, Scalar], ...]] = Counter()
    found = []
    for row, key in zip(rows, keys, strict=True):
        found.append({**row, REPEAT: times[key]})
        times[key] += 1
    return tuple(found)
