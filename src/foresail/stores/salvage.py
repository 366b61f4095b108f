"""What to do with a damaged log: keep every row before the damage, name the loss, move the damaged file aside.

How damage is seen: SQLite cannot read a page; a row does not follow the one before it (`stores.rows`); an append
is not complete; SQLite's own check of the structure fails; or fewer rows are left than the writer had noted
(`stores.lock.Mark`), which is how a torn write-ahead log shows, for SQLite drops its tail without a word.

How rows are kept: in order through SQLite as far as it reads, then from the pages themselves (`stores.pages`), as far
as each row follows the one before it. The result is written to a new file, synced, and put in the place of the
damaged one. A crash at any moment of this leaves either the old file or the finished new one, and the next writer
carries on.
"""

from __future__ import annotations

import os
import sqlite3
import warnings
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from foresail.errors import CallerError
from foresail.stores.connect import connect, fault_of, is_damage, make
from foresail.stores.lock import Mark
from foresail.stores.pages import rows_after
from foresail.stores.rows import PAGE_BYTES, Row, count_intact

_CHUNK_ROWS = 1_000
_ALL = "SELECT seq, more, body, crc FROM event ORDER BY seq"


class DamageWarning(UserWarning):
    """A log was damaged; what was before the damage is kept."""


@dataclass(frozen=True, slots=True)
class Loss:
    """What a damaged log has lost.

    Attributes:
        path: the log.
        fault: what was wrong with it.
        kept: number of the last row that is kept; rows 1 to `kept` are whole.
        lost: how many rows after it are known to have been there; None if that cannot be known.
        moved: where the damaged file is now.
    """

    path: Path
    fault: str
    kept: int
    lost: int | None
    moved: Path

    def sentence(self) -> str:
        """The loss in one sentence."""
        kept = f"rows 1 to {self.kept} are kept" if self.kept else "no row could be kept"
        if self.lost is None:
            lost = f"an unknown number of rows from {self.kept + 1} on is lost"
        elif self.lost == 0:
            lost = "no row is lost"
        else:
            lost = f"{self.lost} row(s), {self.kept + 1} to {self.kept + self.lost}, are lost"
        return f"{self.path} was damaged ({self.fault}): {kept}, {lost}; the damaged file is now {self.moved}"


@dataclass(slots=True)
class _Reading:
    """How far SQLite reads: the last intact row, the last complete append, and what is wrong after it."""

    seq: int = 0
    crc: int = 0
    first_crc: int = 0
    complete: int = 0
    fault: str = ""


def heal(path: Path, mark: Mark | None) -> Loss | None:
    """Leave a sound log at `path`; an empty one if there was none. Call it with the writer's lock held.

    Raises:
        CallerError: the file is not a log of ours, or of a newer version.
    """
    moved = _finish(path)
    if not path.exists():
        _put_away_stray(path)
        _begin(path)
        return None
    reading = _examine(path)
    if mark is not None and reading.first_crc not in (0, mark.first_crc):
        mark = None  # of another study, whose file was here before
    if moved is not None and not reading.fault:
        lost = mark.last - reading.seq if mark else None
        return Loss(path, "an earlier writer died while it salvaged it", reading.seq, lost, moved)
    fault = reading.fault or _shortfall(path, reading, mark)
    if not fault:
        return None
    further, seen = rows_after(path, reading.seq, reading.crc)
    if mark is None and not reading.seq and not further:
        if _is_blank(path):
            _begin(path)
            return None
        if reading.fault:
            raise CallerError(f"{path} is not a log of Foresail ({fault})", do="name another file, or remove this one")
    kept = next((seq for seq, more, _, _ in reversed(further) if not more), reading.complete)
    known = max(seen, mark.last if mark else 0)
    lost = known - kept if mark is not None or known > kept else None
    return Loss(path, fault, kept, lost, _replace(path, further, kept))


def _begin(path: Path) -> None:
    """An empty log at `path`, which is not there or blank. It comes whole, so no reader sees half of one."""
    fresh = _beside(path, ".salvaging")
    make(fresh)
    for suffix in ("-wal", "-journal", "-shm"):
        _beside(path, suffix).unlink(missing_ok=True)
    os.replace(fresh, path)
    _sync_folder(path.parent)


def _examine(path: Path) -> _Reading:
    reading = _Reading(fault=fault_of(path))
    if path.stat().st_size == 0:
        return reading
    with closing(connect(path, write=False)) as connection:
        try:
            for rows in _rows(connection):
                if not reading.seq:
                    reading.first_crc = rows[0][3]
                reading.seq, _, _, reading.crc = rows[-1]
                reading.complete = next((seq for seq, more, _, _ in reversed(rows) if not more), reading.complete)
            reading.fault = reading.fault or _structure_fault(connection, reading)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            reading.fault = reading.fault or f"row {reading.seq + 1} cannot be read ({error})"
    return reading


