"""doctor on storages: whole, left behind, with checkpoints that are gone."""

from __future__ import annotations

import fcntl
import shutil
from pathlib import Path

from stored_study import store


def checks(called) -> dict[str, dict[str, str]]:
    return {finding["check"]: finding for finding in called.json}


def test_a_sound_storage(foresail, storage: Path) -> None:
    called = foresail("doctor", storage, "--json")
    assert called.code == 0
    told = checks(called)
    assert told["storage"]["found"].startswith("41 events whole and in order; 5 trials, 9 points")
    assert told["driver"]["found"] == "none; the study has ended (target)"
    assert told["checkpoints"]["found"] == "2 in place, 2.4 MB"


def test_checkpoints_that_are_gone(foresail, storage: Path) -> None:
    shutil.rmtree(storage.with_suffix(".runs") / "checkpoints")
    called = foresail("doctor", storage, "--json")
    assert called.code == 3
    assert checks(called)["checkpoints"]["found"].startswith("2 of 2 are not where they were saved")


def test_a_study_that_was_left_says_how_to_go_on(foresail, events, tmp_path: Path) -> None:
    called = foresail("doctor", store(tmp_path / "left.db", events[:17]), "--json")
    assert called.code == 0
    driver = checks(called)["driver"]
    assert driver["state"] == "note"
    assert "foresail resume" in driver["do"]


def test_an_attempt_that_lives_without_a_driver(foresail, storage: Path) -> None:
    alive = storage.with_suffix(".runs") / "attempts" / "3-1" / "alive"
    alive.write_text("4711")
    with alive.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        called = foresail("doctor", storage, "--json")
    assert called.code == 3
    assert "3-1 (process group 4711)" in checks(called)["attempts"]["found"]


def test_text_has_a_line_a_check_and_what_to_do_below(foresail, events, tmp_path: Path) -> None:
    called = foresail("doctor", store(tmp_path / "left.db", events[:17]))
    lines = called.out.splitlines()
    driver = next(n for n, line in enumerate(lines) if " driver " in line)
    assert lines[driver].startswith("note")
    assert lines[driver + 1].strip().startswith("-> foresail resume")
