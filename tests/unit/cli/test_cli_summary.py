"""The end of a study that did not go well: what is told, and what to do."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace
from stored_study import SPEC, ended, granted, life, point, proposed, saved, store

from foresail.api import wording
from foresail.core import events as ev
from foresail.core.words import Outcome, Status, TrialId

LOST = "exit code 1: ModuleNotFoundError: No module named 'foresail'"


def failing(details: list[str]) -> list[ev.Event]:
    log: list[ev.Event] = [ev.StudyCreated(at_s=0.0, spec=SPEC), ev.DriverStarted(at_s=0.0, cores=(0,), host="myhost")]
    log += [proposed(n, 0.1 * (n + 1)) for n in range(len(details))]
    for n, detail in enumerate(details):
        log += [
            granted(1.0, n, 1, core=0),
            ended(1.0, n, Outcome.FAILED, code=1, detail=detail),
            ev.TrialEnded(at_s=1.0, trial=TrialId(n), status=Status.FAILED, detail=detail),
        ]
    return [*log, ev.StudyEnding(at_s=1.0, end="failing", why="all"), ev.StudyEnded(at_s=1.0, end="failing", why="all")]


@pytest.fixture
def pythons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that PATH has alone, with another `python` in it."""
    place = tmp_path / "bin"
    place.mkdir()
    (place / "python").write_text("#!/bin/sh\n")
    (place / "python").chmod(0o755)
    monkeypatch.setattr(os, "environ", {**os.environ, "PATH": str(place)})
    return place


def test_trials_that_fail_alike_are_told_once(foresail, tmp_path: Path) -> None:
    told = foresail("watch", store(tmp_path / "x.db", failing(["ValueError: a"] * 4 + ["ValueError: b"]))).out
    assert told.count("ValueError: a") == 1
    assert "failed trial 0 and 3 others: ValueError: a\n  lr=0.1" in told
    assert "failed trial 4: ValueError: b" in told


def test_a_study_without_a_result_says_how_to_begin_anew(foresail, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "rm -r x.db x.runs" in foresail("watch", store(Path("x.db"), failing(["ValueError: a"]))).out


def test_a_script_that_another_python_runs_is_noticed(foresail, tmp_path: Path, pythons: Path, monkeypatch) -> None:
    monkeypatch.setattr("shutil.which", lambda program: str(pythons / program))
    told = foresail("watch", store(tmp_path / "x.db", failing([LOST]))).out
    assert f"'python' is {pythons / 'python'}; Foresail is installed for {sys.executable}" in told
    told = foresail("watch", store(tmp_path / "y.db", failing(["ValueError: a"]))).out
    assert "is installed for" not in told


@pytest.mark.parametrize(
    ("command", "kept", "says"),
    [
        (("python", "train.py"), False, "foresail.checkpoint_dir()"),
        ((), False, "run.track"),
        ((), True, "trial 0 ended before the first was due"),
    ],
)
def test_why_the_best_has_no_checkpoint(foresail, tmp_path: Path, command, kept: bool, says: str) -> None:
    spec = replace(SPEC, entry=replace(SPEC.entry, command=command, function="" if command else "train:train"))
    log: list[ev.Event] = [ev.StudyCreated(at_s=0.0, spec=spec)]
    log += [ev.DriverStarted(at_s=0.0, cores=(0, 1), host="myhost"), *(proposed(n, 0.1) for n in (0, 1))]
    for n in (0, 1):
        log += [granted(0.0, n, 1, core=n), ev.AttemptStarted(at_s=0.0, attempt=life(n, 1))]
    log += [point(0, 1, 0.9, at_s=1.0), point(1, 1, 0.8, at_s=1.0), *([saved(2.0, 1, 1)] if kept else [])]
    assert says in foresail("best", store(tmp_path / "x.db", log)).out


def test_commands_are_named_as_the_shell_finds_them(tmp_path: Path, pythons: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(pythons / "python"))
    assert wording.program() == "foresail"  # not installed beside this Python: by its name
    (pythons / "foresail").write_text("#!/bin/sh\n")
    assert wording.program() == "bin/foresail"
    (pythons / "foresail").chmod(0o755)
    assert wording.program() == "foresail"
