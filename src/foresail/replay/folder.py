"""Reads a trace from its folder: `trace.json`, `configs.csv.gz`, `curves.csv.gz`.

Strict: whatever would bend a comparison is refused with file and line. See the format in docs/traces.md.
"""

from __future__ import annotations

import csv
import gzip
import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NoReturn

import msgspec

from foresail.core.words import Config
from foresail.errors import CallerError, nearest
from foresail.executors.replay import Recording
from foresail.replay.columns import Column, columns_of, space_of, told_apart
from foresail.replay.trace import TARGETS, Trace, as_recording, metric_name, targets_of

_KEYS = ("name", "metric", "mode", "step_unit", "max_step", "seconds", "hyperparameters", "targets")
_OPTIONAL = ("source", "license", "system", "notes")
_FIRST = ("config", "step", "value", "seconds")
Finite = Annotated[float, msgspec.Meta(gt=-1e300, lt=1e300)]
GOAL = "goal"
"""Name of the target that a recorded study had itself."""
_ROUNDING = 2e-5
"""Targets are written with six digits."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands, for errors."""

    path: Path
    line: int = 0

    def refuse(self, what: str, *, allowed: str = "", do: str = "") -> NoReturn:
        where = f"{self.path}:{self.line}" if self.line else str(self.path)
        raise CallerError(f"{where}: {what}", allowed=allowed, do=do)


def read_folder(folder: Path | str) -> Trace:
    """The trace of a folder.

    Raises:
        CallerError: with file and line of the first thing that is wrong.
    """
    folder = Path(folder)
    about = _about(folder / "trace.json")
    configs, columns = _configs(folder / "configs.csv.gz", about)
    curves = _curves(folder / "curves.csv.gz", about, configs)
    _check_targets(Place(folder / "trace.json"), about, curves)
    rows = told_apart(configs.values())
    return Trace(
        name=about["name"],
        metric=metric_name(about["metric"]),
        mode=about["mode"],
        space=space_of(columns, rows),
        configs=rows,
        curves=tuple(curves[number] for number in configs),
        targets={name: float(about["targets"][name]) for name in TARGETS},
        numbers=tuple(configs),
    )


# --- trace.json ---------------------------------------------------------------------------------------------------


class _Float(msgspec.Struct, tag="float", tag_field="type"):
    low: Finite
    high: Finite
    log: bool = False


class _Int(_Float, tag="int", tag_field="type"):
    pass


class _Categorical(msgspec.Struct, tag="categorical", tag_field="type"):
    choices: list[str | int | float | bool] | None = None


_Knob = _Float | _Int | _Categorical


class _Shape(msgspec.Struct):
    """Of what kind each part of trace.json is."""

    name: str
    metric: str
    mode: str
    step_unit: str
    max_step: int
    seconds: str
    hyperparameters: dict[str, _Knob]
    targets: dict[str, Finite]
    system: dict[str, _Knob] = {}


def _about(path: Path) -> dict[str, Any]:
    place = Place(path)
    try:
        about = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        place.refuse("there is no such file", do="give a folder with trace.json, configs.csv.gz and curves.csv.gz")
    except json.JSONDecodeError as error:
        Place(path, error.lineno).refuse(f"not JSON: {error.msg}")
    except (ValueError, RecursionError, OSError) as error:
        place.refuse(f"cannot be read: {error}", do="copy it again")
    if not isinstance(about, dict):
        place.refuse("not a JSON object", do="see the format of traces")
    for key in about:
        if key not in _KEYS + _OPTIONAL:
            place.refuse(f"key {key!r} is unknown", do=nearest(key, _KEYS + _OPTIONAL))
    for key in _KEYS:
        if key not in about:
            place.refuse(f"key {key!r} is missing", do="add it")
    if about["mode"] not in ("max", "min"):
        place.refuse(f"mode is {about['mode']!r}", allowed="max or min", do="say which way is better")
    try:
        msgspec.convert(about, _Shape)
    except msgspec.ValidationError as error:
        place.refuse(str(error), do="see the format of traces")
    if about["seconds"] not in ("measured", "predicted", "none"):
        place.refuse(f"seconds is {about['seconds']!r}", allowed="measured, predicted or none")
    if set(about["targets"]) - {GOAL} != set(TARGETS):
        place.refuse(f"targets are {sorted(about['targets'])}", allowed=", ".join(TARGETS))
    return about


def _check_targets(place: Place, about: Mapping[str, Any], curves: Mapping[int, Recording]) -> None:
    found = targets_of((curve.values for curve in curves.values()), about["mode"])
    if not math.isfinite(found["best"]):
        place.refuse("no configuration has a finite value", do="a trace needs one run at least that works")
    for name, value in found.items():
        if not math.isclose(value, about["targets"][name], rel_tol=_ROUNDING, abs_tol=_ROUNDING**2):
            place.refuse(
                f"target {name} is {about['targets'][name]!r}, the curves say {value:.6g} for mode {about['mode']!r}",
                do="correct the target, or the direction",
            )


# --- the tables ---------------------------------------------------------------------------------------------------


