from __future__ import annotations

import csv
import gzip
import json
import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foresail.core import events as ev
from foresail.core.goal import Goal, Mode
from foresail.core.spec import StudySpec
from foresail.core.view import fold
from foresail.core.words import AttemptId, Outcome, TrialId
from foresail.errors import CallerError
from foresail.stores.export import read_jsonl, write_jsonl, write_trace
from foresail.testing.strategies import events, logs

SPACE = {
    "lr": {"type": "float", "low": 1e-4, "high": 1.0, "log": True},
    "layers": {"type": "int", "low": 1, "high": 4},
    "optimizer": {"type": "choice", "options": ["sgd", "adam w"]},
    "nesterov": {"type": "flag"},
}


def table(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def study(mode: Mode = "max", target: float | None = None) -> list[ev.Event]:
    return [
        ev.StudyCreated(at_s=0.0, spec=StudySpec("s", SPACE, Goal("acc", mode, target=target, trials=100))),
        ev.DriverStarted(at_s=0.0, cores=(0,)),
    ]


def trial(number: int, config: dict[str, object] | None = None) -> ev.TrialProposed:
    return ev.TrialProposed(at_s=0.0, trial=TrialId(number), config=config or {}, origin="random")  # type: ignore[arg-type]


def granted(number: int, life: int = 1) -> ev.AttemptGranted:
    attempt = AttemptId(f"{number}-{life}")
    return ev.AttemptGranted(at_s=0.0, attempt=attempt, trial=TrialId(number), number=life, cores=(0,))


def ended(number: int, life: int = 1) -> ev.AttemptEnded:
    return ev.AttemptEnded(at_s=0.0, attempt=AttemptId(f"{number}-{life}"), outcome=Outcome.LOST)


def point(number: int, step: int, *, life: int = 1, seconds: float = 1.0, **metrics: float) -> ev.PointReported:
    return ev.PointReported(
        at_s=0.0, attempt=AttemptId(f"{number}-{life}"), step=step, metrics=metrics, seconds=seconds
    )


def test_a_trace_has_configurations_and_curves(tmp_path: Path) -> None:
    log = [
        *study(target=0.9),
        trial(0, {"lr": 0.125, "layers": 2, "optimizer": "adam w", "nesterov": True}),
        trial(1, {"lr": 1e-4, "layers": 1, "optimizer": "sgd", "warmup": 3}),
        granted(0),
        point(0, 1, acc=0.5, loss=1.5),
        point(0, 2, acc=math.nan, value=7.0),
        ended(0),
        granted(1),
        point(1, 3, acc=0.75, loss=math.inf),
    ]
    write_trace(log, tmp_path / "new" / "trace")
    folder = tmp_path / "new" / "trace"
    assert table(folder / "configs.csv.gz") == [
        {"config": "0", "lr": "0.125", "layers": "2", "optimizer": "adam w", "nesterov": "True", "warmup": ""},
        {"config": "1", "lr": "0.0001", "layers": "1", "optimizer": "sgd", "nesterov": "", "warmup": "3"},
    ]
    assert table(folder / "curves.csv.gz") == [
        {"config": "0", "step": "1", "value": "0.5", "seconds": "1.0", "loss": "1.5", "value_": "nan"},
        {"config": "0", "step": "2", "value": "nan", "seconds": "2.0", "loss": "nan", "value_": "7.0"},
        {"config": "1", "step": "3", "value": "0.75", "seconds": "1.0", "loss": "nan", "value_": "nan"},
    ]
    about = json.loads((folder / "trace.json").read_text())
    assert (about["name"], about["metric"], about["mode"], about["max_step"]) == ("s", "acc", "max", 3)
    assert about["hyperparameters"] == {
        "lr": {"type": "float", "low": 1e-4, "high": 1.0, "log": True},
        "layers": {"type": "int", "low": 1, "high": 4},
        "optimizer": {"type": "categorical", "choices": ["sgd", "adam w"]},
        "nesterov": {"type": "categorical", "choices": [False, True]},
        "warmup": {"type": "categorical", "choices": [3]},
    }
    assert about["targets"] == {"best": 0.75, "top10pct": 0.75, "top1pct": 0.75, "goal": 0.9}


@pytest.mark.parametrize(("mode", "best", "tenth"), [("max", 29.0, 27.0), ("min", 0.0, 2.0)])
def test_targets_are_what_shares_of_the_configurations_reach(
    tmp_path: Path, mode: Mode, best: float, tenth: float
) -> None:
    log = study(mode)
    for n in range(30):
        log += [trial(n), granted(n), point(n, 1, acc=float(n)), ended(n)]
    write_trace(log, tmp_path)
    targets = json.loads((tmp_path / "trace.json").read_text())["targets"]
    assert targets == {"best": best, "top10pct": tenth, "top1pct": best}


def test_time_of_what_was_trained_twice_counts_once(tmp_path: Path) -> None:
    log = [*study(), trial(0), granted(0), *(point(0, step, acc=step / 10) for step in (1, 2, 3)), ended(0)]
    log += [granted(0, 2), point(0, 2, life=2, acc=0.9, seconds=5.0), point(0, 4, life=2, acc=0.4), ended(0, 2)]
    write_trace(log, tmp_path)
    rows = table(tmp_path / "curves.csv.gz")
    assert [row["step"] for row in rows] == ["1", "2", "3", "4"]
    assert [row["value"] for row in rows] == ["0.1", "0.9", "0.3", "0.4"]
    assert [row["seconds"] for row in rows] == ["1.0", "2.0", "3.0", "4.0"]


@given(logs())
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_the_curves_of_a_trace_are_those_of_the_view(tmp_path: Path, log: list[ev.Event]) -> None:
    write_trace(log, tmp_path)
    rows = table(tmp_path / "curves.csv.gz")
    for trial in fold(log).trials:
        curve = [row for row in rows if row["config"] == str(trial.id)]
        assert [int(row["step"]) for row in curve] == list(trial.steps)
        assert [row["value"] for row in curve] == [repr(v) if math.isfinite(v) else "nan" for v in trial.values]
        seconds = [float(row["seconds"]) for row in curve]
        assert seconds == sorted(seconds)
        assert not seconds or seconds[-1] <= trial.seconds


def test_the_same_log_gives_the_same_bytes(tmp_path: Path) -> None:
    log = [*study(), trial(0), granted(0), point(0, 1, acc=0.5)]
    for name in ("a", "b"):
        write_trace(log, tmp_path / name)
    for file in ("trace.json", "configs.csv.gz", "curves.csv.gz"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_an_empty_log_is_no_trace(tmp_path: Path) -> None:
    with pytest.raises(CallerError, match="no study"):
        write_trace([], tmp_path)
    write_trace(study(), tmp_path)
    assert table(tmp_path / "curves.csv.gz") == []
    assert json.loads((tmp_path / "trace.json").read_text())["targets"] == {}


@given(st.lists(events(), max_size=8))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_json_lines_come_back(tmp_path: Path, log: list[ev.Event]) -> None:
    assert write_jsonl(log, tmp_path / "log.jsonl") == len(log)
    assert repr(list(read_jsonl(tmp_path / "log.jsonl"))) == repr(log)


def test_a_bad_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    write_jsonl(study(), path)
    with path.open("ab") as file:
        file.write(b'{"event": "Ticked"')
    with pytest.raises(CallerError, match="line 3: not an event"):
        list(read_jsonl(path))
