"""Bad calls: one block, its exit code, no traceback."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from foresail.cli.exits import MEANINGS, Exit
from foresail.cli.main import COMMANDS
from foresail.errors import HostError


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["statu"], "did you mean 'status'?"),
        (["exlpain"], "did you mean 'explain'?"),
        (["frobnicate"], "allowed: best, "),
        (["status", "digit.db"], "did you mean 'digits.db'?"),
        (["status", "--jsn"], "--json"),
        (["best", "empty.db"], "the file is empty"),
        (["explain"], "Missing argument"),
        (["explain", "12", "digits.db"], "trials 0 to 4"),
        (["explain", "best", "digits.db"], "the number of a trial"),
        (["explain", "digits.db"], "foresail explain 12 digits.db"),
        (["explain", "-1", "digits.db"], "-1"),
        (["export", "digits.db", "--format", "trace"], "--to"),
        (["export", "digits.db", "--to", "x.xls"], "csv, jsonl, trace"),
        (["export", "digits.db", "--format", "xls"], "xls"),
        (["run"], "Missing argument"),
        (["run", "nowhere.toml"], "there is no file nowhere.toml"),
        (["run", "digits.db"], "no text in UTF-8"),
        (["run", "nowhere.toml", "--workers", "two"], "two"),
        (["resume", "nowhere.db"], "there is no study at nowhere.db"),
        (["resume", "notes.txt"], "notes.txt"),
        (["status", "."], "folder"),
    ],
)
def test_the_callers_mistakes(foresail, storage: Path, monkeypatch, args: list[str], says: str) -> None:
    monkeypatch.chdir(storage.parent)
    (storage.parent / "empty.db").touch()
    notes = storage.parent / "notes.txt"
    notes.write_text("no study\n" * 400)
    called = foresail(*args)
    assert called.code in (Exit.CALLER, Exit.HOST)
    assert called.out == ""
    assert called.err.startswith("error:   ")
    assert says in called.err
    assert "Traceback" not in called.err
    assert notes.read_text() == "no study\n" * 400


def test_an_error_as_json_is_on_stderr_in_its_parts(foresail) -> None:
    called = foresail("status", "nowhere.db", "--json")
    assert called.out == ""
    error = json.loads(called.err)
    assert error["exit"] == called.code == Exit.CALLER
    assert error["error"]["what"] == "there is no study at nowhere.db"


def test_a_damaged_storage_is_the_hosts_fault(foresail, storage: Path) -> None:
    with storage.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 2048)
    called = foresail("status", storage)
    assert called.code == Exit.HOST
    assert "damaged" in called.err


def test_a_bug_shows_its_traceback_and_asks_for_a_report(foresail, storage: Path, monkeypatch) -> None:
    monkeypatch.setattr("foresail.api.recorded.result_of", lambda *args: 1 / 0)
    called = foresail("status", storage)
    assert called.code == Exit.BUG
    assert "ZeroDivisionError" in called.err
    assert "please report" in called.err


def test_an_error_of_the_system_is_told_without_a_traceback(foresail, storage: Path, tmp_path: Path) -> None:
    called = foresail("export", storage, "--to", tmp_path / "nowhere" / "points.csv")
    assert called.code == Exit.HOST
    assert "nowhere" in called.err
    assert "Traceback" not in called.err


def test_a_host_error_of_a_command(foresail, storage: Path, monkeypatch) -> None:
    def full(*args: object) -> None:
        raise HostError("the disk is full", do="make room")

    monkeypatch.setattr("foresail.api.recorded.result_of", full)
    called = foresail("best", storage)
    assert (called.code, called.err) == (Exit.HOST, "error:   the disk is full\ndo:      make room\n")


def test_two_storages_in_a_folder_are_named(foresail, tmp_path: Path, monkeypatch) -> None:
    for name in ("a.db", "b.db"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    called = foresail("best")
    assert called.code == Exit.CALLER
    assert "allowed: a.db, b.db" in called.err


def test_help_lists_every_command_that_is_there_and_every_exit_code(foresail) -> None:
    called = foresail("--help")
    assert called.code == 0
    for name in ("run", "resume", "status", "watch", "best", "explain", "export", "doctor"):
        assert COMMANDS[name] in called.out
    for code, meaning in MEANINGS.items():
        assert f"{code:>3}  {meaning[:40]}" in called.out
    assert foresail().out == called.out


def test_every_command_has_its_help_and_json(foresail) -> None:
    listed = foresail("--help").out
    for name in COMMANDS:
        if f"  {name} " in listed:
            told = foresail(name, "--help")
            assert told.code == 0
            assert "--json" in told.out


def test_a_storage_of_a_newer_version(foresail, storage: Path) -> None:
    with closing(sqlite3.connect(storage)) as log:
        log.execute("PRAGMA user_version = 99")
    for command in ("status", "best", "resume"):
        called = foresail(command, storage)
        assert called.code == Exit.CALLER
        assert "schema 99" in called.err
        assert "newer Foresail" in called.err


@pytest.fixture
def study(tmp_path: Path) -> Path:
    file = tmp_path / "study.toml"
    file.write_text(
        """
[study]
command = ["true"]
[goal]
maximize = "accuracy"
trials = 2
[space]
lr = {type = "float", low = 0.1, high = 1.0}
"""
    )
    return file


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--policy", "pup"], "did you mean 'pop'?"),
        (["--search", "sobool"], "did you mean 'sobol'?"),
        (["--workers", "0"], "study.workers = 0"),
        (["--seed", "-1"], "study.seed = -1"),
        (["--within", "soon"], "is no duration"),
        (["--trials", "0"], "trials 0"),
        (["--target", "nan"], "target nan"),
        (["--cores-per-trial", "4096"], "offers"),
        (["--storage", "nowhere/../study.toml"], "study.toml"),
        (["--max-steps", "many"], "many"),
        (["--polcy", "pop"], "--policy"),
    ],
)
def test_bad_options_of_run(foresail, study: Path, monkeypatch, options: list[str], says: str) -> None:
    monkeypatch.chdir(study.parent)
    text = study.read_text()
    called = foresail("run", study, *options)
    assert called.code == Exit.CALLER
    assert called.out == ""
    assert says in called.err
    assert "Traceback" not in called.err
    assert study.read_text() == text


def test_another_study_in_the_storage_is_not_touched(foresail, study: Path, storage: Path) -> None:
    before = storage.read_bytes()
    called = foresail("run", study, "--storage", storage)
    assert called.code == Exit.CALLER
    assert "holds another study" in called.err
    assert "foresail resume" in called.err
    assert storage.read_bytes() == before


@pytest.mark.slow
def test_a_metric_that_is_never_reported(foresail, study: Path) -> None:
    called = foresail("run", study)
    assert called.code in (Exit.UNREACHED, Exit.FAILING)
    assert "ended without a single report of 'accuracy'" in called.out
    assert "no result" in called.out
