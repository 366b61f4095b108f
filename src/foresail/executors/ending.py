"""How an attempt ended, from its farewell, its exit code and what we did to it."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from foresail.core.words import Outcome
from foresail.worker.spool import Farewell

_TAIL_BYTES: Final = 4096
_OURS: Final = (Outcome.COMPLETED, Outcome.YIELDED)
_FROM_OUTSIDE: Final = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_MEMORY_WORDS: Final = ("out of memory", "memoryerror", "cannot allocate memory", "can't allocate memory")


COULD_NOT_BEGIN: Final = 75
"""Exit code of a process that could not make its files: the host's fault, to be tried again (EX_TEMPFAIL)."""


class Death(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of an end. `code` below 0: minus the signal; None: nobody saw the end.

    `killed`: we sent a signal. `oom_kills`: processes killed for memory while it ran. `complaint`: the last line that
    it printed on stderr.
    """

    farewell: Farewell | None
    code: int | None
    command: bool = False
    killed: bool = False
    oom_kills: int = 0
    complaint: str = ""


def classify(death: Death) -> tuple[Outcome, str]:
    """The outcome, with a line for people."""
    farewell, code = death.farewell, death.code
    if death.killed and (farewell is None or farewell.outcome not in _OURS or death.command):
        return Outcome.KILLED, farewell.detail if farewell is not None else ""  # what it raised then was our doing
    if farewell is not None and (not death.command or code == 0 or farewell.outcome not in _OURS):
        return farewell.outcome, farewell.detail
    if code is None:
        return Outcome.LOST, "it vanished with the driver"
    if code < 0:
        return _by_signal(-code, death)
    if code == 0 and death.command:
        return Outcome.COMPLETED, ""
    if any(word in death.complaint.lower() for word in _MEMORY_WORDS):
        return Outcome.OUT_OF_MEMORY, death.complaint
    said = f": {death.complaint}" if death.complaint else ""
    left = "" if death.command else " before the training function returned"
    return Outcome.FAILED, f"exit code {code}{left}{said}"


def _by_signal(number: int, death: Death) -> tuple[Outcome, str]:
    if number == signal.SIGKILL and death.oom_kills:
        return Outcome.OUT_OF_MEMORY, "the kernel killed it for memory"
    if number in _FROM_OUTSIDE:
        return Outcome.LOST, f"killed from outside by {_name(number)}"
    return Outcome.FAILED, f"died of {_name(number)}"


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"  # most real-time signals have no name


def last_line(path: Path) -> str:
    """The last line of a log that says something."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            lines: Sequence[str] = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "")
