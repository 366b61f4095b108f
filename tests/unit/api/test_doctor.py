"""What the doctor finds, on a sound machine and on unsound ones."""

from __future__ import annotations

import os
import sqlite3
from collections import namedtuple
from pathlib import Path

import pytest

from foresail.api import doctor
from foresail.api.doctor import Finding, State, examine

Usage = namedtuple("Usage", ("total", "used", "free"))


def found(findings: list[Finding], check: str) -> Finding:
    return next(finding for finding in findings if finding.check == check)


def test_a_sound_folder(tmp_path: Path) -> None:
    findings = examine(tmp_path)
    for check in ("python", "cores", "writing", "log", "clock"):
        assert found(findings, check).state is State.OK
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    findings = examine(tmp_path / "nowhere")
    assert found(findings, "writing").state is State.FAIL
    assert found(findings, "disk").state is State.FAIL
    assert found(findings, "log").state is State.FAIL


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert found(examine(tmp_path), "writing").state is State.FAIL


def test_little_room_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda folder: Usage(10**12, 10**12, 10**6))
    disk = found(examine(tmp_path), "disk")
    assert disk.state is State.NOTE
    assert "1 MB free" in disk.found
    assert "study.keep" in disk.do


def test_threads_that_the_user_set_are_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    threads = found(examine(tmp_path), "threads")
    assert threads.state is State.NOTE
    assert "OMP_NUM_THREADS=3" in threads.found


def test_a_network_file_system_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foresail.stores.filesystem.network_kind", lambda path: "nfs4")
    log = found(examine(tmp_path), "log")
    assert (log.state, "nfs4" in log.found) == (State.NOTE, True)


def test_sqlite_that_does_not_work_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(doctor, "_journal_mode", refuse)
    assert found(examine(tmp_path), "log").state is State.FAIL


def test_a_storage_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("no study\n" * 400)
    storage = found(examine(tmp_path, tmp_path / "notes.db"), "storage")
    assert storage.state is State.FAIL
    assert storage.do
