"""One writer a log: a lock that names its holder, on a file beside the log.

The kernel lets the lock go when its holder dies, however it dies, so there is no stale lock to clean up; the name in
the file is for the message alone. The file stays as long as the log does (removing it would let two processes each
hold "the" lock), and it also carries the mark: how many rows the log had. After a crash the log can be held against
it, so a loss is noticed even where what is left looks whole.

    line 1, padded to 512 bytes: {"host": ..., "pid": ..., "started": ..., "since": ...}
    line 2: number of the last row, checksum of the first row
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
import weakref
from pathlib import Path
from typing import NamedTuple

from foresail.errors import CallerError, HostError

_NAME_BYTES = 512
_MARK_BYTES = 30


class Mark(NamedTuple):
    """`last`: number of the last row that was written. `first_crc`: of row 1; tells one study from another."""

    last: int
    first_crc: int


class WriterLock:
    """Held from `take` to `release`, or to the death of the process. Forked children do not keep it."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor: int | None = descriptor
        if hasattr(os, "register_at_fork"):
            me = weakref.ref(self)
            os.register_at_fork(after_in_child=lambda: _drop(me()))

    @classmethod
    def take(cls, log: Path) -> WriterLock:
        """The lock of the log at `log`.

        Raises:
            CallerError: another process, or this one, writes the log already; it is named.
            HostError: the lock file cannot be written.
        """
        path = log.with_name(log.name + ".lock")
        return cls(path, _take(path, log))

    def hold(self, log: Path) -> bool:
        """Make sure that the lock is held; whether it had to be taken anew, since its file was removed.

        Raises:
            CallerError: another process took it meanwhile; it is named.
            HostError: the lock file cannot be written.
        """
        if self._descriptor is None or os.fstat(self._descriptor).st_nlink:
            return False
        fresh = _take(self.path, log)
        os.close(self._descriptor)
        self._descriptor = fresh
        return True

    def mark(self) -> Mark | None:
        """What the last writer noted; None if it noted nothing."""
        assert self._descriptor is not None
        words = _read(self._descriptor, _NAME_BYTES, _MARK_BYTES).split()
        try:
            return Mark(int(words[0]), int(words[1], 16))
        except (IndexError, ValueError):
            return None

    def note(self, last: int, first_crc: int) -> None:
        """Note the number of the last row. Survives the process, not necessarily the machine."""
        assert self._descriptor is not None
        try:
            _write(self._descriptor, _NAME_BYTES, b"%020d %08x\n" % (last, first_crc))
        except OSError:
            pass  # the rows are safe, and an older mark is still true: it says how many there were at least

    def remove(self) -> None:
        """Remove the file. Only where there is no log that it could guard."""
        self.path.unlink(missing_ok=True)

    def release(self) -> None:
        """Let another writer in. Releasing twice is harmless."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _take(path: Path, log: Path) -> int:
    """The descriptor of a lock that is ours from now on, and signed."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise HostError(
            f"cannot write {path}: {error.strerror}", do="a study is driven from a folder that can be written"
        ) from error
    try:
        taken = _try_lock(descriptor)
    except OSError as error:
        os.close(descriptor)
        raise HostError(f"cannot lock {path}: {error.strerror}", do="use a file system that has locks") from error
    if not taken:
        holder = _name(_read(descriptor, 0, _NAME_BYTES))
        os.close(descriptor)
        raise CallerError(
            f"{log} is being written by {holder}",
            allowed="one driver a study",
            do="wait for it, stop it, or look on with `foresail watch`",
        )
    _sign(descriptor, path)
    return descriptor


def _drop(lock: WriterLock | None) -> None:
    """In a forked child: forget the parent's lock, which stays locked for the parent."""
    if lock is not None:
        lock.release()


def _sign(descriptor: int, path: Path) -> None:
    me = {
        "host": socket.gethostname()[:128],
        "pid": os.getpid(),
        "started": _process_started(),
        "since": time.strftime("%Y-%m-%d %H:%M:%S%z"),
    }
    try:
        _write(descriptor, 0, json.dumps(me).encode().ljust(_NAME_BYTES - 1) + b"\n")
    except OSError as error:
        os.close(descriptor)
        raise HostError(f"cannot write {path}: {error.strerror}", do="make room, then try again") from error


def _read(descriptor: int, at: int, size: int) -> bytes:
    os.lseek(descriptor, at, os.SEEK_SET)
    return os.read(descriptor, size)


def _write(descriptor: int, at: int, data: bytes) -> None:
    os.lseek(descriptor, at, os.SEEK_SET)
    os.write(descriptor, data)


def _process_started() -> str:
    """When this process began, for people; a process id alone may have been used twice."""
    import psutil

    return time.strftime("%Y-%m-%d %H:%M:%S%z", time.localtime(psutil.Process().create_time()))


def _name(text: bytes) -> str:
    try:
        holder = json.loads(text)
        return (
            f"process {holder['pid']} on {holder['host']} (started {holder['started']}, writing since "
            f"{holder['since']})"
        )
    except (ValueError, KeyError, TypeError):
        return "another process"


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        os.lseek(descriptor, 1 << 30, os.SEEK_SET)  # a locked byte cannot be read there: lock one beyond the text
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
