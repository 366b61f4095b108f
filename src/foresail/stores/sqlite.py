"""The log of a study in one SQLite file: one writer, any number of readers that never block it.

Rules: an append is one transaction; what was appended is never changed; a query never writes; what is damaged is
named, moved aside and never dropped silently (`stores.salvage`). `stores.rows` has the form of the file.

A write-ahead log keeps readers out of the writer's way. A durable append is synced before it returns
(`synchronous = FULL` for its one commit); the others survive the death of the process, and that of the machine from
the next durable append or checkpoint on. On a network file system a rollback journal is used instead: readers and
the writer then wait for one another.
"""

from __future__ import annotations

import json
import os
import sqlite3
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from foresail.core.events import Event
from foresail.errors import CallerError, HostError, InternalError
from foresail.stores import salvage
from foresail.stores.connect import connect, fault_of, guard, is_frozen, network_file_system
from foresail.stores.lock import WriterLock
from foresail.stores.rows import INSERT, READERS, SELECT, SELECT_SOME, Row, count_intact, follows, rows_of

_CHUNK_ROWS = 1_000
_JOURNAL_BYTES = 64 * 2**20


class SqliteStore:
    """A log in the file at `path`. Made by `open`.

    Attributes:
        path: the file.
        loss: what opening found damaged, or None.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: WriterLock | None) -> None:
        self.path = path
        self.loss: salvage.Loss | None = None
        self._connection = connection
        self._lock = lock
        self._schema = int(connection.execute("PRAGMA user_version").fetchone()[0])
        self._inode = os.stat(path).st_ino
        self._is_frozen = lock is None and is_frozen(path)
        self._last = self._crc = self._first_crc = 0
        if lock is not None:
            self._resume_numbers()

    @classmethod
    def open(cls, path: str | Path, *, write: bool = True) -> Self:
        """The log at `path`.

        A writer makes the file if there is none, and salvages it if it is damaged: everything before the damage is
        kept, `loss` and a `DamageWarning` say what is gone, and the damaged file is moved aside. A reader changes
        nothing, waits for nothing, and may be opened any number of times.

        Raises:
            CallerError: another process writes it; or it is no log of ours, or of a newer version; or a reader asked
                for a file that is not there.
            HostError: the folder or the file cannot be read or written, or (for a reader) the file is damaged.
        """
        path = Path(path)
        with guard(path):
            problem = "is a folder" if path.is_dir() else ""
            if path.exists() and not path.is_dir() and not path.is_file():
                problem = "is a device or a pipe"
            if not path.parent.is_dir():
                problem = f"cannot be: there is no folder {path.parent}"
        if problem:
            raise CallerError(f"storage {path} {problem}", do="name a file in a folder that exists")
        return cls._open_writer(path) if write else cls._open_reader(path)

    @classmethod
    def _open_reader(cls, path: Path) -> Self:
        with guard(path):
            there = path.exists()
        if not there:
            raise CallerError(f"there is no study at {path}", do="check the path, or start one with `foresail run`")
        with guard(path):
            fault = fault_of(path)
        if fault:
            raise _damaged(path, fault)
        with guard(path), ExitStack() as undo:
            connection = connect(path, write=False)
            undo.callback(connection.close)
            store = cls(path, connection, None)
            undo.pop_all()
        return store

    @classmethod
    def _open_writer(cls, path: Path) -> Self:
        with guard(path), ExitStack() as undo:
            lock = WriterLock.take(path)
            undo.callback(lock.release)
            loss = _healed(path, lock)
            connection = connect(path, write=True)
            undo.callback(connection.close)
            _configure(connection, path)
            store = cls(path, connection, lock)
            undo.pop_all()
        store.loss = loss
        lock.note(store._last, store._first_crc)
        if loss is not None:
            warnings.warn(salvage.DamageWarning(loss.sentence()), stacklevel=3)
        return store

    def _resume_numbers(self) -> None:
        """Where the log stands, for the next append."""
        ends = "SELECT seq, crc FROM event WHERE seq = (SELECT {}(seq) FROM event)"
        self._last, self._crc = self._connection.execute(ends.format("max")).fetchone() or (0, 0)
        self._first_crc = (self._connection.execute(ends.format("min")).fetchone() or (0, 0))[1]

    @property
    def last(self) -> int:
        """Number of the last event; 0 when there is none."""
        if self._lock is not None:
            return self._last
        with guard(self.path):
            self._follow_file()
            return int(self._connection.execute("SELECT coalesce(max(seq), 0) FROM event").fetchone()[0])

    def append(self, events: Sequence[Event], *, durable: bool = False) -> None:
        """Append all or none, in order, in one transaction. `durable`: on disk before it returns.

        Raises:
            CallerError: another process has taken the log over, since this one's lock was lost; it is named.
            HostError: the disk is full or the file cannot be written; nothing of `events` was kept, and the same
                append may be tried again.
        """
        if self._lock is None:
            raise InternalError(f"{self.path} is open for reading; only its writer appends")
        if not events:
            return
        rows = rows_of(events, self._last, self._crc)
        with guard(self.path):
            if self._lock.hold(self.path) and os.stat(self.path).st_ino != self._inode:
                raise self._taken_over()
            try:
                self._commit(rows, durable=durable)
            except sqlite3.IntegrityError:  # somebody else has written a row of this number
                raise self._taken_over() from None
        if self._last == 0:
            self._first_crc = rows[0][3]
        self._last, _, _, self._crc = rows[-1]
        self._lock.note(self._last, self._first_crc)

    def _taken_over(self) -> CallerError:
        return CallerError(
            f"{self.path} was taken over by another driver while this one had lost its lock",
            allowed="one driver a study",
            do="leave it to that one, or look on with `foresail watch`",
        )

    def _commit(self, rows: Sequence[Row], *, durable: bool) -> None:
        db = self._connection
        if durable:
            db.execute("PRAGMA synchronous = FULL")
        try:
            db.execute("BEGIN IMMEDIATE")
            db.executemany(INSERT, rows)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        finally:
            if durable:
                db.execute("PRAGMA synchronous = NORMAL")

    def read(self, after: int = 0) -> Iterator[tuple[int, Event]]:
        """Events with their number (from 1), those above `after`, in order; up to what is there when it is asked.

        A follower asks again with the last number that it got.

        Raises:
            HostError: a row is damaged; everything before it has been given.
        """
        decode_all = READERS[self._schema]
        for rows in self._chunks(after):
            yield from zip((row[0] for row in rows), decode_all([row[2] for row in rows]), strict=True)

    def read_some(self, numbers: Sequence[int]) -> list[Event]:
        """The events with these numbers, in the order of the log; numbers that are not there are passed over.

        Raises:
            HostError: one of the rows is damaged.
        """
        decode_all = READERS[self._schema]
        with guard(self.path):
            self._follow_file()
            rows = self._connection.execute(SELECT_SOME, (json.dumps(list(numbers)),)).fetchall()
        for *row, before in rows:
            if not follows(tuple(row), row[0] - 1, before):
                raise _damaged(self.path, f"row {row[0]} is garbled")
        return decode_all([row[2] for row in rows])

    def read_bodies(self, after: int = 0) -> Iterator[tuple[int, bytes]]:
        """As `read`, each event as the JSON that was stored; checked against its checksum and not decoded."""
        for rows in self._chunks(after):
            yield from ((row[0], row[2]) for row in rows)

    def _chunks(self, after: int) -> Iterator[Sequence[Row]]:
        """Intact rows after number `after`, some at a time."""
        with guard(self.path):
            self._follow_file()
            seq, crc = after, self._crc_at(after)
        more = 0
        while True:
            with guard(self.path):
                rows = self._connection.execute(SELECT, (seq, _CHUNK_ROWS)).fetchall()
            count = count_intact(rows, seq, crc)
            if count:
                yield rows[:count]
                seq, more, _, crc = rows[count - 1]
            if count < len(rows):
                raise _damaged(self.path, f"row {seq + 1} is garbled or missing")
            if count < _CHUNK_ROWS:
                break
        if more:
            raise _damaged(self.path, f"the append that row {seq} belongs to is not complete")

    def _crc_at(self, seq: int) -> int:
        if seq <= 0:
            return 0
        row = self._connection.execute("SELECT crc FROM event WHERE seq = ?", (seq,)).fetchone()
        return int(row[0]) if row else 0

    def _follow_file(self) -> None:
        """For a reader: look at the new file where a writer has salvaged the log, and anew where SQLite caches it."""
        if self._lock is not None:
            return
        inode = os.stat(self.path).st_ino
        if inode != self._inode or self._is_frozen:
            self._is_frozen = is_frozen(self.path)
            self._connection.close()
            self._connection = connect(self.path, write=False)
            self._inode = inode

    def close(self) -> None:
        """Let go of the file and of the lock. Closing twice is harmless."""
        self._connection.close()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def _healed(path: Path, lock: WriterLock) -> salvage.Loss | None:
    mark = lock.mark()
    try:
        return salvage.heal(path, mark)
    except CallerError:
        if mark is None:
            lock.remove()  # a file that is not ours gets no company
        raise


def _damaged(path: Path, fault: str) -> HostError:
    return HostError(f"{path} is damaged: {fault}", do="`foresail resume` keeps what is before the damage")


def _configure(connection: sqlite3.Connection, path: Path) -> None:
    kind = network_file_system(connection, path)
    if kind:
        warnings.warn(
            f"{path} lies on a network file system ({kind}): readers and the writer wait for one another there; "
            "a local file is faster and safer",
            RuntimeWarning,
            stacklevel=5,
        )
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA journal_size_limit = {_JOURNAL_BYTES}")
