"""A log in other forms: JSON lines (all of it), and a learning-curve trace (what a replay or a benchmark reads).

A trace is a folder of three files: `trace.json` (what it is), `configs.csv.gz` (a configuration a row) and
`curves.csv.gz` (a point of the goal's metric a row). Configurations are the trials, under their numbers.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from foresail.core import events as ev
from foresail.core.codec import decode, encode
from foresail.core.spec import StudySpec
from foresail.core.words import AttemptId, Config, TrialId
from foresail.errors import CallerError

_OWN_COLUMNS = ("config", "step", "value", "seconds")
_TYPES = {"float": "float", "int": "int"}


def write_jsonl(events: Iterable[ev.Event], path: Path) -> int:
    """Write one event a line to `path`, in whole or not at all; how many there were."""
    count = 0
    fresh = path.with_name(path.name + ".part")
    with fresh.open("wb") as file:
        for event in events:
            file.write(encode(event) + b"\n")
            count += 1
    os.replace(fresh, path)
    return count


def read_jsonl(path: Path) -> Iterator[ev.Event]:
    """The events of a file that `write_jsonl` wrote.

    Raises:
        CallerError: a line is no event; its number is named.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                event = decode(line)
            except CallerError as error:
                raise CallerError(f"{path}, line {number}: {error.what}", do=error.do) from None
            yield event


def write_trace(events: Iterable[ev.Event], folder: Path) -> None:
    """Write the study that `events` tell as a learning-curve trace into `folder`, which is made if need be.

    `seconds` of a point is training time from the start of its trial, over all attempts; a step that was trained
    again after a crash has its last value and counts its time once. Points without the goal's metric lend their time
    to the next one. Values that are not finite are written as `nan`.

    Raises:
        CallerError: the log tells of no study.
    """
    recording = _record(events)
    spec = recording.spec
    if spec is None:
        raise CallerError("the log has no study to export", do="export after `foresail run`")
    folder.mkdir(parents=True, exist_ok=True)
    names = _knob_names(spec, recording.configs)
    extra = sorted({name for curve in recording.curves for point in curve.values() for name in point.others})
    with _table(folder / "configs.csv.gz") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["config", *names])
        for number, config in enumerate(recording.configs):
            rows.writerow([number, *("" if config.get(name) is None else config[name] for name in names)])
    with _table(folder / "curves.csv.gz") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow([*_OWN_COLUMNS, *(f"{name}_" if name in _OWN_COLUMNS else name for name in extra)])
        for number, curve in enumerate(recording.curves):
            rows.writerows(_curve_rows(number, curve, extra))
    about = json.dumps(_about(spec, recording, names), indent=1)
    (folder / "trace.json").write_text(about + "\n", encoding="utf-8")


@dataclass(slots=True)
class _Point:
    value: float
    others: dict[str, float]
    seconds: float


@dataclass(slots=True)
class _Recording:
    spec: StudySpec | None = None
    configs: list[Config] = field(default_factory=list)
    curves: list[dict[int, _Point]] = field(default_factory=list)
    reached: list[tuple[int, float]] = field(default_factory=list)  # highest step, training time until then
    trial_of: dict[AttemptId, TrialId] = field(default_factory=dict)


def _record(events: Iterable[ev.Event]) -> _Recording:
    recording = _Recording()
    for event in events:
        match event:
            case ev.StudyCreated():
                recording.spec = event.spec
            case ev.TrialProposed():
                recording.configs.append(event.config)
                recording.curves.append({})
                recording.reached.append((0, 0.0))
            case ev.AttemptGranted():
                recording.trial_of[event.attempt] = event.trial
            case ev.PointReported():
                _record_point(recording, event)
    return recording


