"""Knobs: what may be tuned, and how each value maps to the unit interval and back.

A knob is plain frozen data. Its rules are checked when a `Space` gives it a name (`checks.py`), so that
every error can say which knob is meant. A knob with finitely many values counts them from 0 as levels.

Rules kept here:

* `at(0)` and `at(1)` are the first and the last value, exactly; `at` never leaves the bounds.
* `at(unit(value)) == value`, exactly for a knob with levels, to rounding for a continuous one.
* A uniform `u` gives a uniform draw on the knob's own scale (linear or logarithmic), levels included:
  each level owns a bin of the unit interval and sits in its middle.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr

from foresail.errors import nearest

Value: TypeAlias = str | int | float | bool
Criterion: TypeAlias = Value | Sequence[Value] | Mapping[str, float]
When: TypeAlias = Mapping[str, Criterion]
Touches: TypeAlias = Literal["learning", "speed", "both"]


class _Declared(Struct, frozen=True, kw_only=True):
    touches: Touches = "learning"
    when: When | None = None


class _FloatOptions(_Declared, frozen=True, kw_only=True):
    log: bool = False
    step: float | None = None
    default: float | None = None


class Float(_FloatOptions, frozen=True):
    """A real number from `low` to `high`, both included.

    Args:
        low: Smallest value.
        high: Largest value.
        log: Draw on a logarithmic scale; `low` must be above 0.
        step: Keep to `low + i * step`; it must divide the range. Not together with `log`.
        default: A sane value, used by the configuration that runs first.
        touches: What the knob changes: "learning" (curves), "speed" (seconds a step), or "both".
        when: The knob exists only where these hold, `{"optimizer": "sgd"}`; see `conditions.py`.
    """

    low: float
    high: float

    @property
    def levels(self) -> int | None:
        """How many values it can take; None where they are not countable."""
        return None if self.step is None else round((self.high - self.low) / self.step) + 1

    def level(self, index: int) -> float:
        """The value at `index`, with the rounding dust of `low + index * step` wiped off."""
        assert self.step is not None
        value = float(f"{self.low + index * self.step:.12g}")
        return float(min(max(value, self.low), self.high))

    def index(self, value: Value) -> int:
        """The level of a valid value."""
        assert self.step is not None
        return round((float(value) - self.low) / self.step)

    def at(self, u: float) -> float:
        """The value at quantile `u` in [0, 1] of the knob's scale."""
        if self.levels is not None:
            return self.level(_bin(u, self.levels))
        if u <= 0 or u >= 1:
            return float(self.low if u <= 0 else self.high)
        if self.log:
            value = math.exp(math.log(self.low) * (1 - u) + math.log(self.high) * u)
        else:
            value = self.low * (1 - u) + self.high * u
        return min(max(value, float(self.low)), float(self.high))

    def unit(self, value: Value) -> float:
        """The quantile of a valid value, in [0, 1]."""
        if self.levels is not None:
            return _middle(self.index(value), self.levels)
        if self.log:
            return _fraction(math.log(self.low), math.log(float(value)), math.log(self.high))
        return _fraction(self.low, float(value), self.high)

    def parse(self, value: object) -> float:
        """The value as this knob writes it; ValueError with the reason where it is not one of its own."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{value!r} is not a number")
        number = _inside(float(value), self.low, self.high)
        if self.step is None:
            return number
        snapped = self.level(self.index(number))
        if abs(snapped - number) > 1e-6 * self.step:
            raise ValueError(f"{value!r} is off the grid; nearest: {snapped!r}")
        return snapped


class _IntOptions(_Declared, frozen=True, kw_only=True):
    log: bool = False
    step: int | None = None
    default: int | None = None


class Int(_IntOptions, frozen=True):
    """A whole number from `low` to `high`, both included.

    Args:
        low: Smallest value.
        high: Largest value.
        log: Draw on a logarithmic scale; `low` must be at least 1.
        step: Keep to `low + i * step`; it must divide the range. Not together with `log`.
        default: A sane value, used by the configuration that runs first.
        touches: What the knob changes: "learning", "speed" or "both".
        when: The knob exists only where these hold.
    """

    low: int
    high: int

    @property
    def levels(self) -> int:
        """How many values it can take."""
        return (self.high - self.low) // (self.step or 1) + 1

    def level(self, index: int) -> int:
        """The value at `index`."""
        return self.low + index * (self.step or 1)

    def index(self, value: Value) -> int:
        """The level of a valid value."""
        return (int(value) - self.low) // (self.step or 1)

    def at(self, u: float) -> int:
        """The value at quantile `u` in [0, 1] of the knob's scale."""
        if not self.log:
            return self.level(_bin(u, self.levels))
        left, right = math.log(self.low - 0.5), math.log(self.high + 0.5)
        value = round(math.exp(left * (1 - u) + right * u))
        return min(max(value, self.low), self.high)

    def unit(self, value: Value) -> float:
        """The quantile of a valid value, inside (0, 1)."""
        if not self.log:
            return _middle(self.index(value), self.levels)
        return _fraction(math.log(self.low - 0.5), math.log(value), math.log(self.high + 0.5))  # type: ignore[arg-type]

    def parse(self, value: object) -> int:
        """The value as this knob writes it; ValueError with the reason where it is not one of its own."""
        number = _whole(value)
        _inside(number, self.low, self.high)
        if (number - self.low) % (self.step or 1):
            raise ValueError(f"{value!r} is off the grid; nearest: {self.level(self.index(number))!r}")
        return number


