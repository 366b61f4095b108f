"""A space: knobs by name, when they exist, and which combinations are forbidden.

A configuration is a plain `dict` from the names of the active knobs to their values. A knob is active
where its `when` holds; conditions may chain (a parent may have parents) and never form a circle.

Two coordinate systems lead to the unit cube, with K knobs:

* `point(quantiles_K)` takes one quantile a knob. It serves searches: uniform in, uniform out.
* `to_unit` / `from_unit` use feature columns, named by `columns`, for models that measure distances:
  one column for a Float, Int or Flag (its quantile), one column an option for a Choice with any number of
  options (one-hot, because options have no order), and, for a knob with a condition, one more column
  that is 1 where it is active and 0 where it is not. An inactive knob stands at its default, without one
  in the middle (a Choice: the same share for each option), so that it adds no distance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from json import JSONEncoder
from types import MappingProxyType
from typing import TypeAlias

from foresail.errors import CallerError, nearest
from foresail.space import codec
from foresail.space.checks import check_knob, check_name
from foresail.space.conditions import AllOf, Between, OneOf, all_of
from foresail.space.counting import axis_of, runs_of
from foresail.space.knobs import Choice, Knob, Value, When

Config: TypeAlias = dict[str, Value]

MOST_CASES = 20_000
"""`size()` gives up where conditions and forbidden combinations make more separate cases than this."""

_write = JSONEncoder(sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


class Space:
    """What may be tuned, checked when it is made.

    Args:
        forbid: Combinations that are never proposed, each a mapping of criteria that hold together:
            `[{"optimizer": "sgd", "layers": (3, 4)}]`. See `conditions.py` for the forms.
        **knobs: Float, Int, Choice or Flag by name. `Space.of({...})` takes names that are no keywords.

    Raises:
        CallerError: for the first thing that is wrong, with the knob's name and what to do.

    >>> from foresail.space import Choice, Float
    >>> space = Space(optimizer=Choice(["sgd", "adam"]), momentum=Float(0, 0.99, when={"optimizer": "sgd"}))
    >>> space.check({"optimizer": "adam"})
    {'optimizer': 'adam'}
    >>> space.point([0.0, 0.5])
    {'optimizer': 'sgd', 'momentum': 0.495}
    """

    __slots__ = ("_columns", "_forbid", "_forbidden", "_knobs", "_order", "_when")

    def __init__(self, /, *, forbid: Sequence[When] = (), **knobs: Knob) -> None:
        self._build(knobs, forbid)

    @classmethod
    def of(cls, knobs: Mapping[str, Knob], *, forbid: Sequence[When] = ()) -> Space:
        """The same from a mapping, for names that cannot be keywords (`forbid`, `weight-decay`)."""
        space = cls.__new__(cls)
        space._build(knobs, forbid)
        return space

    def _build(self, knobs: Mapping[str, Knob], forbid: Sequence[When]) -> None:
        if not knobs:
            raise CallerError("the space has no knobs", do="name at least one, Space(lr=Float(1e-4, 1.0, log=True))")
        for name, knob in knobs.items():
            check_name(name)
            check_knob(name, knob)
        self._knobs = MappingProxyType(dict(knobs))
        self._when = {
            name: all_of(f"knob {name!r}: when", knob.when, knobs)
            for name, knob in knobs.items()
            if knob.when is not None
        }
        self._order = _parents_first(knobs, self._when)
        self._forbid = _plain_forbid(forbid)
        self._forbidden = tuple(all_of(f"forbid[{i}]", spec, knobs) for i, spec in enumerate(self._forbid))
        self._columns = tuple(column for name in knobs for column in _columns(name, knobs[name]))
        self._check_allows_something()

    def _check_allows_something(self) -> None:
        if self.size() == 0:
            raise CallerError("every configuration is forbidden", do="drop a combination from forbid")
        default = self.default()
        if default is not None and (rule := self.forbidding(default)):
            raise CallerError(f"the default configuration is forbidden: {rule}", do="change a default")

    @property
    def knobs(self) -> Mapping[str, Knob]:
        """The knobs by name, in the order of their declaration."""
        return self._knobs

    @property
    def forbid(self) -> tuple[When, ...]:
        """The forbidden combinations, as declared."""
        return self._forbid

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the feature columns of `to_unit`: "lr", "optimizer=sgd", "momentum:active"."""
        return self._columns

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(tuple(self._knobs))

    def __repr__(self) -> str:
        inside = [f"{name}={knob!r}" for name, knob in self._knobs.items()]
        return f"Space({', '.join(inside + ([f'forbid={list(self._forbid)!r}'] if self._forbid else []))})"

    # --- configurations

    def check(self, config: Mapping[str, object]) -> Config:
        """The configuration as the space writes it: active knobs in order, each value of its own type.

        Raises:
            CallerError: for an unknown, missing or inactive knob, a value outside, a forbidden combination.
        """
        for name in config:
            if name not in self._knobs:
                raise CallerError(f"configuration has {name!r}, which is no knob", do=nearest(name, self._knobs))
        values: Config = {}
        for name in self._order:
            if self._is_active(name, values):
                values[name] = self._parse(name, config)
            elif name in config:
                raise CallerError(
                    f"configuration has {name!r}, which exists only where {self._when[name]}",
                    do="leave it out",
                )
        if rule := self.forbidding(values):
            raise CallerError(f"configuration is forbidden: {rule}", do="change one of these values")
        return self._in_order(values)

    def _parse(self, name: str, config: Mapping[str, object]) -> Value:
        if name not in config:
            raise CallerError(f"configuration lacks {name!r}", do="give it a value")
        try:
            return self._knobs[name].parse(config[name])
        except ValueError as wrong:
            raise CallerError(f"configuration {name!r}: {wrong}") from None

    def forbidding(self, config: Mapping[str, Value]) -> AllOf | None:
        """The forbidden combination that a configuration meets, or None."""
        return next((rule for rule in self._forbidden if rule.holds(config)), None)

    def default(self) -> Config | None:
        """The configuration of all defaults; None unless every active knob has one."""
        values: Config = {}
        for name in self._order:
            if self._is_active(name, values):
                knob = self._knobs[name]
                if knob.default is None:
                    return None
                values[name] = knob.parse(knob.default)
        return self._in_order(values)

    def canonical(self, config: Mapping[str, object]) -> str:
        """One text for equal configurations: JSON with sorted keys, active knobs only, floats by `repr`.

        Raises:
            CallerError: as `check`.
        """
        return _write(self.check(config))

    # --- coordinates

    def point(self, quantiles_K: Sequence[float]) -> Config:
        """The configuration at one quantile in [0, 1] a knob, in the order of declaration.

        Quantiles of inactive knobs are not looked at. The result may be forbidden: see `forbidding`.

        Raises:
            CallerError: for a wrong number of quantiles, or one that is not a number.
        """
        _check_length("quantiles", quantiles_K, len(self._knobs))
        at = dict(zip(self._knobs, quantiles_K, strict=True))
        return self.build(lambda name, knob: knob.at(at[name]))

    def build(self, pick: Callable[[str, Knob], Value]) -> Config:
        """The configuration whose active knobs, parents first, take the values that `pick` gives."""
        values: Config = {}
        for name in self._order:
            if self._is_active(name, values):
                values[name] = pick(name, self._knobs[name])
        return self._in_order(values)

    def quantiles(self, config: Mapping[str, Value]) -> list[float]:
        """One quantile a knob for a valid configuration, the way back of `point`.

        An inactive knob stands at its default, without one at 0.5.
        """
        return [self._quantile(name, config.get(name, knob.default)) for name, knob in self._knobs.items()]

    def _quantile(self, name: str, value: Value | None) -> float:
        return 0.5 if value is None else self._knobs[name].unit(value)

    def to_unit(self, config: Mapping[str, object]) -> list[float]:
        """The feature columns of a configuration, each in [0, 1]; as many as `columns`.

        Raises:
            CallerError: as `check`.
        """
        values = self.check(config)
        unit: list[float] = []
        for name, knob in self._knobs.items():
            value = values.get(name, knob.default)
            unit += _one_hot(knob, value) if isinstance(knob, Choice) else [self._quantile(name, value)]
            if name in self._when:
                unit.append(float(name in values))
        return unit

    def from_unit(self, u: Sequence[float]) -> Config:
        """The configuration nearest to these feature columns: the way back of `to_unit`.

        Activity is decided by the conditions, not read from its columns; a Choice takes the option of its
        highest column. The result may be forbidden: see `forbidding`.

        Raises:
            CallerError: for a wrong number of columns, or one that is not a number.
        """
        _check_length("columns", u, len(self._columns))
        quantiles: list[float] = []
        start = 0
        for name, knob in self._knobs.items():
            width = knob.levels if isinstance(knob, Choice) else 1
            block = u[start : start + width]
            quantiles.append(_middle_of_highest(block) if isinstance(knob, Choice) else block[0])
            start += width + (name in self._when)
        return self.point(quantiles)

    # --- counting

    def size(self) -> int | None:
        """How many configurations are allowed; None where a continuous knob makes them uncountable.

        Also None where conditions and forbidden combinations make more cases than are worth counting.
        """
        if any(knob.levels is None for knob in self._knobs.values()):
            return None
        tests = self._tests()
        runs = {name: runs_of(knob, tests.get(name, ())) for name, knob in self._knobs.items()}
        if math.prod(len(r) for r in runs.values()) > MOST_CASES:
            return None
        return self._count(self._order, runs, {})

    def _count(self, order: Sequence[str], runs: Mapping[str, list[tuple[Value, int]]], values: Config) -> int:
        if not order:
            return int(self.forbidding(values) is None)
        name, rest = order[0], order[1:]
        if not self._is_active(name, values):
            return self._count(rest, runs, values)
        return sum(many * self._count(rest, runs, {**values, name: value}) for value, many in runs[name])

    def _tests(self) -> dict[str, list[OneOf | Between]]:
        tests: dict[str, list[OneOf | Between]] = {}
        for rule in (*self._when.values(), *self._forbidden):
            for name, test in rule.criteria:
                tests.setdefault(name, []).append(test)
        return tests

    def grid(self, *, continuous: int, counted: int | None = None) -> Iterator[Config]:
        """Every allowed configuration once, first knob slowest, on a grid.

        Args:
            continuous: Values of a continuous knob, evenly on its scale, both ends included.
            counted: At most so many values of an Int or a stepped Float; None for all of them.
        """
        axes = {name: axis_of(knob, continuous, counted) for name, knob in self._knobs.items()}
        yield from self._walk(self._order, axes, {})

    def _walk(self, order: Sequence[str], axes: Mapping[str, Sequence[Value]], values: Config) -> Iterator[Config]:
        while order and not self._is_active(order[0], values):
            order = order[1:]
        if not order:
            if self.forbidding(values) is None:
                yield self._in_order(values)
            return
        for value in axes[order[0]]:
            yield from self._walk(order[1:], axes, {**values, order[0]: value})

    # --- storage

    def to_dict(self) -> dict[str, object]:
        """The space as plain data for JSON: `{"knobs": {name: {"type": ...}}, "forbid": [...]}`."""
        return codec.to_dict(self._knobs, self._forbid)

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Space:
        """A space from `to_dict`, or from the short form of a TOML table, knobs beside `forbid`:

        `lr = {type = "float", low = 1e-4, high = 1.0, log = true}`

        Raises:
            CallerError: with the path of the first wrong key, or as `Space`.
        """
        knobs, forbid = codec.from_dict(data)
        return cls.of(knobs, forbid=forbid)

    # --- inside

    def _is_active(self, name: str, values: Mapping[str, Value]) -> bool:
        return name not in self._when or self._when[name].holds(values)

    def _in_order(self, values: Config) -> Config:
        return {name: values[name] for name in self._knobs if name in values}


