"""What a space refuses about one knob, and in which words.

Each rule is a generator of `(what, do)` pairs; the first pair becomes the error
`Float('lr', 0.1, 0.01): low must be below high; swap them`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import TypeAlias, get_args

from foresail.errors import CallerError, nearest
from foresail.space.knobs import Choice, Flag, Float, Int, Knob, Touches

LARGEST_INT = 2**40
"""Beyond it, the middle of an integer's bin on a log scale is no longer told apart from its neighbours'
in double precision, and the way back from the unit cube would not be exact."""
MOST_STEPS = 10**9
"""A finer grid could not be told from a continuous knob once values are written with 12 digits."""

_NAME = re.compile(r"[^\W\d][\w.-]*")
_Complaints: TypeAlias = Iterator[tuple[str, str]]


def check_name(name: object) -> None:
    """Refuse a name that could not be a key, an argument and a column at once."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise CallerError(
            f"knob {name!r}: not a name",
            allowed="letters, digits, '_', '-' and '.', a letter or '_' first",
            do="rename it",
        )


def check_knob(name: str, knob: object) -> None:
    """Refuse a knob that breaks its own rules.

    Raises:
        CallerError: with the knob as its user wrote it, what is wrong and what to do.
    """
    if not isinstance(knob, Float | Int | Choice | Flag):
        raise CallerError(
            f"knob {name!r} is {knob!r}",
            allowed="Float, Int, Choice or Flag",
            do="leave a fixed value out of the space and set it in your code",
        )
    for what, do in _complaints(knob):
        raise CallerError(f"{_call(name, knob)}: {what}", do=do)


def _call(name: str, knob: Knob) -> str:
    kind = type(knob).__name__
    match knob:
        case Float() | Int():
            return f"{kind}({name!r}, {knob.low!r}, {knob.high!r})"
        case Choice():
            options = knob.options
            return f"{kind}({name!r}, {list(options) if isinstance(options, tuple) else options!r})"
        case Flag():
            return f"{kind}({name!r})"


def _complaints(knob: Knob) -> _Complaints:
    match knob:
        case Float():
            yield from _numbers(knob, "a finite number", _is_finite)
            yield from _bounds(knob)
            yield from _scale(knob, 0)
        case Int():
            yield from _numbers(knob, f"a whole number within +-2**40 ({LARGEST_INT})", _is_small_int)
            yield from _bounds(knob)
            yield from _scale(knob, 1)
        case Choice():
            yield from _options(knob.options)
        case Flag():
            pass
    yield from _touches(knob.touches)
    yield from _default(knob)


def _numbers(knob: Float | Int, wanted: str, holds: Callable[[object], bool]) -> _Complaints:
    for field in ("low", "high", "step"):
        value = getattr(knob, field)
        if not holds(value) and not (field == "step" and value is None):
            yield f"{field} must be {wanted}, not {value!r}", "give it one"
    log: object = knob.log
    if not isinstance(log, bool):
        yield f"log must be true or false, not {log!r}", "write log=True for a logarithmic scale"


def _bounds(knob: Float | Int) -> _Complaints:
    if knob.low == knob.high:
        yield "low and high are equal", "leave the knob out and set the value in your code"
    if knob.low > knob.high:
        yield "low must be below high", "swap them"
    if not math.isfinite(knob.high - knob.low):
        yield "the range is too wide for a double", "narrow it"


def _scale(knob: Float | Int, log_low: int) -> _Complaints:
    if knob.log and (knob.low <= 0 or knob.low < log_low):
        least = "at least 1" if log_low else "above 0"
        yield f"a log scale needs low {least}", "raise low or drop log"
    step = knob.step
    if step is None:
        return
    if step <= 0:
        yield f"step must be above 0, not {step!r}", "give the distance between neighbours"
    if knob.log:
        yield "log and step exclude each other", "drop one of them"
    yield from _grid(knob, step)


def _grid(knob: Float | Int, step: float) -> _Complaints:
    steps = (knob.high - knob.low) / step
    if steps > MOST_STEPS or max(abs(knob.low), abs(knob.high)) / step > MOST_STEPS:
        yield f"step {step!r} is too fine for its bounds", "drop step, or make it larger"
    whole = max(math.floor(steps + 1e-6), 1)
    if abs(steps - whole) > 1e-6:
        yield f"step {step!r} does not divide the range", f"use high={knob.low + whole * step:.12g}"


def _options(options: object) -> _Complaints:
    if not isinstance(options, tuple):
        yield f"options must be a list, not {type(options).__name__}", "write Choice(['a', 'b'])"
        return
    if not options:
        yield "there are no options", "give at least one"
    for i, option in enumerate(options):
        if option is None:
            yield "None cannot be an option (it means 'not known')", "write the string 'none'"
        if not isinstance(option, str | int | float) or (isinstance(option, float) and not math.isfinite(option)):
            yield (
                f"option {option!r} is neither text, a finite number nor a truth value",
                ("name it by a string and look it up in your code"),
            )
        if option in options[:i]:
            yield f"option {option!r} equals an earlier one", "drop it"


def _touches(touches: object) -> _Complaints:
    if touches not in get_args(Touches):
        yield f"touches must not be {touches!r}", nearest(str(touches), get_args(Touches))


def _default(knob: Knob) -> _Complaints:
    if knob.default is None:
        return
    try:
        knob.parse(knob.default)
    except ValueError as wrong:
        yield f"default {wrong}", "choose one that the knob can take"


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_small_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST_INT
