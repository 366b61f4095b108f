"""What an attempt of an earlier driver left behind: its last words, and seldom processes."""

from __future__ import annotations

import fcntl
import os
import platform
import select
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from foresail.core import events as ev
from foresail.core.commands import Launch
from foresail.core.events import Fact
from foresail.core.words import AttemptId
from foresail.errors import HostError
from foresail.executors.ending import Death, classify, last_line
from foresail.executors.listening import Listener
from foresail.executors.strays import end_strays, everybody
from foresail.ports import Clock
from foresail.worker.folder import AttemptFolder, StudyFolder
from foresail.worker.grant import read_grant

_DYING_S: Final = 2.0
"""Seconds that processes of a dead driver get to end by themselves, as they are about to."""

_KILLED_S: Final = 10.0

_TELLING: Final = ("trial", "number", "config", "cores", "resume_step")
"""Parts of a grant by which one is told from another."""


def collect(folder: AttemptFolder, listener: Listener, clock: Clock, *, command: bool) -> list[Fact]:
    """The facts of an attempt whose driver is gone, from its start to its end.

    Raises:
        HostError: a process of it lives and cannot be ended.
    """
    for alive in (folder.alive, *folder.path.glob("rank-*/alive")):
        end_processes(alive)
    end_strays(folder.path, everybody())
    now_s = clock.now_s()
    attempt = listener.attempt
    began = [ev.AttemptStarted(at_s=now_s, attempt=attempt)] if folder.alive.exists() else []
    facts = listener.last_facts(now_s)
    complaint = last_line(folder.stderr)
    outcome, detail = classify(Death(farewell=listener.farewell, code=None, command=command, complaint=complaint))
    detail = "; ".join(part for part in (detail, listener.loss) if part)
    listener.close()
    return [*began, *facts, ev.AttemptEnded(at_s=now_s, attempt=attempt, outcome=outcome, detail=detail)]


def is_same_launch(folder: AttemptFolder, launch: Launch) -> bool:
    """Whether what lies in the folder was told the same. A log that was torn may have lost a grant and given its number
    again, to another start of the trial."""
    try:
        there = read_grant(folder)
    except (OSError, msgspec.DecodeError):
        return False
    return all(getattr(there, part) == getattr(launch, part) for part in _TELLING)


def set_apart(folder: AttemptFolder) -> Path:
    """End what still lives of an attempt that the log does not know, and move its folder aside; its new place.

    Raises:
        HostError: a process of it lives and cannot be ended.
    """
    end_processes(folder.alive)
    n = 1
    while (aside := folder.path.with_name(f"{folder.path.name}.lost-{n}")).exists():
        n += 1
    os.replace(folder.path, aside)
    return aside


def set_strangers_apart(study: StudyFolder, known: Mapping[AttemptId, Launch]) -> list[Path]:
    """Set apart what lives, or claims to be one of the `known` live attempts, and is not what the log tells.

    Raises:
        HostError: a process lives and cannot be ended.
    """
    moved = []
    for alive in sorted((study.root / "attempts").glob("*/alive")):
        attempt = AttemptId(alive.parent.name)
        folder = study.attempt(attempt)
        is_ours = attempt in known and is_same_launch(folder, known[attempt])
        if not is_ours and ".lost-" not in attempt and (attempt in known or not _wait_free(alive)):
            moved.append(set_apart(folder))
    return moved


def _wait_free(alive: Path) -> bool:
    """Whether nobody holds the lock, now."""
    lock = os.open(alive, os.O_RDWR)
    try:
        return _wait(lock, 0.0)
    finally:
        os.close(lock)


def end_processes(alive: Path) -> None:
    """End whatever still holds an attempt's lock.

    The lock proves that the group lives, so its number is no other's.
    """
    try:
        lock = os.open(alive, os.O_RDWR)
    except FileNotFoundError:
        return
    try:
        if _wait(lock, _DYING_S):
            return
        group, _, host = alive.read_text().partition(" ")
        if host in ("", platform.node()):  # another machine's number means another process here
            with suppress(ProcessLookupError, ValueError):
                os.killpg(int(group), signal.SIGKILL)
        if not _wait(lock, _KILLED_S):
            raise HostError(f"a process of attempt {alive.parent.name} cannot be ended", do=f"end it: lsof {alive}")
    finally:
        os.close(lock)


def _wait(lock: int, seconds: float) -> bool:
    """Whether everybody has let the lock go within `seconds`."""
    end_s = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end_s:
                return False
            select.select([], [], [], 0.005)
        else:
            return True
