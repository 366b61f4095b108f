"""A starter study for a script: its options with ranges around their defaults, by the customs of their names.

The guesses are meant to be read and changed; each stands in the file with the default that it was made from.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foresail.api.script_options import Option, Script

_NOT_TUNED = """
seed epochs epoch steps iters iterations max_epochs max_steps workers jobs threads device devices gpu gpus cuda cpu
data dataset datadir path dir folder file root output out log logging logger save load resume checkpoint ckpt port
host addr rank world verbose debug interval every freq frequency name project tag wandb run patience split test eval
val valid download backend limit print profile config version local node nodes master url
"""
_NOT_WORDS = frozenset(_NOT_TUNED.split())
_MAXIMIZED = re.compile(r"acc|auc|f1|score|reward|return|precision|recall|iou|map|bleu|rouge|r2")


@dataclass(frozen=True)
class Guess:
    """A knob as a TOML value, and what it was made from."""

    name: str
    toml: str
    why: str


@dataclass(frozen=True)
class Starter:
    """`text`: the study file. `knobs`: what is tuned; `left_out`: options that are not, with the reason; `needed`:
    those of them without which the script does not run."""

    text: str
    knobs: tuple[Guess, ...]
    left_out: dict[str, str]
    needed: tuple[str, ...]
    metric: str
    reports: bool


def starter(script: Script, file: Path) -> Starter:
    """A study file for `script`, to lie at `file`."""
    knobs, left_out = [], {}
    for option in script.options:
        guess = _guess(option)
        if isinstance(guess, Guess):
            knobs.append(guess)
        else:
            left_out[option.name] = guess
    needed = tuple(option.name for option in script.options if option.required and option.name in left_out)
    mode, metric = _goal(script)
    text = "\n".join(_lines(script, file, knobs, left_out, f"{mode} = {json.dumps(metric)}"))
    return Starter(text + "\n", tuple(knobs), left_out, needed, metric, bool(script.metrics))


def _lines(script: Script, file: Path, knobs: list[Guess], left_out: dict[str, str], goal: str) -> Iterator[str]:
    place, near = script.path.resolve(), file.resolve().parent
    path = str(place.relative_to(near) if place.is_relative_to(near) else place)
    chosen = {guess.name for guess in knobs}
    own = [part for option in script.options if option.name in chosen for part in option.argument]
    yield "# Made by `foresail init`: ranges are guesses around the defaults. Read them, then:"
    yield f"#   foresail run {file.name}"
    if not script.metrics:
        yield f"# {place.name} must report, once an epoch: foresail.report({goal.partition(' = ')[2][1:-1]}=...)"
    yield "[study]"
    for option in script.options:
        if option.required and option.name not in chosen:
            how = "its value" if option.kind == "place" else f'"--{option.name}", and its value,'
            yield f"# {option.name}: {place.name} does not run without it: add {how} to the command"
    yield f"command = {json.dumps(['python', path, *own])}"
    epochs = [o for o in script.options if _words(o.name) & {"epochs", "epoch"} and isinstance(o.default, int)]
    if epochs and not isinstance(epochs[0].default, bool):
        yield f"max_steps = {epochs[0].default}    # {epochs[0].name}; steps that a full training reports"
    yield ""
    yield "[goal]"
    yield goal
    yield 'within = "1 h"'
    yield "# target = ...    # the study ends when a trial reaches it"
    yield ""
    yield "[space]"
    if not knobs:
        yield "# no option looks like a hyperparameter; add yours:"
        yield '# lr = {type = "float", low = 1e-4, high = 1.0, log = true}'
    width = max((len(_key(guess.name) + guess.toml) for guess in knobs), default=0) + 3
    for guess in knobs:
        yield f"{_key(guess.name)} = {guess.toml}".ljust(width) + f"    # {guess.why}"
    if left_out:
        yield ""
        yield "# left as they are:"
        yield from (f"#   {name}: {why}" for name, why in left_out.items())


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


# --- the goal ----------------------------------------------------------------------------------------------------


def _goal(script: Script) -> tuple[str, str]:
    """What the script reports; else what it seems to compute."""
    if script.metrics:
        scored = [name for name in script.metrics if _MAXIMIZED.search(name.lower())]
        metric = next((name for name in (*scored, *script.metrics) if re.match("val|valid|test|eval", name)), None)
        metric = metric or (scored or [*script.metrics])[0]
    else:
        metric = "accuracy" if any("acc" in name.lower() for name in script.names) else "loss"
    return "maximize" if _MAXIMIZED.search(metric.lower()) else "minimize", metric


# --- one option --------------------------------------------------------------------------------------------------


def _words(name: str) -> set[str]:
    return set(re.split(r"[^a-z0-9]+", name.lower()))


def _guess(option: Option) -> Guess | str:
    """A knob for the option, or why there is none."""
    if not re.fullmatch(r"[^\W\d][\w.-]*", option.name):
        return "its name is no name of a knob"
    if option.kind == "place":
        return "a value without a name"
    if option.kind in ("flag", "bool"):
        return "a switch: it takes no value on a command line" if option.kind == "flag" else "true or false"
    if _words(option.name) & _NOT_WORDS:
        return "not a hyperparameter, by its name"
    choices = [choice for choice in option.choices if choice is not None]
    if len(choices) > 1:
        return Guess(option.name, f'{{type = "choice", options = {json.dumps(choices)}}}', _was(option))
    if option.kind == "int":
        return _int(option)
    if option.kind == "float":
        return _float(option)
    return "text, and its choices are not told" if option.kind == "str" else "its type is not told"


def _was(option: Option) -> str:
    return "no default" if option.default is None else f"default {option.default}"


def _int(option: Option) -> Guess | str:
    words, default = _words(option.name), option.default
    if option.low is not None and option.high is not None:
        return _knob(option, "int", int(option.low), int(option.high), log=False)
    if not isinstance(default, int) or default < 1:
        return "no default to guess a range from"
    if "batch" in words or {"bs"} & words:
        sizes = sorted({max(1, default // 2), default, default * 2, default * 4})
        return Guess(option.name, f'{{type = "choice", options = {sizes}, touches = "both"}}', _was(option))
    if default <= 8:
        return _knob(option, "int", 1, max(4, 2 * default), log=False)
    return _knob(option, "int", max(1, default // 4), default * 4, log=True)


def _float(option: Option) -> Guess | str:
    name, default = option.name.lower().replace("-", "_"), option.default
    if option.low is not None and option.high is not None:
        return _knob(option, "float", option.low, option.high, log=0.0 < 100.0 * option.low <= option.high)
    value = float(default) if isinstance(default, int | float) else None
    if "dropout" in name or "drop_rate" in name:
        return _knob(option, "float", 0.0, 0.7, log=False)
    if "momentum" in name or "beta" in name or "decay_rate" in name:
        return _knob(
            option, "float", 0.5 if (value or 0.0) > 0.5 else 0.0, 0.999 if "beta" in name else 0.99, log=False
        )
    if re.search(r"weight_decay|\bwd\b|^l[12]|reg", name):
        around = value or 1e-4
        return _knob(option, "float", _round(around / 100), _round(around * 100), log=True)
    if value is None:
        return "no default to guess a range from"
    if re.search(r"(^|_)lr|learning_rate|step_size", name):
        return _knob(option, "float", _round(value / 30), _round(min(value * 30, max(value * 3, 1.0))), log=True)
    if 0.0 <= value < 1.0 and re.search(r"prob|ratio|frac|smooth|rate|mix|gamma|alpha|warmup", name):
        return _knob(option, "float", 0.0, 1.0 if re.search(r"gamma|mix|alpha", name) else 0.5, log=False)
    if value <= 0.0:
        return "no positive default to guess a range from"
    return _knob(option, "float", _round(value / 10), _round(value * 10), log=True)


def _round(value: float) -> float:
    """To one digit."""
    return float(f"{value:.0e}")


def _knob(option: Option, kind: str, low: Any, high: Any, *, log: bool) -> Guess | str:
    if not low < high or not math.isfinite(high - low):
        return "no range can be guessed"
    scale = ", log = true" if log else ""
    return Guess(option.name, f'{{type = "{kind}", low = {low!r}, high = {high!r}{scale}}}', _was(option))
