"""What an attempt of an earlier driver left behind: its last words, and seldom processes."""

from __future__ import annotations

import fcntl
import os
import platform
import select
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from foresail.core import events as ev
from foresail.core.events import Fact
from foresail.errors import HostError
from foresail.executors.ending import Death, classify, last_line
from foresail.executors.listening import Listener
from foresail.ports import Clock
from foresail.worker.folder import AttemptFolder

_DYING_S: Final = 2.0
"""Seconds that processes of a dead driver get to end by themselves, as they are about to."""

_KILLED_S: Final = 10.0


def collect(folder: AttemptFolder, listener: Listener, clock: Clock, *, command: bool) -> list[Fact]:
    """The facts of an attempt whose driver is gone, from its start to its end.

    Raises:
        HostError: a process of it lives and cannot be ended.
    """
    for alive in (folder.alive, *folder.path.glob("rank-*/alive")):
        end_processes(alive)
    now_s = clock.now_s()
    attempt = listener.attempt
    began = [ev.AttemptStarted(at_s=now_s, attempt=attempt)] if folder.alive.exists() else []
    facts = listener.last_facts(now_s)
    complaint = last_line(folder.stderr)
    outcome, detail = classify(Death(farewell=listener.farewell, code=None, command=command, complaint=complaint))
    detail = "; ".join(part for part in (detail, listener.loss) if part)
    listener.close()
    return [*began, *facts, ev.AttemptEnded(at_s=now_s, attempt=attempt, outcome=outcome, detail=detail)]


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