def _rows(path: Path) -> Iterator[tuple[Place, list[str]]]:
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            for line, row in enumerate(csv.reader(file), start=1):
                yield Place(path, line), row
    except FileNotFoundError:
        Place(path).refuse("there is no such file")
    except (EOFError, gzip.BadGzipFile, zlib.error, csv.Error, UnicodeDecodeError, OSError) as error:
        Place(path).refuse(f"cannot be read: {error}", do="copy it again")


def _configs(path: Path, about: Mapping[str, Any]) -> tuple[dict[int, Config], tuple[Column, ...]]:
    rows = _rows(path)
    place, header = next(rows, (Place(path), []))
    declared = {**about["hyperparameters"], **about.get("system", {})}
    if header[:1] != ["config"]:
        place.refuse(f"the first column is {header[:1]}", allowed="config")
    for name in header[1:]:
        if name not in declared:
            place.refuse(f"column {name!r} is unknown to trace.json", do=nearest(name, declared))
    for name in declared:
        if name not in header:
            place.refuse(f"column {name!r} of trace.json is missing")
    table: dict[int, list[str]] = {}
    places: dict[int, Place] = {}
    for place, row in rows:
        _check_width(place, row, header)
        number = _whole(place, "config", row[0])
        if number in table:
            place.refuse(f"configuration {number} comes twice")
        table[number], places[number] = row[1:], place
    columns = columns_of(header[1:], declared, list(table.values()))
    return {number: _config(places[number], columns, row) for number, row in table.items()}, columns


def _config(place: Place, columns: Sequence[Column], row: Sequence[str]) -> Config:
    try:
        return {name: value for column, text in zip(columns, row, strict=True) for name, value in column.parse(text)}
    except ValueError as error:
        place.refuse(str(error))


@dataclass(slots=True)
class _Growing:
    """The curve that is being read."""

    config: int
    step: int = -1
    values: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    untrained: int = 0

    def recording(self, timed: bool) -> Recording:
        """What was seen before training (step 0, no time) is no report: nothing had been trained to tell about."""
        skip = self.untrained if len(self.values) > self.untrained else 0
        return as_recording(self.values[skip:], self.seconds[skip:] if timed else None)


def _curves(path: Path, about: Mapping[str, Any], configs: Mapping[int, Config]) -> dict[int, Recording]:
    rows = _rows(path)
    place, header = next(rows, (Place(path), []))
    if tuple(header[:4]) != _FIRST:
        place.refuse(f"the first columns are {', '.join(header[:4])}", allowed=", ".join(_FIRST))
    timed, max_step = about["seconds"] != "none", about["max_step"]
    curves: dict[int, _Growing] = {}
    curve = _Growing(-1)
    for place, row in rows:
        _check_width(place, row, header)
        number = _whole(place, "config", row[0])
        if number != curve.config:
            if number not in configs:
                place.refuse(f"configuration {number} is not in configs.csv.gz")
            if number in curves:
                place.refuse(f"configuration {number} comes again", do="keep the rows of a configuration together")
            curve = curves[number] = _Growing(number)
        _add(place, row, curve, timed, max_step)
    for number in configs:
        if number not in curves:
            Place(path).refuse(f"configuration {number} has no points")
    return {number: curve.recording(timed) for number, curve in curves.items()}


def _add(place: Place, row: Sequence[str], curve: _Growing, timed: bool, max_step: int) -> None:
    step = _whole(place, "step", row[1])
    if step <= curve.step:
        how = "comes twice" if step == curve.step else f"follows step {curve.step}"
        place.refuse(f"step {step} of configuration {curve.config} {how}", allowed="steps that rise")
    if step > max_step:
        place.refuse(f"step {step} is beyond max_step {max_step} of trace.json")
    curve.step = step
    curve.untrained += step == 0 and not timed
    curve.values.append(_number(place, "value", row[2]))
    if not timed:
        if row[3]:
            place.refuse(f"seconds is {row[3]!r}, trace.json says that there are none")
        return
    seconds = _number(place, "seconds", row[3])
    if not math.isfinite(seconds) or seconds < 0.0:
        place.refuse(f"seconds is {row[3]!r}", allowed="a finite number from 0")
    if curve.seconds and seconds < curve.seconds[-1]:
        place.refuse(f"seconds fall from {curve.seconds[-1]!r} to {seconds!r}")
    curve.seconds.append(seconds)


# --- cells --------------------------------------------------------------------------------------------------------


def _check_width(place: Place, row: Sequence[str], header: Sequence[str]) -> None:
    if len(row) != len(header):
        place.refuse(f"{len(row)} fields", allowed=f"{len(header)}, as in the header")


def _whole(place: Place, name: str, text: str) -> int:
    if not text:
        place.refuse(f"{name} is missing")
    try:
        return int(text)
    except ValueError:
        place.refuse(f"{name} is {text!r}", allowed="a whole number")


def _number(place: Place, name: str, text: str) -> float:
    if not text:
        place.refuse(f"{name} is missing", do="write nan for what was not finite" if name == "value" else "")
    try:
        return float(text)
    except ValueError:
        place.refuse(f"{name} is {text!r}", allowed="a number or nan")
