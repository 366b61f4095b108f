"""Conditions as data: when a knob exists, and which combinations are forbidden.

One criterion speaks about the value of one other knob, in one of three forms, the same in Python, JSON
and TOML:

* a value: `"sgd"`, equality;
* a list of values: `["sgd", "rmsprop"]`, membership;
* bounds, for a numeric knob: `{"at_least": 0.1}`, `{"at_most": 4}`, or both.

A criterion about a knob that does not exist in a configuration does not hold there. Several criteria in
one mapping hold together (and); several mappings in `forbid` each forbid on their own (or).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from foresail.errors import CallerError, nearest
from foresail.space.knobs import Float, Int, Knob, Value


class OneOf(Struct, frozen=True):
    """Holds for a value among `values`."""

    values: tuple[Value, ...]

    def holds(self, value: Value) -> bool:
        """Whether `value` is one of them."""
        return value in self.values

    def __str__(self) -> str:
        return f"= {self.values[0]!r}" if len(self.values) == 1 else f"in {list(self.values)!r}"


class Between(Struct, frozen=True):
    """Holds for a number from `at_least` to `at_most`."""

    at_least: float = -math.inf
    at_most: float = math.inf

    def holds(self, value: Value) -> bool:
        """Whether `value` lies between."""
        return self.at_least <= value <= self.at_most  # type: ignore[operator]

    def __str__(self) -> str:
        low = f">= {self.at_least!r}" if self.at_least > -math.inf else ""
        high = f"<= {self.at_most!r}" if self.at_most < math.inf else ""
        return " and ".join(part for part in (low, high) if part)


class AllOf(Struct, frozen=True):
    """Criteria about several knobs that hold together."""

    criteria: tuple[tuple[str, OneOf | Between], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The knobs that it speaks about."""
        return tuple(name for name, _ in self.criteria)

    def holds(self, config: Mapping[str, Value]) -> bool:
        """Whether every criterion holds in `config`; an absent knob holds nothing."""
        return all(name in config and test.holds(config[name]) for name, test in self.criteria)

    def __str__(self) -> str:
        return " and ".join(f"{name} {test}" for name, test in self.criteria)


def all_of(where: str, spec: object, knobs: Mapping[str, Knob]) -> AllOf:
    """Read a mapping of criteria, checked against the knobs that it speaks about.

    Args:
        where: How an error names the place, "knob 'momentum': when".
        spec: The mapping as the user wrote it.
        knobs: All knobs of the space.

    Raises:
        CallerError: for an unknown knob, a value that it cannot take, or an unknown form.
    """
    if not isinstance(spec, Mapping) or not spec:
        raise CallerError(
            f"{where} is {spec!r}",
            allowed="a mapping from knob to value, list of values or bounds",
            do="write {'optimizer': 'sgd'}",
        )
    for name in spec:
        if name not in knobs:
            raise CallerError(f"{where} names {name!r}, which is no knob", do=nearest(name, knobs))
    return AllOf(tuple((name, _test(f"{where} {name}", c, knobs[name])) for name, c in spec.items()))


def _test(where: str, criterion: object, knob: Knob) -> OneOf | Between:
    if isinstance(criterion, Mapping):
        return _between(where, criterion, knob)
    many = isinstance(criterion, Sequence) and not isinstance(criterion, str)
    values = tuple(criterion) if many else (criterion,)  # type: ignore[arg-type]
    if not values:
        raise CallerError(f"{where} is an empty list", do="list at least one value")
    if isinstance(knob, Float) and knob.step is None:
        raise CallerError(
            f"{where} = {criterion!r}: a continuous knob hardly ever equals a value",
            do="write bounds, {'at_least': 0.1}, or give the knob a step",
        )
    try:
        return OneOf(tuple(knob.parse(value) for value in values))
    except ValueError as wrong:
        raise CallerError(f"{where} can never hold: {wrong}") from None


def _between(where: str, bounds: Mapping[str, object], knob: Knob) -> Between:
    if not isinstance(knob, Float | Int):
        raise CallerError(f"{where}: bounds are for Float and Int", do="write a value or a list of values")
    if not bounds:
        raise CallerError(f"{where}: the bounds are empty", do="write at_least, at_most, or both")
    for key, bound in bounds.items():
        if key not in ("at_least", "at_most"):
            raise CallerError(f"{where}: unknown bound {key!r}", do=nearest(key, ("at_least", "at_most")))
        if isinstance(bound, bool) or not isinstance(bound, int | float) or not math.isfinite(bound):
            raise CallerError(f"{where}: {key} must be a finite number, not {bound!r}")
    test = Between(**bounds)  # type: ignore[arg-type]
    if max(test.at_least, knob.low) > min(test.at_most, knob.high):
        raise CallerError(
            f"{where} can never hold: no value is {test}",
            allowed=f"{knob.low!r} to {knob.high!r}",
        )
    return test