def _record_point(recording: _Recording, event: ev.PointReported) -> None:
    assert recording.spec is not None
    trial = recording.trial_of[event.attempt]
    curve = recording.curves[trial]
    step, seconds = recording.reached[trial]
    if event.step > step:
        seconds += event.seconds
        recording.reached[trial] = (event.step, seconds)
    others = dict(event.metrics)
    value = others.pop(recording.spec.goal.metric, None)
    if value is None:
        return
    if event.step in curve:
        seconds = curve[event.step].seconds
    elif event.step < step:  # trained again with other gaps: its time is not known, so that of the point before it
        seconds = max((p.seconds for s, p in curve.items() if s < event.step), default=0.0)
    curve[event.step] = _Point(value, others, seconds)


def _knob_names(spec: StudySpec, configs: Iterable[Config]) -> list[str]:
    used = {name for config in configs for name in config}
    knobs = _knobs(spec)
    return [*knobs, *sorted(used - knobs.keys())]


def _knobs(spec: StudySpec) -> dict[str, Any]:
    """The knobs of the space, in the long form or in the short one."""
    knobs = spec.space.get("knobs", spec.space)
    return knobs if isinstance(knobs, dict) else {}


def _curve_rows(number: int, curve: dict[int, _Point], extra: Sequence[str]) -> Iterator[list[Any]]:
    for step in sorted(curve):
        point = curve[step]
        others = (_shown(point.others.get(name, math.nan)) for name in extra)
        yield [number, step, _shown(point.value), _shown(round(point.seconds, 6)), *others]


def _shown(value: float) -> str:
    return repr(float(value)) if math.isfinite(value) else "nan"


@contextmanager
def _table(path: Path) -> Iterator[TextIO]:
    """A compressed text file whose bytes depend on what is written alone."""
    with path.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
        text = io.TextIOWrapper(packed, encoding="utf-8", newline="")
        yield text
        text.flush()


def _about(spec: StudySpec, recording: _Recording, names: Sequence[str]) -> dict[str, Any]:
    return {
        "name": spec.name,
        "source": {"recorded_by": "foresail export"},
        "license": "",
        "metric": spec.goal.metric,
        "mode": str(spec.goal.mode),
        "step_unit": "step",
        "max_step": max((step for curve in recording.curves for step in curve), default=0),
        "seconds": "measured",
        "hyperparameters": {name: _knob(_knobs(spec).get(name), recording.configs, name) for name in names},
        "system": {},
        "targets": _targets(spec, recording.curves),
        "notes": "Recorded by Foresail. Configurations are in the order of their proposal; runs end where the "
        "policy, the goal or a failure ended them.",
    }


def _knob(knob: Any, configs: Sequence[Config], name: str) -> dict[str, Any]:
    """The knob as a trace says it; one that the space does not name has the values that occurred."""
    form = knob if isinstance(knob, dict) else {}
    kind = _TYPES.get(form.get("type", ""), "categorical")
    if kind != "categorical":
        return {"type": kind, **{part: form[part] for part in ("low", "high", "log", "choices") if part in form}}
    seen = {repr(config[name]): config[name] for config in configs if config.get(name) is not None}
    choices = form.get("options") or ([False, True] if form.get("type") == "flag" else list(seen.values()))
    return {"type": kind, "choices": list(choices)}


def _targets(spec: StudySpec, curves: Sequence[dict[int, _Point]]) -> dict[str, float]:
    """`best`, and what a tenth and a hundredth of all configurations reach; `goal` where the study had a target."""
    sign = 1.0 if spec.goal.mode == "max" else -1.0
    finite = ([sign * p.value for p in curve.values() if math.isfinite(p.value)] for curve in curves)
    bests = sorted((max(values, default=-math.inf) for values in finite), reverse=True)
    ranks = {"best": 1, "top10pct": math.ceil(len(bests) / 10), "top1pct": math.ceil(len(bests) / 100)}
    targets = {name: sign * bests[rank - 1] for name, rank in ranks.items() if bests and math.isfinite(bests[rank - 1])}
    return targets if spec.goal.target is None else {**targets, "goal": spec.goal.target}
