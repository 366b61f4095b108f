"""The spool: the file through which a training process speaks, one JSON line a message.

A line leaves in one `write` on a descriptor opened for appending, so writers never wait for a reader and lines never
mix. A process that dies while it writes leaves at most one torn line, the last; the reader drops it and says so.
Values that are not finite travel as strings, since JSON has none.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from foresail.core.words import Outcome
from foresail.errors import HostError

_CHUNK: Final = 1 << 16
_AGAIN_S: Final = 0.5
"""Seconds between tries to write to a full disk, at the end."""


class _Line(msgspec.Struct, frozen=True, tag=True, tag_field="is", kw_only=True):
    pass


class Horizon(_Line, frozen=True, kw_only=True):
    max_steps: int


class Point(_Line, frozen=True, kw_only=True):
    """`seconds`: of training since the attempt's previous point, saves not counted; None: the driver measures it."""

    step: int
    metrics: dict[str, float | str]
    seconds: float | None = None


class Note(_Line, frozen=True, kw_only=True):
    notes: dict[str, Any]


class Saved(_Line, frozen=True, kw_only=True):
    step: int
    path: str
    bytes: int
    digest: str
    seconds: float


class Farewell(_Line, frozen=True, kw_only=True):
    outcome: Outcome
    detail: str = ""


Line = Horizon | Point | Note | Saved | Farewell

_encode = msgspec.json.Encoder().encode
_decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


def decode_line(line: bytes) -> Line:
    """The message of one line.

    Raises:
        msgspec.DecodeError: the line is damaged.
    """
    return _decoder.decode(line)


def to_wire(metrics: Mapping[str, float]) -> dict[str, float | str]:
    return {name: v if math.isfinite(v) else str(v) for name, v in metrics.items()}


def from_wire(metrics: Mapping[str, float | str]) -> dict[str, float]:
    return {name: float(v) for name, v in metrics.items()}


class Spool:
    """The writing end. `bell`: a pipe that wakes the reader, where there is one.

    What a full disk does not take is kept and goes with the next line: training goes on.
    """

    __slots__ = ("_bell", "_fd", "_unsent")

    def __init__(self, path: Path, *, bell: int | None = None) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._bell = bell
        self._unsent = b""

    def write(self, line: Line) -> None:
        """Hand over one line, without waiting."""
        self._unsent += _encode(line) + b"\n"
        try:
            self._send()
        except OSError:
            return
        if self._bell is not None:
            self._ring(self._bell)

    def _ring(self, bell: int) -> None:
        try:
            os.write(bell, b"!")
        except BlockingIOError:
            pass  # the pipe is full of rings that were not heard yet: one more says nothing
        except OSError:
            self._bell = None  # nobody listens any more

    def _send(self) -> None:
        while self._unsent:
            self._unsent = self._unsent[os.write(self._fd, self._unsent) :]

    def close(self, *, wait: bool = False) -> None:
        """Send what is left. `wait`: until the disk takes it, for as long as the process is left alive.

        Raises:
            HostError: the disk is full or cannot be written; what was said last is lost.
        """
        try:
            while not self._is_sent(wait):
                time.sleep(_AGAIN_S)
        finally:
            os.close(self._fd)
        if self._bell is not None:
            self._ring(self._bell)

    def _is_sent(self, wait: bool) -> bool:
        try:
            self._send()
        except OSError as error:
            if wait:
                return False
            raise HostError(f"reports could not be written: {error}", do="free some disk space") from error
        return True


class SpoolReader:
    """The reading end: whole lines, each once. The file need not exist yet."""

    __slots__ = ("_fd", "_path", "_rest")

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None
        self._rest = b""

    def lines(self) -> list[bytes]:
        """Whole lines since the last call."""
        if self._fd is None:
            try:
                self._fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return []
        data = self._rest
        while chunk := os.read(self._fd, _CHUNK):
            data += chunk
            if len(chunk) < _CHUNK:
                break
        *whole, self._rest = data.split(b"\n")
        return [line for line in whole if line.strip()]

    @property
    def rest(self) -> bytes:
        """What comes after the last whole line."""
        return self._rest

    def end_line(self) -> None:
        """Take the rest for a whole line, which the next `lines` gives. For a file that nobody writes any more."""
        self._rest += b"\n"

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