def _rows(connection: sqlite3.Connection) -> Iterator[Sequence[Row]]:
    """The intact rows from the first on, some at a time."""
    connection.execute("PRAGMA writable_schema = ON")  # lets SQLite open a file that is shorter than it should be
    found, seq, crc = connection.execute(_ALL), 0, 0
    torn: sqlite3.DatabaseError | None = None
    while torn is None:
        rows: list[Row] = []
        try:
            rows.extend(islice(found, _CHUNK_ROWS))  # what came before an error stays
        except sqlite3.DatabaseError as error:
            torn = error
        count = count_intact(rows, seq, crc)
        if count:
            yield rows[:count]
            seq, _, _, crc = rows[count - 1]
        if count < (len(rows) if torn else _CHUNK_ROWS):
            return
    raise torn


def _structure_fault(connection: sqlite3.Connection, reading: _Reading) -> str:
    count = connection.execute("SELECT max(seq), count(*) FROM event").fetchone()
    if count != (reading.seq or None, reading.seq):
        return f"row {reading.seq + 1} is garbled or missing"
    if reading.complete != reading.seq:
        return f"the append that row {reading.seq} belongs to is not complete"
    report: bytes = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    return "" if report == b"ok" else f"structure: {report.decode(errors='replace')}"


def _shortfall(path: Path, reading: _Reading, mark: Mark | None) -> str:
    """Whether rows are missing at the end of a log that looks whole."""
    if mark is not None:
        return f"it had {mark.last} rows and ends after {reading.seq}" if mark.last > reading.seq else ""
    wal = _beside(path, "-wal")
    torn = wal.exists() and (wal.stat().st_size - 32) % (PAGE_BYTES + 24) != 0 and wal.stat().st_size > 0
    return "its write-ahead log is torn" if torn else ""


def _is_blank(path: Path) -> bool:
    """A database without anything in it: a writer died while it made the file."""
    if path.stat().st_size == 0:
        return True
    try:
        with closing(connect(path, write=False)) as connection:
            return not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    except sqlite3.DatabaseError:
        return False


def _replace(path: Path, further: Sequence[Row], kept: int) -> Path:
    """Put a new log of rows 1 to `kept` in the place of the damaged one; where that one is now.

    Those before `further` come from the damaged file through SQLite.
    """
    by_sqlite = min(kept, further[0][0] - 1) if further else kept
    fresh = _beside(path, ".salvaging")
    rest = (row for row in further if row[0] <= kept)
    if by_sqlite:
        with closing(connect(path, write=False)) as source:
            make(fresh, chain(islice(chain.from_iterable(_rows(source)), by_sqlite), rest))
    else:
        make(fresh, rest)
    os.replace(fresh, _beside(path, ".salvaged"))
    moved = _finish(path)
    assert moved is not None
    return moved


def _finish(path: Path) -> Path | None:
    """Put the salvaged file, if there is one, in the place of the damaged one, which is moved aside."""
    salvaged = _beside(path, ".salvaged")
    if not salvaged.exists():
        return None
    moved = _name_aside(path)
    for suffix in ("-wal", "-journal", ""):  # the journals first: they must never be taken for the new file's
        _move(_beside(path, suffix), _beside(moved, suffix))
    _beside(path, "-shm").unlink(missing_ok=True)
    os.replace(salvaged, path)
    _sync_folder(path.parent)
    return moved


def _put_away_stray(path: Path) -> None:
    """A write-ahead log without its database must not be taken for that of the file to be made."""
    stray = [s for s in ("-wal", "-journal") if _beside(path, s).exists() and _beside(path, s).stat().st_size]
    moved = _name_aside(path)
    for suffix in stray:
        _move(_beside(path, suffix), _beside(moved, suffix))
        warnings.warn(
            DamageWarning(f"{path} was gone, but not its {path.name}{suffix}, which is now {moved}{suffix}"),
            stacklevel=7,
        )


def _name_aside(path: Path) -> Path:
    """The first name under which nothing that is still to be moved would meet a file of an earlier time."""
    n = 1
    while _is_taken(path, _beside(path, f".damaged-{n}")):
        n += 1
    return _beside(path, f".damaged-{n}")


def _is_taken(path: Path, aside: Path) -> bool:
    return any(_beside(path, s).exists() and _beside(aside, s).exists() for s in ("", "-wal", "-journal"))


def _move(source: Path, target: Path) -> None:
    if source.exists():
        os.replace(source, target)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
