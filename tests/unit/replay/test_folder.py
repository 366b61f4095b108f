"""Reading trace folders, and refusing what is broken, with file and line."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from folders import ABOUT, CONFIGS, CURVES, write_folder

from foresail.errors import CallerError
from foresail.replay.folder import read_folder


def test_a_trace_is_read_whole(tmp_path: Path) -> None:
    trace = read_folder(write_folder(tmp_path / "tiny"))
    assert (trace.name, trace.metric, trace.mode) == ("tiny", "accuracy_fraction", "max")
    assert trace.configs[1] == {"lr": 0.1, "depth": 2, "opt": "adam"}
    assert list(trace.curves[0].steps) == [1, 2, 3]
    assert trace.curves[1].seconds == [2.0, 4.0, 6.0]
    assert math.isnan(trace.curves[2].values[1])
    assert trace.total_s == 11.5
    assert trace.record(trace.configs[2]) is trace.curves[2]


def test_without_seconds_a_report_costs_one_and_what_was_before_training_is_no_report(tmp_path: Path) -> None:
    curves = ("config,step,value,seconds", "0,0,0.1,", "0,1,0.5,", "0,2,0.9,", "1,0,0.1,", "1,1,0.2,", "2,0,0.1,")
    trace = read_folder(write_folder(tmp_path / "tiny", about={"seconds": "none"}, curves=curves))
    assert trace.curves[0].values == [0.5, 0.9]
    assert trace.curves[0].seconds == [1.0, 2.0]
    assert trace.curves[2].values == [0.1], "a run that has nothing else keeps its only point"


def test_a_value_that_does_not_apply_is_a_conditional_knob(tmp_path: Path) -> None:
    configs = ("config,lr,depth,opt", "0,,1,sgd", "1,0.1,2,", "2,1,4,adam")
    trace = read_folder(write_folder(tmp_path / "tiny", configs=configs))
    assert trace.configs[0] == {"lr_given": False, "depth": 1, "opt": "sgd"}
    assert trace.configs[1] == {"lr_given": True, "lr": 0.1, "depth": 2, "opt": "none"}
    for config in trace.configs:
        assert trace.space.check(config) == config


def test_equal_rows_are_told_apart(tmp_path: Path) -> None:
    configs = ("config,lr,depth,opt", "0,0.1,1,sgd", "1,0.1,1,sgd", "2,1,4,adam")
    trace = read_folder(write_folder(tmp_path / "tiny", configs=configs))
    assert [config["repeat"] for config in trace.configs] == [0, 1, 0]
    assert trace.record(trace.configs[1]) is trace.curves[1]


def changed(lines: tuple[str, ...], line: int, text: str | None) -> tuple[str, ...]:
    """`lines` with another one at number `line` (from 1), or without it."""
    return (*lines[: line - 1], *(() if text is None else (text,)), *lines[line:])


def curve(line: int, text: str | None) -> dict[str, Any]:
    return {"curves": changed(CURVES, line, text)}


def config(line: int, text: str) -> dict[str, Any]:
    return {"configs": changed(CONFIGS, line, text)}


def about(**values: Any) -> dict[str, Any]:
    return {"about": values}


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "not JSON": ({"about": '{\n "name": oops}'}, "trace.json:2: not JSON"),
    "unknown key": (about(colour="red"), "trace.json: key 'colour' is unknown"),
    "unknown mode": (about(mode="up"), "trace.json: mode is 'up'"),
    "unknown kind of seconds": (about(seconds="guessed"), "trace.json: seconds is 'guessed'"),
    "missing target": (about(targets={"best": 0.9}), "trace.json: targets are ['best']"),
    "wrong direction": (about(mode="min"), "the curves say 0.1 for mode 'min'; correct the target, or the direction"),
    "no finite value": (
        {"curves": (CURVES[0], "0,1,nan,1.0", "1,1,nan,1.0", "2,1,nan,1.0")},
        "trace.json: no configuration has a finite value",
    ),
    "unknown column": (config(1, "config,lr,depht,opt"), "configs.csv.gz:1: column 'depht' is unknown to trace.json"),
    "missing column": (
        {"configs": ("config,lr,depth", "0,0.01,1", "1,0.1,2", "2,1,4")},
        "configs.csv.gz:1: column 'opt' of trace.json is missing",
    ),
    "repeated configuration": (config(4, "1,1,4,adam"), "configs.csv.gz:4: configuration 1 comes twice"),
    "unnumbered configuration": (config(2, "a,0.01,1,sgd"), "configs.csv.gz:2: config is 'a'"),
    "unknown option": (config(3, "1,0.1,2,adamm"), "configs.csv.gz:3: opt is 'adamm'; did you mean 'adam'?"),
    "not a number": (config(3, "1,fast,2,adam"), "configs.csv.gz:3: lr is 'fast'; allowed: a number"),
    "outside its bounds": (config(3, "1,0.1,9,adam"), "configs.csv.gz:3: depth is 9; allowed: 1 to 4"),
    "wrong first columns": (curve(1, "config,step,loss,seconds"), "curves.csv.gz:1: the first columns are"),
    "too few fields": (curve(3, "0,2,0.5"), "curves.csv.gz:3: 3 fields; 4, as in the header"),
    "missing step": (curve(3, "0,,0.5,2.0"), "curves.csv.gz:3: step is missing"),
    "duplicate step": (curve(3, "0,1,0.5,2.0"), "curves.csv.gz:3: step 1 of configuration 0 comes twice"),
    "falling step": (curve(4, "0,1,0.9,3.0"), "curves.csv.gz:4: step 1 of configuration 0 follows step 2"),
    "step beyond the last": (curve(4, "0,7,0.9,3.0"), "curves.csv.gz:4: step 7 is beyond max_step 3"),
    "falling seconds": (curve(4, "0,3,0.9,1.5"), "curves.csv.gz:4: seconds fall from 2.0 to 1.5"),
    "missing seconds": (curve(4, "0,3,0.9,"), "curves.csv.gz:4: seconds is missing"),
    "negative seconds": (curve(2, "0,1,0.1,-1"), "curves.csv.gz:2: seconds is '-1'"),
    "seconds that should not be": (about(seconds="none"), "curves.csv.gz:2: seconds is '1.0'"),
    "missing value": (curve(4, "0,3,,3.0"), "curves.csv.gz:4: value is missing; write nan"),
    "text for a value": (curve(4, "0,3,high,3.0"), "curves.csv.gz:4: value is 'high'; a number or nan"),
    "curve of nobody": (curve(2, "7,1,0.1,1.0"), "curves.csv.gz:2: configuration 7 is not in configs.csv.gz"),
    "scattered rows": (
        {"curves": (*CURVES[:3], *CURVES[4:7], CURVES[3], *CURVES[7:])},
        "curves.csv.gz:7: configuration 0 comes again",
    ),
    "configuration without a curve": ({"curves": CURVES[:7]}, "curves.csv.gz: configuration 2 has no points"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_trace_is_refused_with_file_and_line(tmp_path: Path, kind: str) -> None:
    parts, message = BROKEN[kind]
    folder = write_folder(tmp_path / "broken", **parts)
    with pytest.raises(CallerError) as caught:
        read_folder(folder)
    assert message in str(caught.value)
    assert str(folder) in str(caught.value)


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-12])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "trace.json").unlink(), "trace.json: there is no such file"),
        (lambda folder: (folder / "curves.csv.gz").unlink(), "curves.csv.gz: there is no such file"),
        (lambda folder: (folder / "configs.csv.gz").write_text("config,lr"), "configs.csv.gz: cannot be read"),
        (lambda folder: _truncate(folder / "curves.csv.gz"), "curves.csv.gz: cannot be read"),
        (lambda folder: (folder / "trace.json").write_text("[]"), "trace.json: not a JSON object"),
    ],
)
def test_a_damaged_folder_is_refused(tmp_path: Path, damage: Callable[[Path], object], message: str) -> None:
    folder = write_folder(tmp_path / "damaged")
    damage(folder)
    with pytest.raises(CallerError, match=message.replace(".", r"\.")):
        read_folder(folder)


def test_a_missing_key_is_named(tmp_path: Path) -> None:
    import json

    text = json.dumps({key: value for key, value in ABOUT.items() if key != "mode"})
    with pytest.raises(CallerError, match="key 'mode' is missing"):
        read_folder(write_folder(tmp_path / "tiny", about=text))