class _ChoiceOptions(_Declared, frozen=True, kw_only=True):
    default: Value | None = None


class Choice(_ChoiceOptions, frozen=True):
    """One of several unordered options: strings, numbers or truth values.

    Args:
        options: The options. A structure (a list of layers) is named by a string and looked up in your code.
        default: A sane option, used by the configuration that runs first.
        touches: What the knob changes: "learning", "speed" or "both".
        when: The knob exists only where these hold.
    """

    options: Sequence[Value]

    def __post_init__(self) -> None:
        if isinstance(self.options, list):
            force_setattr(self, "options", tuple(self.options))

    @property
    def levels(self) -> int:
        """How many options there are."""
        return len(self.options)

    def level(self, index: int) -> Value:
        """The option at `index`."""
        return self.options[index]

    def index(self, value: Value) -> int:
        """The place of a valid option."""
        return self.options.index(value)

    def at(self, u: float) -> Value:
        """The option whose bin of the unit interval holds `u`."""
        return self.options[_bin(u, len(self.options))]

    def unit(self, value: Value) -> float:
        """The middle of the option's bin."""
        return _middle(self.index(value), len(self.options))

    def parse(self, value: object) -> Value:
        """The option equal to `value`; ValueError with the nearest option where there is none."""
        for option in self.options:
            if option == value and isinstance(option, bool) == isinstance(value, bool):
                return option
        raise ValueError(f"{value!r} is not an option; {nearest(str(value), map(str, self.options))}")


class Flag(_Declared, frozen=True):
    """True or False.

    Args:
        default: A sane value, used by the configuration that runs first.
        touches: What the knob changes: "learning", "speed" or "both".
        when: The knob exists only where these hold.
    """

    default: bool | None = None

    @property
    def levels(self) -> int:
        """Two."""
        return 2

    def level(self, index: int) -> bool:
        """False, then True."""
        return bool(index)

    def index(self, value: Value) -> int:
        """0 for False, 1 for True."""
        return int(value)

    def at(self, u: float) -> bool:
        """False in the lower half of the unit interval, True in the upper."""
        return bool(_bin(u, 2))

    def unit(self, value: Value) -> float:
        """The middle of the value's half."""
        return _middle(int(value), 2)

    def parse(self, value: object) -> bool:
        """The value itself; ValueError where it is neither True nor False."""
        if not isinstance(value, bool):
            raise ValueError(f"{value!r} is neither true nor false")
        return value


Knob: TypeAlias = Float | Int | Choice | Flag


def _bin(u: float, levels: int) -> int:
    return min(max(int(u * levels), 0), levels - 1)


def _middle(index: int, levels: int) -> float:
    return (index + 0.5) / levels


def _fraction(low: float, value: float, high: float) -> float:
    return min(max((value - low) / (high - low), 0.0), 1.0)


def _inside(number: float, low: float, high: float) -> float:
    if not low <= number <= high:
        raise ValueError(f"{number!r} is outside {low!r} to {high!r}")
    return number


def _whole(value: object) -> int:
    if not isinstance(value, bool):
        if isinstance(value, float) and value.is_integer():
            return int(value)
        try:
            return operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            pass
    raise ValueError(f"{value!r} is not a whole number")
