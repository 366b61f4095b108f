"""How numbers, times, configurations and goals are written for people, everywhere the same."""

from __future__ import annotations

import math
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from foresail.core.goal import Goal
from foresail.core.view import View
from foresail.core.words import Scalar
from foresail.space import Choice, Flag, Float, Int, Knob

_SIZES = ("B", "kB", "MB", "GB", "TB")


def number(value: float | None) -> str:
    """Six significant digits.

    >>> number(0.98512345), number(None), number(1e-7)
    ('0.985123', '-', '1e-07')
    """
    return "-" if value is None else f"{value:.6g}"


def duration(seconds: float | None) -> str:
    """Two units at most.

    >>> duration(0.42), duration(75), duration(7260), duration(200000)
    ('0.4 s', '1 min 15 s', '2 h 1 min', '2 d 7 h')
    """
    if seconds is None or not math.isfinite(seconds):
        return "-"
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for unit_s, unit, part_s, part in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= unit_s:
            rest = whole % unit_s // part_s
            return f"{whole // unit_s} {unit}" + (f" {rest} {part}" if rest else "")
    return f"{whole} s"


def size(count: float) -> str:
    """Bytes in the unit that fits.

    >>> size(512), size(10_000_000_000)
    ('512 B', '10 GB')
    """
    for unit in _SIZES:
        if count < 1000 or unit == _SIZES[-1]:
            return f"{count:.3g} {unit}"
        count /= 1000
    raise AssertionError(count)


def config(values: Mapping[str, Scalar]) -> str:
    """Knobs in the order of the space.

    >>> config({"lr": 0.01, "optimizer": "adam w", "nesterov": True})
    "lr=0.01 optimizer='adam w' nesterov=true"
    """
    return " ".join(f"{name}={_value(value)}" for name, value in values.items())


def _value(value: Scalar) -> str:
    match value:
        case bool():
            return str(value).lower()
        case float():
            return number(value)
        case str():
            return repr(value) if " " in value or not value else value
        case _:
            return str(value)


def knob(kind: Knob) -> tuple[str, str]:
    """What a knob may be, and on which scale.

    >>> knob(Float(1e-4, 1.0, log=True)), knob(Flag())
    (('0.0001 to 1', 'logarithmic'), ('false, true', 'options'))
    """
    match kind:
        case Choice(options=options):
            return ", ".join(map(str, options)), "options"
        case Flag():
            return "false, true", "options"
        case Float() | Int():
            step = f" in steps of {kind.step:g}" if kind.step else ""
            return f"{kind.low:g} to {kind.high:g}{step}", "logarithmic" if kind.log else "linear"


def goal(wanted: Goal) -> str:
    """The goal in a sentence.

    >>> from foresail.core.goal import maximize
    >>> goal(maximize("accuracy", target=0.985, within="20 min"))
    'maximize accuracy to 0.985 within 20 min'
    """
    words = [f"{wanted.mode}imize {wanted.metric}"]
    if wanted.target is not None:
        words.append(f"to {number(wanted.target)}")
    if wanted.within_s is not None:
        words.append(f"within {duration(wanted.within_s)}")
    if wanted.trials is not None:
        words.append(f"in at most {wanted.trials} trials")
    if wanted.device_s is not None:
        words.append(f"with at most {duration(wanted.device_s)} of device time")
    return " ".join(words)


def best(view: View) -> str:
    """The best so far and how near the goal is, in one line."""
    if view.best is None:
        return "no result yet"
    trial, step, value = view.best
    wanted = view.spec.goal
    text = f"{wanted.metric} = {number(value)} by trial {trial} at step {step}"
    if wanted.target is None:
        return text
    way = "target reached" if wanted.reached(value) else f"{abs(wanted.target - value):.3g} to go"
    return f"{text} ({way})"


def count(n: int, noun: str) -> str:
    """A number and its noun.

    >>> count(1, "trial"), count(3, "trial")
    ('1 trial', '3 trials')
    """
    return f"{n} {noun}" + ("" if n == 1 else "s")


def shell(path: Path) -> str:
    """A path as a shell takes it: quoted where need be, short where it lies in the current folder."""
    absolute, here = path.absolute(), Path.cwd()
    return shlex.quote(str(absolute.relative_to(here) if absolute.is_relative_to(here) else path))


def program() -> str:
    """How `foresail` is called from a shell: by its name where PATH has it, else by the place where it is installed."""
    installed = Path(sys.executable).with_name("foresail")
    return shell(installed) if shutil.which("foresail") is None and installed.exists() else "foresail"
