"""Rows from the pages of a SQLite file that SQLite itself cannot read any more.

Reads every page of the main file and of its write-ahead log as if it were a leaf of the event table, and keeps what
follows: a row counts only where its checksum vouches for it as the successor of the row before (`stores.rows`), so
what is no leaf, or stale, or garbled, drops out by itself. Format: https://www.sqlite.org/fileformat2.html, sections
1.5 (leaves), 1.6 (overflow), 2.1 (records), 4.1 (write-ahead log).
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from foresail.stores.rows import PAGE_BYTES, Row, follows

_LEAF = 0x0D
_WAL_HEADER, _FRAME_HEADER = 32, 24
_INT_BYTES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_MAX_LOCAL = PAGE_BYTES - 35
_MIN_LOCAL = (PAGE_BYTES - 12) * 32 // 255 - 23
_ROW_MAX, _SEQ_MAX = 1 << 30, 1 << 62

Fetch = Callable[[int], bytes]


def rows_after(path: Path, seq: int, crc: int) -> tuple[list[Row], int]:
    """The rows that follow row `seq` (checksum `crc`) without a gap, and the number up to which rows were seen.

    Rows beyond a garbled one count as seen only in an unbroken line of numbers: one that stands alone may be garbage.
    """
    found: dict[int, set[Row]] = {}
    for row in _rows_in_files(path, after=seq):
        found.setdefault(row[0], set()).add(row)
    seen = seq + 1 if seq + 2 in found else seq  # the damaged row itself was there if its successor is
    while seen + 1 in found:
        seen += 1
    rows: list[Row] = []
    while True:
        successor = next((row for row in found.get(seq + 1, ()) if follows(row, seq, crc)), None)
        if successor is None:
            return rows, max(seen, seq)
        rows.append(successor)
        seq, _, _, crc = successor


def _rows_in_files(path: Path, *, after: int) -> Iterator[Row]:
    logged = list(_logged_pages(path.with_name(path.name + "-wal")))
    newest = dict(logged)
    with path.open("rb") as file, _mapped(file) as main:

        def from_main(number: int) -> bytes:
            return main[(number - 1) * PAGE_BYTES : number * PAGE_BYTES]

        def from_log(number: int) -> bytes:
            return newest.get(number) or from_main(number)

        pages = (from_main(number) for number in range(1, -(-len(main) // PAGE_BYTES) + 1))
        for page in chain(pages, (page for _, page in logged)):
            yield from _leaf_rows(page, (from_log, from_main), after)


def _mapped(file: BinaryIO) -> AbstractContextManager[mmap.mmap | bytes]:
    """The bytes of a file that may be larger than memory, or empty."""
    size = file.seek(0, 2)
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else nullcontext(b"")


def _logged_pages(wal: Path) -> Iterator[tuple[int, bytes]]:
    data = wal.read_bytes() if wal.exists() else b""
    for at in range(_WAL_HEADER, len(data), _FRAME_HEADER + PAGE_BYTES):
        start = at + _FRAME_HEADER
        yield int.from_bytes(data[at : at + 4], "big"), data[start : start + PAGE_BYTES]


def _leaf_rows(page: bytes, fetches: Sequence[Fetch], after: int) -> Iterator[Row]:
    """The rows above `after` of a page that may be torn: its end may be missing."""
    if len(page) < 8 or page[0] != _LEAF:
        return
    for cell in range(int.from_bytes(page[3:5], "big")):
        pointer = int.from_bytes(page[8 + 2 * cell : 10 + 2 * cell], "big")
        try:
            size, at = _varint(page, pointer)
            seq, at = _varint(page, at)
            if seq <= after or seq > _SEQ_MAX or size > _ROW_MAX:
                continue
            for fetch in fetches if size > _MAX_LOCAL else fetches[:1]:
                row = _row(seq, _payload(page, at, size, fetch))
                if row is not None:
                    yield row
        except (IndexError, KeyError):
            continue


def _row(seq: int, record: bytes) -> Row | None:
    """The row of a record of the event table; None if it is the record of another."""
    header, at = _varint(record, 0)
    kinds = []
    while at < header:
        kind, at = _varint(record, at)
        kinds.append(kind)
    if len(kinds) != 4 or kinds[0] != 0 or kinds[2] < 13 or kinds[2] % 2 == 0:
        return None
    more, at = _integer(record, at, kinds[1])
    end = at + (kinds[2] - 13) // 2
    crc, _ = _integer(record, end, kinds[3])
    return seq, more, record[at:end], crc


def _payload(page: bytes, at: int, size: int, fetch: Fetch) -> bytes:
    if size <= _MAX_LOCAL:
        return page[at : at + size]
    local = _MIN_LOCAL + (size - _MIN_LOCAL) % (PAGE_BYTES - 4)
    local = local if local <= _MAX_LOCAL else _MIN_LOCAL
    parts, left = [page[at : at + local]], size - local
    number = int.from_bytes(page[at + local : at + local + 4], "big")
    while left > 0:
        overflow = fetch(number)
        if not overflow:
            raise IndexError(number)
        parts.append(overflow[4 : 4 + left])
        left -= PAGE_BYTES - 4
        number = int.from_bytes(overflow[:4], "big")
    return b"".join(parts)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for n in range(9):
        byte = data[at + n]
        if n == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + n + 1
    raise AssertionError("unreachable")


def _integer(data: bytes, at: int, kind: int) -> tuple[int, int]:
    if kind in (8, 9):
        return kind - 8, at
    size = _INT_BYTES[kind]
    if at + size > len(data):
        raise IndexError(at)
    return int.from_bytes(data[at : at + size], "big", signed=True), at + size
