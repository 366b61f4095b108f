"""How fast the store is: appends, durable appends, reading, opening, and salvage.

    PYTHONPATH=src python benchmarks/store.py [--events 300000] [--folder FOLDER]

Beside each figure stands what plain sqlite3 does with rows of the same size on the same disk, measured in turns, so
that a busy machine does not spoil the ratio.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from foresail.core import events as ev
from foresail.core.codec import encode
from foresail.core.words import AttemptId
from foresail.stores.sqlite import SqliteStore


def points(count: int) -> list[ev.Event]:
    """Reports as a study of 50 trials at a time makes them."""
    return [
        ev.PointReported(
            at_s=n / 64,
            attempt=AttemptId(f"{n % 50}-1"),
            step=n // 50 + 1,
            metrics={"accuracy": 1 - 1 / (n + 2), "loss": 1 / (n + 1)},
            seconds=0.0157,
        )
        for n in range(count)
    ]


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def plain_database(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("CREATE TABLE event (seq INTEGER PRIMARY KEY, body TEXT)")
    return db


def plain_append(db: sqlite3.Connection, bodies: list[str]) -> None:
    db.execute("BEGIN IMMEDIATE")
    db.executemany("INSERT INTO event (body) VALUES (?)", ((body,) for body in bodies))
    db.execute("COMMIT")


def show_appends(folder: Path, events: list[ev.Event], batch: int) -> Path:
    path = folder / f"batch-{batch}.db"
    bodies = [encode(event).decode() for event in events]
    ours = theirs = 0.0
    db = plain_database(folder / f"plain-{batch}.db")
    with SqliteStore.open(path) as store:
        for at in range(0, len(events), batch):
            part, text = events[at : at + batch], bodies[at : at + batch]
            ours += timed(lambda part=part: store.append(part))
            theirs += timed(lambda text=text: plain_append(db, text))
    db.close()
    speed, plain = len(events) / ours, len(events) / theirs
    print(
        f"append, {batch:5} an append   {speed:10,.0f} events/s   plain sqlite3, encoded before {plain:10,.0f} rows/s"
    )
    return path


def show_durable(folder: Path, events: list[ev.Event]) -> None:
    count = 200
    with SqliteStore.open(folder / "durable.db") as store:
        each = [timed(lambda e=e: store.append([e], durable=True)) for e in events[:count]]
        file = os.open(folder / "fsync", os.O_CREAT | os.O_WRONLY)
        bare = [timed(lambda: (os.write(file, b"x" * 4096), os.fsync(file))) for _ in range(count)]
        os.close(file)
    print(
        f"durable append of 1        {statistics.median(each) * 1e3:8.2f} ms median   "
        f"4 KiB write and fsync {statistics.median(bare) * 1e3:.2f} ms"
    )


def show_reading(path: Path, count: int) -> None:
    with SqliteStore.open(path, write=False) as store:
        raw = timed(lambda: sum(1 for _ in store.read_bodies()))
        decoded = timed(lambda: sum(1 for _ in store.read()))
        tail = min(timed(lambda: list(store.read(count - 10))) for _ in range(50))
    print(f"read, checked, not decoded {count / raw:10,.0f} rows/s")
    print(f"read, decoded              {count / decoded:10,.0f} events/s")
    print(f"read the last 10           {tail * 1e6:10,.0f} us")


def show_opening(path: Path, count: int) -> None:
    reader = timed(lambda: SqliteStore.open(path, write=False).close())
    writer = timed(lambda: SqliteStore.open(path).close())
    print(f"open, {count:,} rows: reader {reader * 1e3:.1f} ms, writer (checks every row) {writer:.2f} s")
    print(f"size                       {path.stat().st_size / count:10.0f} bytes an event")
    os.truncate(path, path.stat().st_size - 1000)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        salvage = timed(lambda: SqliteStore.open(path).close())
    print(f"salvage after a torn page  {salvage:10.2f} s   ({caught[0].message})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--events", type=int, default=300_000)
    parser.add_argument("--folder", type=Path, default=None, help="on the disk to be measured")
    arguments = parser.parse_args()
    events = points(arguments.events)
    encoding = timed(lambda: [encode(event) for event in events])
    print(f"encode                     {len(events) / encoding:10,.0f} events/s")
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        show_appends(folder, events[:20_000], 1)
        show_appends(folder, events[:100_000], 10)
        path = show_appends(folder, events, 100)
        show_durable(folder, events)
        show_reading(path, len(events))
        show_opening(path, len(events))


if __name__ == "__main__":
    main()
