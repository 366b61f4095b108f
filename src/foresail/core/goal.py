"""The goal of a study: metric and direction, said once, and when to stop.

A goal ends its study at whichever comes first of its target and its budgets. A target alone is allowed
and has no bound: the study then runs until the target is reached, the space is exhausted or somebody
stops it (`is_bounded` tells; a command line may warn). A goal with neither is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from foresail.errors import CallerError, nearest

Mode: TypeAlias = Literal["max", "min"]
Duration: TypeAlias = float | str
"""Seconds as a number, or text with units: "90 s", "20 min", "1.5 h", "1 h 30 min", "2 days"."""

_UNITS_S: Mapping[str, float] = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
    **dict.fromkeys(("w", "week", "weeks"), 604800.0),
}
_SHOWN_UNITS = ("s", "min", "h", "days", "weeks")
_PART = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([^\W\d]+)\s*")
_METRIC = re.compile(r"[^\W\d][\w./@-]*")
_TABLE_KEYS = ("maximize", "minimize", "target", "within", "trials", "device_time")


class Goal(Struct, frozen=True):
    """What a study is for, and when it ends.

    Args:
        metric: The name under which the training function reports it.
        mode: "max" where higher is better, "min" where lower is; there is no default.
        target: The study ends when a trial reaches this value.
        within_s: The study ends so many seconds after its start.
        trials: The study ends when so many trials have ended.
        device_s: The study ends when its trials have held devices for so many seconds, summed.

    Raises:
        CallerError: for a value that cannot be meant, or a goal without any end.
    """

    metric: str
    mode: Mode
    target: float | None = None
    within_s: float | None = None
    trials: int | None = None
    device_s: float | None = None

    def __post_init__(self) -> None:
        _check_metric(self.metric)
        if self.mode not in ("max", "min"):
            raise CallerError(f"goal mode {self.mode!r}", allowed="max or min", do="say which way is better")
        _check_number("target", self.target)
        _check_positive("within", self.within_s)
        _check_positive("device_time", self.device_s)
        _check_trials(self.trials)
        if self.target is None and not self.is_bounded:
            raise CallerError(
                f"goal {self.metric!r} has no end",
                allowed="target, within, trials, device_time, or several",
                do="give one, within='20 min'",
            )

    @property
    def is_bounded(self) -> bool:
        """Whether the study ends even if its target is never reached."""
        return any(budget is not None for budget in (self.within_s, self.trials, self.device_s))

    def better(self, a: float | None, b: float | None) -> bool:
        """Whether `a` is strictly better than `b`.

        None, NaN and the infinities are no results: never better, and worse than any number.
        """
        if a is None or not math.isfinite(a):
            return False
        if b is None or not math.isfinite(b):
            return True
        return a > b if self.mode == "max" else a < b

    def reached(self, value: float | None) -> bool:
        """Whether `value` is a finite number at the target or beyond; False without a target."""
        if self.target is None or value is None or not math.isfinite(value):
            return False
        return value >= self.target if self.mode == "max" else value <= self.target

    @classmethod
    def from_dict(cls, table: Mapping[str, object]) -> Goal:
        """A goal from a TOML table: `{maximize = "accuracy", target = 0.985, within = "20 min"}`.

        Raises:
            CallerError: for an unknown key, none or two directions, or as `Goal`.
        """
        for key in table:
            if key not in _TABLE_KEYS:
                raise CallerError(f"goal.{key} is unknown", do=nearest(key, _TABLE_KEYS))
        ways = [key for key in ("maximize", "minimize") if key in table]
        if len(ways) != 1:
            raise CallerError(
                f"goal has {'both maximize and minimize' if ways else 'no direction'}",
                do='write maximize = "accuracy", or minimize = "loss"',
            )
        rest = {key: value for key, value in table.items() if key != ways[0]}
        make = maximize if ways[0] == "maximize" else minimize
        return make(table[ways[0]], **rest)  # type: ignore[arg-type]


def maximize(
    metric: str,
    *,
    target: float | None = None,
    within: Duration | None = None,
    trials: int | None = None,
    device_time: Duration | None = None,
) -> Goal:
    """The goal of a metric where higher is better.

    Args:
        metric: The name under which the training function reports it.
        target: End when a trial reaches this value.
        within: End so long after the start: seconds, or "20 min".
        trials: End after so many trials.
        device_time: End when trials have held devices for so long, summed: seconds, or "8 h".

    Raises:
        CallerError: for a value that cannot be meant, or a goal without any end.

    >>> maximize("accuracy", target=0.985, within="20 min").within_s
    1200.0
    """
    return Goal(metric, "max", target, _seconds("within", within), trials, _seconds("device_time", device_time))


def minimize(
    metric: str,
    *,
    target: float | None = None,
    within: Duration | None = None,
    trials: int | None = None,
    device_time: Duration | None = None,
) -> Goal:
    """The goal of a metric where lower is better; the arguments and errors are those of `maximize`."""
    return Goal(metric, "min", target, _seconds("within", within), trials, _seconds("device_time", device_time))


def seconds(duration: Duration) -> float:
    """A duration in seconds.

    Raises:
        CallerError: for text that is no duration, an unknown unit, or a number that is not above 0.

    >>> seconds("1 h 30 min"), seconds("2 days"), seconds(90)
    (5400.0, 172800.0, 90.0)
    """
    value = _seconds("duration", duration)
    assert value is not None
    return value


def _seconds(name: str, duration: Duration | None) -> float | None:
    if isinstance(duration, str):
        return _parse(name, duration)
    _check_positive(name, duration)
    return None if duration is None else float(duration)


def _parse(name: str, text: str) -> float:
    total, end = 0.0, 0
    while end < len(text) and (part := _PART.match(text, end)):
        unit = part[2].lower()
        if unit not in _UNITS_S:
            raise CallerError(f"{name} {text!r}: unknown unit {part[2]!r}", do=nearest(unit, _SHOWN_UNITS))
        total, end = total + float(part[1]) * _UNITS_S[unit], part.end()
    if end < len(text) or not text.strip():
        raise CallerError(
            f"{name} {text!r} is no duration",
            allowed="a number and a unit",
            do="write '90 s', '20 min' or '1.5 h'",
        )
    _check_positive(name, total)
    return total


def _check_metric(metric: object) -> None:
    if not isinstance(metric, str) or not _METRIC.fullmatch(metric):
        raise CallerError(
            f"metric {metric!r}: not a name",
            allowed="letters, digits and '_./@-', a letter or '_' first",
            do="report it under such a name",
        )


def _check_number(name: str, value: object) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise CallerError(f"{name} {value!r}: must be a finite number", do=f"give a number, or leave {name} out")


def _check_positive(name: str, value: object) -> None:
    _check_number(name, value)
    if isinstance(value, int | float) and value <= 0:
        raise CallerError(f"{name} {value!r}: must be above 0", do=f"give a longer one, or leave {name} out")


def _check_trials(trials: object) -> None:
    if trials is None:
        return
    if isinstance(trials, bool) or not isinstance(trials, int) or trials < 1:
        raise CallerError(f"trials {trials!r}: must be a whole number above 0", do="give one, or leave trials out")
