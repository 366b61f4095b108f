"""Throughput tables: how fast a job runs by model, device and number of devices; here, as a speed-up over one unit.

A table is a folder with `table.json` (what the columns mean) and `table.csv.gz` (a measurement a row).
"""

from __future__ import annotations

import csv
import gzip
import json
import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from foresail.errors import CallerError, nearest

_SPEEDS = ("samples_per_second", "step_seconds")


@dataclass(frozen=True, slots=True)
class Speedup:
    """How many times faster than on the fewest devices that were measured, by devices.

    Between two measured numbers it is the straight line; beyond the last it stays, since nobody has measured it.
    """

    devices: tuple[int, ...]
    times: tuple[float, ...]

    def __call__(self, devices: int) -> float:
        at = bisect_right(self.devices, devices)
        if at == 0:
            return self.times[0] * devices / self.devices[0]
        if at == len(self.devices):
            return self.times[-1]
        low, high = self.devices[at - 1], self.devices[at]
        part = (devices - low) / (high - low)
        return self.times[at - 1] + part * (self.times[at] - self.times[at - 1])


@dataclass(frozen=True, slots=True)
class PowerLaw:
    """n devices are n**exponent times as fast as one."""

    exponent: float

    def __call__(self, devices: int) -> float:
        return float(devices**self.exponent)


def parse_speedup(text: str) -> Speedup | PowerLaw:
    """What `--speedup` says: an exponent, as 0.8, or a table and which rows of it, as TABLES/gavel,workload=lm.

    Raises:
        CallerError: neither, an exponent outside of 0 to 1, or as `read_speedup`.
    """
    folder, *conditions = text.split(",")
    try:
        exponent = float(folder)
    except ValueError:
        where = dict(part.partition("=")[::2] for part in conditions)
        return read_speedup(folder, where)
    if not 0.0 <= exponent <= 1.0 or conditions:
        raise CallerError(f"speed-up {text!r}", allowed="an exponent from 0 to 1, or FOLDER,column=value,...")
    return PowerLaw(exponent)


def read_speedup(folder: Path | str, where: Mapping[str, str]) -> Speedup:
    """The speed-up over devices of the rows for which `where` holds, e.g. {"workload": "resnet50", "device": "V100"}.

    Several rows with the same number of devices count with the fastest, which is what a tuned job would use.

    Raises:
        CallerError: the table or one of its cells is broken (with file and line), or no row is meant.
    """
    path = Path(folder) / "table.csv.gz"
    rows = _rows(Path(folder), path)
    header = list(rows[0][1]) if rows else []
    for name in where:
        if name not in header:
            raise CallerError(f"{path}: there is no column {name!r}", do=nearest(name, header))
    best: dict[int, float] = {}
    for line, row in rows:
        if all(row[name] == value for name, value in where.items()):
            speed = _speed(path, line, row)
            devices = _count(path, line, row)
            if speed > 0.0:
                best[devices] = max(best.get(devices, 0.0), speed)
    if not best:
        raise CallerError(f"{path}: no row that ran has {dict(where)}", do=_seen(rows, where))
    counts = sorted(best)
    return Speedup(tuple(counts), tuple(best[n] / best[counts[0]] for n in counts))


def _rows(folder: Path, path: Path) -> list[tuple[int, dict[str, str]]]:
    try:
        about = json.loads((folder / "table.json").read_text("utf-8"))
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            lines = list(csv.reader(file))
    except (OSError, EOFError, json.JSONDecodeError) as error:
        raise CallerError(f"{folder}: not a throughput table: {error}", do="give a folder with table.json") from None
    header = lines[0] if lines else []
    for name in header:
        if name not in about.get("columns", {}):
            raise CallerError(f"{path}:1: column {name!r} is unknown to table.json", do=nearest(name, about["columns"]))
    for line, row in enumerate(lines[1:], start=2):
        if len(row) != len(header):
            raise CallerError(f"{path}:{line}: {len(row)} fields", allowed=f"{len(header)}, as in the header")
    return [(line, dict(zip(header, row, strict=True))) for line, row in enumerate(lines[1:], start=2)]


def _speed(path: Path, line: int, row: Mapping[str, str]) -> float:
    """Work a second; 0 where the job did not run."""
    for name in _SPEEDS:
        if row.get(name):
            value = _number(path, line, name, row[name])
            if name == "samples_per_second":
                return value
            samples = _number(path, line, "global_batch", row["global_batch"]) if row.get("global_batch") else 1.0
            return 0.0 if math.isinf(value) else samples / value
    raise CallerError(f"{path}:{line}: no speed", allowed=" or ".join(_SPEEDS))


def _count(path: Path, line: int, row: Mapping[str, str]) -> int:
    value = _number(path, line, "devices", row.get("devices", ""))
    if value < 1 or value != int(value):
        raise CallerError(f"{path}:{line}: devices is {row['devices']!r}", allowed="a whole number from 1")
    return int(value)


def _number(path: Path, line: int, name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise CallerError(f"{path}:{line}: {name} is {text!r}", allowed="a number") from None
    if math.isnan(value) or value <= 0.0:
        raise CallerError(f"{path}:{line}: {name} is {text!r}", allowed="a number above 0")
    return value


def _seen(rows: Sequence[tuple[int, Mapping[str, str]]], where: Mapping[str, str]) -> str:
    parts = [f"{name}: {', '.join(sorted({row[name] for _, row in rows}))}" for name in where]
    return "there are " + "; ".join(parts)
