"""Connections to a log, and what SQLite's errors mean to a person."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from foresail.core.spec import SCHEMA
from foresail.errors import CallerError, HostError
from foresail.stores.filesystem import network_kind
from foresail.stores.rows import APPLICATION_ID, CREATE, INSERT, PAGE_BYTES, READERS, Row

_BUSY_S = 30.0
_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}
_MEANING = {
    sqlite3.SQLITE_FULL: ("the disk is full", "make room; nothing that was recorded is lost"),
    sqlite3.SQLITE_READONLY: ("it cannot be written", "check the rights of the file and of its folder"),
    sqlite3.SQLITE_PERM: ("it may not be opened", "check the rights of the file and of its folder"),
    sqlite3.SQLITE_CANTOPEN: ("it cannot be opened", "check the rights of the file and of its folder"),
    sqlite3.SQLITE_IOERR: ("reading or writing failed", "check the disk: is it full, gone or failing?"),
    sqlite3.SQLITE_BUSY: ("another program holds it", "close that program; Foresail itself has one writer"),
    sqlite3.SQLITE_CORRUPT: ("it is damaged", "`foresail resume` keeps what is before the damage"),
    sqlite3.SQLITE_NOTADB: ("it is damaged", "`foresail resume` keeps what is before the damage"),
}


def connect(path: Path, *, write: bool) -> sqlite3.Connection:
    """A connection whose transactions are ours to begin. Text comes as bytes, so that garbled text can be read."""
    mode = "rwc" if write else "ro&immutable=1" if is_frozen(path) else "ro"
    uri = f"{path.resolve().as_uri()}?mode={mode}"
    connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
    connection.text_factory = bytes
    return connection


def make(path: Path, rows: Iterable[Row] = ()) -> None:
    """A new log with `rows`, synced, which its owner alone can read.

    `path` names a scratch file: move it where it is to be, so that it is whole.
    """
    path.unlink(missing_ok=True)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))  # its journals get its rights
    with closing(connect(path, write=True)) as connection:
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(CREATE)
        connection.execute("BEGIN")
        connection.executemany(INSERT, rows)
        connection.execute("COMMIT")


def is_frozen(path: Path) -> bool:
    """Whether a log is closed and lies where we may not make the shared memory that SQLite wants even for reading."""
    return not os.access(path.parent, os.W_OK) and not path.with_name(path.name + "-wal").exists()


def error_code(error: sqlite3.Error) -> int:
    """SQLite's primary result code."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file is at fault. That a table or a column is missing counts, for our statements are right."""
    return error_code(error) in _DAMAGE


@contextmanager
def guard(path: Path) -> Iterator[None]:
    """Say SQLite's and the system's errors about `path` as ours."""
    try:
        yield
    except sqlite3.Error as error:
        what, do = _MEANING.get(error_code(error), (str(error), ""))
        raise HostError(f"storage {path}: {what} ({error})", do=do) from error
    except OSError as error:
        raise HostError(f"storage {path}: {error.strerror or error}", do="check the disk and the rights") from error


def fault_of(path: Path) -> str:
    """What is wrong with the header of the log at `path`; empty if nothing is.

    Raises:
        CallerError: a log of a newer version.
    """
    if path.stat().st_size == 0:
        return "the file is empty"
    with closing(connect(path, write=False)) as connection:
        try:
            application = connection.execute("PRAGMA application_id").fetchone()[0]
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            tables = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'event'").fetchone()[0]
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            return f"its first page cannot be read ({error})"
    if application == APPLICATION_ID and version > SCHEMA:
        raise CallerError(
            f"{path} is a log of schema {version}",
            allowed=f"this version of Foresail reads {', '.join(map(str, sorted(READERS)))}",
            do="install a newer Foresail",
        )
    if application != APPLICATION_ID or version not in READERS or not tables:
        return "its header is not that of a log"
    return ""


def network_file_system(connection: sqlite3.Connection, path: Path) -> str:
    """Choose the journal that is safe where `path` lies; the kind of the network file system, if it is one."""
    kind = network_kind(path)
    if kind:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # lets a write-ahead log be read without shared memory
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA locking_mode = NORMAL")
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()  # the lock is let go at the next use
        return kind
    mode: bytes = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    return "" if mode == b"wal" else "of an unknown kind"
