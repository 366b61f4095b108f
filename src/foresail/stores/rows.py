"""The form of a log in SQLite: one table of rows that vouch for one another.

    event(seq INTEGER PRIMARY KEY, more INTEGER, body TEXT, crc INTEGER)

* `seq` counts from 1 without a gap.
* `body` is the event as JSON (`core.codec`).
* `more` is 1 where the next row belongs to the same append, 0 at the last row of an append; a log that had to be cut
  is cut after a 0, so that an append stays all or nothing even then.
* `crc` is the CRC-32 of the body, started from the previous row's: a row is intact only as the successor of the one
  before it, so a garbled, lost, doubled or foreign row is found, wherever it came from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from zlib import crc32

from foresail.core.codec import decode_all, encode
from foresail.core.events import Event
from foresail.core.spec import SCHEMA

APPLICATION_ID = 0x4653_4C31
"""Marks a SQLite file as a log of ours: "FSL1" in its header."""

PAGE_BYTES = 4096

CREATE = f"""
BEGIN IMMEDIATE;
CREATE TABLE event (
    seq INTEGER PRIMARY KEY, more INTEGER NOT NULL, body TEXT NOT NULL, crc INTEGER NOT NULL
);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA};
COMMIT;
"""
INSERT = "INSERT INTO event (seq, more, body, crc) VALUES (?, ?, CAST(? AS TEXT), ?)"
SELECT = "SELECT seq, more, body, crc FROM event WHERE seq > ? ORDER BY seq LIMIT ?"
SELECT_SOME = """
SELECT own.seq, own.more, own.body, own.crc, coalesce(before.crc, 0)
FROM event AS own LEFT JOIN event AS before ON before.seq = own.seq - 1
WHERE own.seq IN (SELECT value FROM json_each(?)) ORDER BY own.seq
"""

READERS: Mapping[int, Callable[[Sequence[bytes]], list[Event]]] = {1: decode_all}
"""For each schema number that was released: from the bodies of rows to events of today."""

Row = tuple[int, int, bytes, int]
"""seq, more, body, crc."""


def rows_of(events: Iterable[Event], seq: int, crc: int) -> list[Row]:
    """The rows of one append after row `seq` with checksum `crc`."""
    bodies = [encode(event) for event in events]
    rows = []
    for left, body in zip(range(len(bodies) - 1, -1, -1), bodies, strict=True):
        seq, more = seq + 1, int(left > 0)
        crc = crc32(body, crc ^ more)
        rows.append((seq, more, body, crc))
    return rows


def follows(row: tuple[object, ...], seq: int, crc: int) -> bool:
    """Whether `row`, as read, is the intact successor of row `seq` with checksum `crc`."""
    return count_intact([row], seq, crc) == 1


def count_intact(rows: Sequence[tuple[object, ...]], seq: int, crc: int) -> int:
    """How many of `rows` come, intact, after row `seq` with checksum `crc`; those from the first damaged one do not.

    A long log is read at the speed of this loop.
    """
    for count, (at, more, body, check) in enumerate(rows):
        seq += 1
        if at != seq or type(body) is not bytes:
            return count
        if more == 1:
            crc ^= 1
        elif more != 0:
            return count
        crc = crc32(body, crc)
        if check != crc:
            return count
    return len(rows)
