"""Processes of an attempt that have left its group: a launcher such as `torchrun` gives each rank a session of its own.

They are known by their environment, which holds the attempt's folder; where the kernel shows none, nobody is a stray.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

VARIABLE = "FORESAIL_ATTEMPT"


def end_strays(folder: Path, among: Iterable[int], number: int = signal.SIGKILL) -> bool:
    """Send a signal (0: none) to those of the processes that belong to the folder's attempt; whether there was one.

    Of the dead that nobody has reaped yet, the kernel tells no environment.
    """
    told, found = f"{VARIABLE}={folder}".encode(), False
    for pid in among:
        with suppress(OSError):
            if pid != os.getpid() and told in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                os.kill(pid, number)
                found = True
    return found


def own_children() -> list[int]:
    """Processes whose parent this one is, where the kernel tells."""
    try:
        text = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    except OSError:
        return []
    return [int(pid) for pid in text.split()]


def everybody() -> list[int]:
    """All processes, where the kernel tells."""
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
