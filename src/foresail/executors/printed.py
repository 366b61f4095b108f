"""What attempts print is bounded on disk, whatever they print; and what attempts leave is tidied when it is recorded.

A log that grows over `MOST_BYTES` is cut: its end is kept in `<name>.1`, and the log goes on empty. Writers have it
open for appending, so they go on at its new end and never notice; what they print while it is cut may be lost. All logs
of the ended attempts of a study together keep to `STUDY_BYTES`: the oldest go first.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from foresail.worker.folder import AttemptFolder

MOST_BYTES: Final = 16 * 2**20
"""A log that is longer is cut."""
KEPT_BYTES: Final = 4 * 2**20
"""So much of its end is kept."""
STUDY_BYTES: Final = 1024 * 2**20
"""Of all ended attempts together."""
EVERY_S: Final = 1.0
"""Seconds between looks at the sizes."""


def bound(folder: AttemptFolder) -> None:
    """Cut the attempt's logs where they are too long. A log that cannot be cut stays as it is."""
    for log in (folder.stdout, folder.stderr):
        with suppress(OSError):
            if log.stat().st_size > MOST_BYTES:
                _cut(log)


def _cut(log: Path) -> None:
    with log.open("r+b") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(size - KEPT_BYTES)
        end = file.read(KEPT_BYTES)
        note = f"[foresail: {size - KEPT_BYTES} bytes before this were cut; {log.name} goes on after it]\n".encode()
        with suppress(OSError):  # no room for it: the cut makes some
            log.with_name(log.name + ".1").write_bytes(note + end)
        file.truncate(0)


def tidy(folder: AttemptFolder) -> int:
    """Remove what nobody needs once the attempt's end is recorded; bytes of logs that stay.

    What it printed stays, and whatever the training code has put there; an empty folder goes.
    """
    for path in (folder.spool, folder.reports, folder.wish, folder.kill, folder.alive, folder.config, folder.grant):
        path.unlink(missing_ok=True)
    kept = 0
    for log in _logs(folder):
        size = log.stat().st_size
        if size:
            kept += size
        else:
            log.unlink()
    with suppress(OSError):
        folder.path.rmdir()
    return kept


def _logs(folder: AttemptFolder) -> Iterable[Path]:
    plain = (folder.stdout, folder.stderr)
    cut = (log.with_name(log.name + ".1") for log in plain)
    return [log for log in (*plain, *cut) if log.is_file()]


class Printed:
    """The logs of a study's ended attempts: those that this driver has seen end, oldest first."""

    def __init__(self, most_bytes: int = STUDY_BYTES) -> None:
        self._most = most_bytes
        self._kept: deque[tuple[AttemptFolder, int]] = deque()
        self._bytes = 0

    def ended(self, folder: AttemptFolder) -> None:
        """Tidy a folder whose attempt's end is recorded; where all logs are too much, the oldest go."""
        try:
            size = tidy(folder)
        except OSError:
            return  # it stays as it is
        if size:
            self._kept.append((folder, size))
            self._bytes += size
        while self._bytes > self._most:
            oldest, size = self._kept.popleft()
            self._bytes -= size
            for log in _logs(oldest):
                log.unlink(missing_ok=True)