def _parents_first(knobs: Mapping[str, Knob], when: Mapping[str, AllOf]) -> tuple[str, ...]:
    graph = {name: when[name].names if name in when else () for name in knobs}
    try:
        return tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        circle = " -> ".join(error.args[1])
        raise CallerError(f"the conditions form a circle: {circle}", do="drop one of them") from None


def _plain_forbid(forbid: Sequence[When]) -> tuple[When, ...]:
    if isinstance(forbid, str | Mapping) or not isinstance(forbid, Sequence):
        raise CallerError(
            f"forbid is {forbid!r}",
            allowed="a list of mappings",
            do="write forbid=[{...}], or Space.of({...}) for a knob of that name",
        )
    return tuple(forbid)


def _columns(name: str, knob: Knob) -> list[str]:
    values = [f"{name}={option}" for option in knob.options] if isinstance(knob, Choice) else [name]
    return [*values, f"{name}:active"] if knob.when is not None else values


def _one_hot(knob: Choice, value: Value | None) -> list[float]:
    if value is None:
        return [1 / knob.levels] * knob.levels
    hot = knob.index(value)
    return [float(i == hot) for i in range(knob.levels)]


def _middle_of_highest(block: Sequence[float]) -> float:
    return (max(range(len(block)), key=block.__getitem__) + 0.5) / len(block)


def _check_length(what: str, u: Sequence[float], wanted: int) -> None:
    if len(u) != wanted:
        raise CallerError(f"{len(u)} {what} for a space of {wanted}", do=f"give {wanted}")
    for i, value in enumerate(u):
        if not math.isfinite(value):
            raise CallerError(f"{what}[{i}] is {value!r}", allowed="numbers from 0 to 1")
