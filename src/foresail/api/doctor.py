"""Whether a machine and a storage are in order: each check says what it found and, where it matters, what to do."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from foresail.api import wording
from foresail.api.machine import usable_cores
from foresail.api.recorded import driver_of, folder_of, is_locked, load_events, view_of
from foresail.core.view import View
from foresail.errors import ForesailError

LEAST_PYTHON = (3, 11)
LEAST_BYTES = 2_000_000_000
"""Less room than this on the disk is warned of: a study keeps up to 10 GB of checkpoints unless told otherwise."""
MOST_SKEW_S = 5.0
"""Seconds that the clock of the disk may differ from the machine's."""


class State(StrEnum):
    OK = "ok"
    NOTE = "note"  # worth knowing, works all the same
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found. `do` is empty where nothing need be done."""

    check: str
    state: State
    found: str
    do: str = ""


def examine(folder: Path, storage: Path | None = None) -> list[Finding]:
    """All checks: of the machine, of `folder` as a place for storages, and of `storage` if it is given."""
    findings = [check() for check in (_python, _cores, _threads, _torch, _optuna, _fork)]
    for of_folder in (_room, _writes, _journal, _clock):
        findings.append(of_folder(folder))
    findings += _guarded("leftovers", leftovers)
    if storage is not None:
        findings += _guarded("storage", lambda: _storage(storage))
    return findings


def _guarded(check: str, run: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    try:
        yield from run()
    except ForesailError as error:
        yield Finding(check, State.FAIL, error.what, "; ".join(part for part in (error.allowed, error.do) if part))


# --- the machine -------------------------------------------------------------------------------------------------


def _python() -> Finding:
    found = (
        f"{platform.python_version()} ({platform.python_implementation()}) on {platform.system()} {platform.machine()}"
    )
    if sys.version_info < LEAST_PYTHON:
        return Finding("python", State.FAIL, found, "install Python 3.11 or newer")
    return Finding("python", State.OK, found)


def _cores() -> Finding:
    usable, whole = len(usable_cores()), os.cpu_count() or 1
    found = wording.count(usable, "core")
    if usable < whole:
        found += f" of {whole}: affinity or a container's limit takes the others"
    return Finding("cores", State.OK, found)


def _threads() -> Finding:
    from foresail.executors.cores import THREAD_VARIABLES, set_by_user

    mine = set_by_user(os.environ)
    if not mine:
        return Finding("threads", State.OK, f"{len(THREAD_VARIABLES)} variables are free: a trial gets a thread a core")
    shown = ", ".join(f"{name}={os.environ[name]}" for name in mine)
    return Finding("threads", State.NOTE, f"{shown}: your setting wins in every trial", "unset what was not meant so")


def _torch() -> Finding:
    return _library("torch", "only studies that train with PyTorch need it", "pip install 'foresail[torch]'")


def _optuna() -> Finding:
    return _library("optuna", "only the searches tpe, gp and cmaes need it", "pip install 'foresail[optuna]'")


def _library(name: str, need: str, do: str) -> Finding:
    """Its version, read without importing it."""
    try:
        return Finding(name, State.OK, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, State.NOTE, f"not installed; {need}", do)


def _fork() -> Finding:
    if hasattr(os, "fork") and sys.platform == "linux":
        return Finding("fork", State.OK, "attempts are forked from a template that has done the imports")
    if hasattr(os, "fork"):
        return Finding("fork", State.NOTE, f"there is fork, but on {sys.platform} processes may outlive the driver")
    return Finding("fork", State.FAIL, f"{sys.platform} has no fork", "run studies on Linux, or in WSL")


# --- a folder ----------------------------------------------------------------------------------------------------


def _room(folder: Path) -> Finding:
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return Finding("disk", State.FAIL, f"{folder}: {error.strerror}", "name a folder that exists")
    found = f"{wording.size(free)} free in {folder.resolve()}"
    if free < LEAST_BYTES:
        return Finding("disk", State.NOTE, found, "make room, or set study.keep lower")
    return Finding("disk", State.OK, found)


def _writes(folder: Path) -> Finding:
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".foresail-doctor-") as file:
            file.write(b"x")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return Finding("writing", State.FAIL, f"{folder.resolve()}: {error.strerror}", "choose a folder of your own")
    return Finding("writing", State.OK, "files can be made and synced")


def _journal(folder: Path) -> Finding:
    from foresail.stores.filesystem import network_kind

    kind = network_kind(folder)
    if kind:
        text = f"a network file system ({kind}): no write-ahead log there; readers and the writer wait for one another"
        return Finding("log", State.NOTE, text, "keep the storage on a local disk")
    try:
        mode = _journal_mode(folder)
    except (OSError, sqlite3.Error) as error:
        return Finding("log", State.FAIL, f"SQLite cannot work there: {error}", "choose another folder")
    if mode != "wal":
        return Finding(
            "log", State.NOTE, f"SQLite gives journal mode {mode!r} there", "keep the storage on a local disk"
        )
    return Finding("log", State.OK, f"SQLite {sqlite3.sqlite_version} with a write-ahead log")


def _journal_mode(folder: Path) -> str:
    with (
        tempfile.TemporaryDirectory(dir=folder, prefix=".foresail-doctor-") as place,
        closing(sqlite3.connect(Path(place) / "probe.db")) as probe,
    ):
        mode: str = probe.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        probe.execute("CREATE TABLE probe (x)")
        probe.commit()
    return mode


def _clock(folder: Path) -> Finding:
    """Study time comes from the monotonic clock; the wall clock only matters to people and to shared disks."""
    info = time.get_clock_info("monotonic")
    found = f"monotonic to {info.resolution:.0e} s"
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".foresail-doctor-") as file:
            skew_s = os.fstat(file.fileno()).st_mtime - time.time()
    except OSError:
        return Finding("clock", State.NOTE, f"{found}; the disk's could not be compared")
    if abs(skew_s) > MOST_SKEW_S:
        return Finding(
            "clock", State.NOTE, f"{found}; the disk's differs by {skew_s:.0f} s", "set the machines' clocks"
        )
    return Finding("clock", State.OK, f"{found}; the disk's agrees")


def leftovers() -> Iterator[Finding]:
    """Templates whose driver is gone."""
    import psutil

    found = []
    for process in psutil.process_iter(["pid", "ppid", "cmdline"]):
        line = " ".join(process.info["cmdline"] or ())
        if "foresail.executors.template" in line and process.info["ppid"] == 1:
            found.append(process.info["pid"])
    if found:
        pids = " ".join(map(str, found))
        yield Finding(
            "leftovers", State.NOTE, f"templates without a driver: {pids}", f"they end soon; else kill {pids}"
        )
    else:
        yield Finding("leftovers", State.OK, "no process without a driver")


# --- a storage ---------------------------------------------------------------------------------------------------


def _storage(storage: Path) -> Iterator[Finding]:
    events = load_events(storage)
    view = view_of(events, storage)
    trials = f"{wording.count(len(view.trials), 'trial')}, {wording.count(view.points, 'point')}"
    size = wording.size(storage.stat().st_size)
    yield Finding("storage", State.OK, f"{len(events)} events whole and in order; {trials}; {size}")
    yield _driver(storage, view)
    yield from _checkpoints(view, folder_of(storage))
    yield from _living(storage, folder_of(storage))


def _driver(storage: Path, view: View) -> Finding:
    driver = driver_of(storage)
    if driver is not None:
        return Finding("driver", State.OK, f"at work: {driver}")
    if view.ended is not None:
        return Finding("driver", State.OK, f"none; the study has ended ({view.ended.end})")
    text = f"none, and the study has not ended; {wording.count(len(view.attempts), 'attempt')} under way when it went"
    return Finding("driver", State.NOTE, text, f"foresail resume {wording.shell(storage)}")


def _checkpoints(view: View, folder: Path) -> Iterator[Finding]:
    missing = [path for path in view.checkpoints if not (folder / path).exists()]
    if missing:
        text = f"{len(missing)} of {len(view.checkpoints)} are not where they were saved, {folder / missing[0]} first"
        yield Finding("checkpoints", State.FAIL, text, f"move {folder.name} back beside the storage")
    else:
        size = wording.size(view.checkpoint_bytes)
        yield Finding("checkpoints", State.OK, f"{len(view.checkpoints)} in place, {size}")


def _living(storage: Path, folder: Path) -> Iterator[Finding]:
    """Attempts that hold their lock though nobody drives the study."""
    if driver_of(storage) is not None or not (folder / "attempts").is_dir():
        return
    alive = [lock for lock in sorted(folder.glob("attempts/*/alive")) if is_locked(lock)]
    if alive:
        shown = ", ".join(f"{lock.parent.name} (process group {lock.read_text()})" for lock in alive)
        do = f"foresail resume {wording.shell(storage)} ends them and goes on"
        yield Finding("attempts", State.FAIL, f"alive without a driver: {shown}", do)
    else:
        yield Finding("attempts", State.OK, "none is alive without a driver")
