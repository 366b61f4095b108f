"""What may be reported: finite types, NaN included, under names that stay the same."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Final

from foresail.errors import TrainingError, nearest

MOST_STEPS: Final = 10**15
"""Whole numbers up to here are exact as floats, with which curves are computed."""


class Metrics:
    """Checks the metrics of one training. The first report fixes the names."""

    __slots__ = ("_goal", "_names")

    def __init__(self, goal: str) -> None:
        self._goal = goal
        self._names: frozenset[str] = frozenset()

    def check(self, metrics: Mapping[str, object]) -> dict[str, float]:
        """The metrics as floats.

        Raises:
            TrainingError: the goal's metric is missing, a name was not in the first report, or a value is no number.
        """
        if not self._names:
            self._fix(metrics)
        elif not self._names.issuperset(metrics):
            new = next(name for name in metrics if name not in self._names)
            raise TrainingError(
                f"report(): {new!r} was not in the first report", do=nearest(new, self._names), allowed="same names"
            )
        elif self._goal not in metrics:
            raise self._missing(metrics)
        return {name: v if type(v) is float else _number(name, v) for name, v in metrics.items()}

    def _fix(self, metrics: Mapping[str, object]) -> None:
        if self._goal not in metrics:
            raise self._missing(metrics)
        self._names = frozenset(metrics)

    def _missing(self, metrics: Mapping[str, object]) -> TrainingError:
        given = nearest(self._goal, metrics).replace("allowed:", "reported:") if metrics else "nothing was reported"
        return TrainingError(
            f"report(): the goal's metric {self._goal!r} is missing",
            allowed=given,
            do=f"report it: run.report({self._goal}=...)",
        )


def _number(name: str, value: object) -> float:
    if isinstance(value, (str, bytes, bytearray)) or value is None:
        raise _refused(name, value)
    try:
        return float(value)  # type: ignore[arg-type]  # whatever has __float__, scalars of numpy and torch included
    except OverflowError:
        raise TrainingError(f"report(): {name} is an integer too large for a float") from None
    except (TypeError, ValueError, RuntimeError):
        raise _refused(name, value) from None


def _refused(name: str, value: object) -> TrainingError:
    shown = repr(value)
    return TrainingError(
        f"report(): {name} is {shown if len(shown) < 60 else shown[:57] + '...'} ({type(value).__name__})",
        allowed="one number, such as a float, an int or a tensor with one element",
    )


def check_step(step: object, last: int) -> int:
    """`step` as an int.

    Raises:
        TrainingError: it is no whole number from 1 to `MOST_STEPS`, or not above the `last` one.
    """
    try:
        number = operator.index(step)  # type: ignore[arg-type]
    except TypeError:
        raise TrainingError(
            f"report(): step is {step!r}", allowed="a whole number from 1", do="name the metrics: report(loss=...)"
        ) from None
    if number <= last:
        why = f"step {last} was reported before it" if last else "steps are counted from 1"
        raise TrainingError(
            f"report(): step {number}, and {why}", do="report once a step, with the number of steps completed"
        )
    if number > MOST_STEPS:
        raise TrainingError(
            "report(): step is too large a number",
            allowed=f"a whole number from 1 to {MOST_STEPS}",
            do="report once a step, with the number of steps completed",
        )
    return number
