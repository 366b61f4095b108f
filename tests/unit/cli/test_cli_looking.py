"""status, best, explain, export and watch on a stored study: text for people, JSON for scripts."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from stored_study import SPEC, store

from foresail.core import events as ev


def test_status_as_text(foresail, golden, storage: Path) -> None:
    called = foresail("status", storage)
    assert (called.code, called.err) == (0, "")
    golden("status.txt", called.out)


def test_status_as_json_has_all_trials_best_first(foresail, storage: Path) -> None:
    data = foresail("status", storage, "--json").json
    assert [trial["trial"] for trial in data["trials"]] == [0, 4, 1, 2, 3]
    assert data["counts"]["diverged"] == data["counts"]["failed"] == 1
    assert data["driver"] is None
    assert data["goal"]["target"] == 0.95


def test_best_as_text(foresail, golden, storage: Path) -> None:
    golden("best.txt", foresail("best", storage).out)


def test_best_step_value_and_checkpoint_belong_together(foresail, storage: Path) -> None:
    best = foresail("best", storage, "--json").json
    assert (best["trial"], best["step"], best["value"]) == (0, 4, 0.96)
    assert best["config"] == {"lr": 0.1, "momentum": 0.9}
    assert best["checkpoint"] == str(storage.with_suffix(".runs") / "checkpoints" / "0" / "step-4")


def test_best_without_a_result_exits_with_4(foresail, tmp_path: Path) -> None:
    called = foresail("best", store(tmp_path / "new.db", [ev.StudyCreated(at_s=0.0, spec=SPEC)]), "--json")
    assert called.code == 4
    assert called.json is None
    assert "no result yet" in called.err


@pytest.mark.parametrize("trial", range(5))
def test_explain_as_text(foresail, golden, storage: Path, trial: int) -> None:
    called = foresail("explain", trial, storage)
    assert called.code == 0
    golden(f"explain-{trial}.txt", called.out)


def test_explain_as_json_carries_the_numbers_of_each_decision(foresail, storage: Path) -> None:
    story = foresail("explain", 1, storage, "--json").json
    decisions = [chapter["data"] for chapter in story["chapters"] if chapter["event"] == "Planned"]
    assert [decision["act"] for decision in decisions] == ["run", "end"]
    assert decisions[1]["numbers"] == {"p": 0.012, "poor": 0.05, "seen_frac": 0.3, "final": 0.41}
    assert [p["step"] for p in story["points"]] == [1, 2, 3]


def test_a_value_that_is_not_finite_is_null_in_json(foresail, storage: Path) -> None:
    assert foresail("explain", 2, storage, "--json").json["points"][0]["metrics"]["accuracy"] is None


def test_export_of_points(foresail, storage: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(foresail("export", storage).out)))
    assert len(rows) == 9
    assert rows[0] == {
        "trial": "0",
        "step": "1",
        "attempt": "0-1",
        "at_s": "1.1",
        "seconds": "1.0",
        "accuracy": "0.25",
        "loss": "0.75",
    }


def test_export_of_trials(foresail, storage: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(foresail("export", storage, "--trials").out)))
    assert [row["status"] for row in rows] == ["suspended", "ended", "diverged", "failed", "suspended"]
    assert [row["config.lr"] for row in rows] == ["0.1", "0.001", "0.9", "0.5", "0.02"]


def test_export_of_the_log_reads_back(foresail, storage: Path, events, tmp_path: Path) -> None:
    from foresail.core import codec

    to = tmp_path / "log.jsonl"
    assert foresail("export", storage, "--to", to).code == 0
    read = [codec.decode(line) for line in to.read_text().splitlines()]
    assert [codec.encode(event) for event in read] == [codec.encode(event) for event in events]


def test_export_as_a_trace(foresail, storage: Path, tmp_path: Path) -> None:
    called = foresail("export", storage, "--to", tmp_path / "digits-trace", "--json")
    assert called.code == 0
    assert called.json["format"] == "trace"
    assert json.loads((tmp_path / "digits-trace" / "trace.json").read_text())


def test_export_does_not_replace_a_file_unasked(foresail, storage: Path, tmp_path: Path) -> None:
    to = tmp_path / "points.csv"
    to.write_text("mine")
    assert foresail("export", storage, "--to", to).code == 2
    assert to.read_text() == "mine"
    assert foresail("export", storage, "--to", to, "--force").code == 0
    assert to.read_text().startswith("trial,step")


def test_watch_of_a_study_that_has_ended_tells_its_end(foresail, golden, storage: Path, monkeypatch) -> None:
    monkeypatch.chdir(storage.parent)
    called = foresail("watch", storage)
    assert called.code == 0
    golden("summary.txt", called.out)


def test_watch_of_a_study_that_nobody_drives_says_how_to_go_on(foresail, events, tmp_path: Path) -> None:
    called = foresail("watch", store(tmp_path / "left.db", events[:-1]))
    assert called.code == 4
    assert "foresail resume" in called.err


def test_watch_as_json_gives_events(foresail, storage: Path, events) -> None:
    assert foresail("watch", storage, "--json").code == 0
    assert json.loads(foresail("export", storage, "--format", "jsonl").out.splitlines()[0])["event"] == "StudyCreated"


def test_reading_changes_nothing(foresail, storage: Path) -> None:
    before = storage.read_bytes()
    for command in (("status",), ("best",), ("explain", 0), ("export",), ("doctor",)):
        assert foresail(*command, storage).code == 0
    assert storage.read_bytes() == before


def test_storage_may_be_left_out_where_there_is_one(foresail, storage: Path, monkeypatch) -> None:
    monkeypatch.chdir(storage.parent)
    assert foresail("best", "--json").json["trial"] == 0
