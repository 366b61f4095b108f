"""Damage is found, what is before it is kept, what is gone is named, and the log goes on."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import warnings
from pathlib import Path

import pytest

from foresail.core import events as ev
from foresail.errors import CallerError, HostError
from foresail.stores.rows import PAGE_BYTES
from foresail.stores.salvage import DamageWarning, Loss
from foresail.stores.sqlite import SqliteStore
from foresail.testing.logs import point, steps, write_log

FRAME = PAGE_BYTES + 24


def salvaged(path: Path) -> Loss:
    """Open a damaged log, check that it is sound and goes on, and say what was lost."""
    with pytest.warns(DamageWarning, match="was damaged"):
        store = SqliteStore.open(path)
    with store:
        loss = store.loss
        assert loss is not None
        assert steps(store) == list(range(1, loss.kept + 1))
        store.append([point(loss.kept + 1), point(loss.kept + 2)], durable=True)
    with SqliteStore.open(path) as again:
        assert again.loss is None
        assert steps(again) == list(range(1, loss.kept + 3))
    assert loss.moved.exists() or loss.moved.with_name(loss.moved.name + "-wal").exists()
    assert loss.moved.name.startswith(path.name + ".damaged-")
    return loss


def leave_wal(path: Path, appends: list[int]) -> None:
    """A log as a killed writer leaves it: all of it in the write-ahead log."""
    work = path.with_name("work.db")
    store = SqliteStore.open(work)
    for size in appends:
        store.append([point(store.last + n) for n in range(1, size + 1)])
    for suffix in ("", "-wal", ".lock"):
        shutil.copyfile(f"{work}{suffix}", f"{path}{suffix}")
    store.close()


def overwrite(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


@pytest.mark.parametrize("cut", [1, 7, 100, 2048, PAGE_BYTES - 1, PAGE_BYTES, PAGE_BYTES + 1, 3 * PAGE_BYTES, 40_000])
def test_a_truncated_file(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "a.db"
    write_log(path, [3] * 200)
    os.truncate(path, path.stat().st_size - cut)
    loss = salvaged(path)
    assert loss.lost == 600 - loss.kept
    assert loss.kept >= 600 - 60 * (cut // PAGE_BYTES + 1)
    assert loss.kept % 3 == 0  # an append is kept whole or not at all


@pytest.mark.parametrize("size", [0, 1, 99, 100, 4095, 4096, 4097, 8192])
def test_a_file_of_which_little_is_left(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a.db"
    write_log(path, [3] * 200)
    os.truncate(path, size)
    loss = salvaged(path)
    assert (loss.kept, loss.lost) == (0, 600)
    assert f"600 row(s), 1 to 600, are lost; the damaged file is now {path}.damaged-1" in loss.sentence()


def test_bytes_changed_anywhere(tmp_path: Path) -> None:
    """A run of bytes is overwritten at many places: nothing is lost before them, nothing goes unnoticed."""
    whole = tmp_path / "whole.db"
    write_log(whole, [3] * 60)
    data = whole.read_bytes()
    rng = random.Random(7)
    noticed = 0
    for trial in range(70):
        path = tmp_path / f"{trial}.db"
        at, length = rng.randrange(len(data)), rng.choice([1, 4, 64, 512])
        garbled = bytes(b ^ 0x5A for b in data[at : at + length])
        path.write_bytes(data[:at] + garbled + data[at + length :])
        shutil.copyfile(f"{whole}.lock", f"{path}.lock")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DamageWarning)
            if at < 64 and at + length > 60:  # the schema number itself was changed to a newer one
                with pytest.raises(CallerError, match="schema"):
                    SqliteStore.open(path)
                continue
            store = SqliteStore.open(path)
        with store:
            kept = steps(store)
            assert kept == list(range(1, store.last + 1))
            if store.loss is None:
                assert store.last == 180  # it hit bytes that mean nothing
            else:
                noticed += 1
                assert store.loss.lost == 180 - store.last
                assert store.last % 3 == 0
    assert noticed > 35


@pytest.mark.parametrize("row", [1, 2, 3, 100, 599, 600])
@pytest.mark.parametrize("change", ["body", "crc", "more", "gone", "swapped"])
def test_a_row_that_sqlite_reads_but_that_is_not_what_was_written(tmp_path: Path, row: int, change: str) -> None:
    path = tmp_path / "a.db"
    write_log(path, [3] * 200)
    db = sqlite3.connect(path)
    other = 1 + row % 600
    db.execute(
        {
            "body": "UPDATE event SET body = replace(body, '0.25', '0.75') WHERE seq = ?1",
            "crc": "UPDATE event SET crc = crc + 1 WHERE seq = ?1",
            "more": "UPDATE event SET more = 1 - more WHERE seq = ?1",
            "gone": "DELETE FROM event WHERE seq = ?1",
            "swapped": "UPDATE event SET (body, crc) = (SELECT body, crc FROM event WHERE seq = ?2) WHERE seq = ?1",
        }[change],
        (row, other) if change == "swapped" else (row,),
    )
    db.commit()
    db.close()
    with pytest.raises(HostError, match="damaged"), SqliteStore.open(path, write=False) as reader:
        list(reader.read())
    loss = salvaged(path)
    assert loss.kept == (row - 1) // 3 * 3
    assert loss.lost == 600 - loss.kept


def boundaries() -> list[int]:
    """Where a write-ahead log of 40 frames may be cut: each class of place."""
    places = [0, 1, 16, 31, 32, 33, 32 + 12, 32 + 23, 32 + 24, 32 + 25, 32 + FRAME - 1, 32 + FRAME, 32 + FRAME + 1]
    middle = 32 + 20 * FRAME
    return [*places, middle - 1, middle, middle + 1, middle + 24, middle + 24 + 2000]


@pytest.mark.parametrize("size", boundaries())
def test_a_truncated_write_ahead_log(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a.db"
    leave_wal(path, [3] * 60)
    os.truncate(f"{path}-wal", size)
    loss = salvaged(path)
    assert loss.lost == 180 - loss.kept
    assert loss.kept % 3 == 0
    if size > 32 + 20 * FRAME:
        assert loss.kept >= 30


@pytest.mark.parametrize("at", [0, 8, 16, 24, 32, 36, 40, 48, 56, 60, 5000, 32 + 20 * FRAME, 32 + 20 * FRAME + 2000])
def test_a_garbled_write_ahead_log(tmp_path: Path, at: int) -> None:
    path = tmp_path / "a.db"
    leave_wal(path, [3] * 60)
    overwrite(tmp_path / "a.db-wal", at, b"\xa5\x5a\xa5\x5a")
    loss = salvaged(path)
    assert loss.lost == 180 - loss.kept
    assert loss.kept > 0  # every row vouches for the next, so pages after the damage are used where they fit


def test_a_missing_write_ahead_log(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    write_log(path, [3] * 10)
    with SqliteStore.open(path) as store:
        store.append([point(31)])
        for suffix in ("", ".lock"):
            shutil.copyfile(f"{path}{suffix}", f"{tmp_path / 'b.db'}{suffix}")
    loss = salvaged(tmp_path / "b.db")
    assert (loss.kept, loss.lost) == (30, 1)


def test_a_torn_write_ahead_log_is_noticed_without_the_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    leave_wal(path, [3] * 60)
    os.truncate(f"{path}-wal", 32 + 20 * FRAME + 700)
    os.remove(f"{path}.lock")
    assert salvaged(path).lost is None


def test_a_whole_write_ahead_log_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    leave_wal(path, [3] * 60)
    with SqliteStore.open(path) as store:
        assert store.loss is None
        assert store.last == 180


def test_an_append_that_is_not_complete_is_dropped_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    write_log(path, [3, 5])
    db = sqlite3.connect(path)
    db.execute("DELETE FROM event WHERE seq = 8")
    db.commit()
    db.close()
    loss = salvaged(path)
    assert (loss.kept, loss.lost) == (3, 5)


def test_long_rows_are_found_in_pages(tmp_path: Path) -> None:
    """Rows that do not fit in a page are put together again where SQLite has lost the way to them."""
    path = tmp_path / "a.db"
    long = [ev.DriverStopped(at_s=float(n), why="x" * (3_900 + 40 * n)) for n in range(30)]
    with SqliteStore.open(path) as store:
        store.append(long[:15])
        store.append([*long[15:], ev.DriverStopped(at_s=99.0, why="y" * 50_000)])
    overwrite(path, PAGE_BYTES, bytes(PAGE_BYTES))  # the root of the table
    with pytest.warns(DamageWarning, match="no row is lost"):
        store = SqliteStore.open(path)
    with store:
        assert [event for _, event in store.read()][:30] == long
        assert store.last == 31


def test_each_damaged_file_keeps_its_name(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    for n in (1, 2, 3):
        write_log(path, [5] * 20)
        os.truncate(path, path.stat().st_size - 10)
        with pytest.warns(DamageWarning):
            SqliteStore.open(path).close()
        assert (tmp_path / f"a.db.damaged-{n}").exists()


@pytest.mark.parametrize("done", ["nothing", "journal moved", "file moved"])
def test_a_crash_while_salvaging_loses_nothing(tmp_path: Path, done: str) -> None:
    path, aside = tmp_path / "a.db", tmp_path / "a.db.damaged-1"
    write_log(path, [3] * 20)
    write_log(tmp_path / "b.db", [3] * 19)
    (tmp_path / "b.db").rename(f"{path}.salvaged")
    (tmp_path / "a.db-wal").write_bytes(b"of the damaged file")
    if done != "nothing":
        (tmp_path / "a.db-wal").rename(f"{aside}-wal")
    if done == "file moved":
        path.rename(aside)
    loss = salvaged(path)
    assert (loss.kept, loss.lost) == (57, 3)
    assert aside.exists()
    assert Path(f"{aside}-wal").exists()
    assert not Path(f"{path}.salvaged").exists()


def test_a_file_that_was_removed_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    leave_wal(path, [3] * 5)
    path.unlink()
    with pytest.warns(DamageWarning, match="damaged-1-wal"):
        store = SqliteStore.open(path)
    with store:
        assert store.last == 0
        assert store.loss is None


def test_another_study_in_the_same_place_is_no_loss(tmp_path: Path) -> None:
    write_log(tmp_path / "a.db", [3] * 20)
    with SqliteStore.open(tmp_path / "b.db") as store:
        store.append([ev.DriverStopped(at_s=0.0, why="other")])
    shutil.copyfile(tmp_path / "b.db", tmp_path / "a.db")
    with SqliteStore.open(tmp_path / "a.db") as store:
        assert store.loss is None
        assert store.last == 1


def test_a_row_that_is_damaged_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    write_log(path, [1] * 10)
    with SqliteStore.open(path) as store:
        db = sqlite3.connect(path)
        db.execute("UPDATE event SET body = '{}' WHERE seq = 6")
        db.commit()
        db.close()
        seen = []
        with pytest.raises(HostError, match="row 6 is garbled"):
            seen.extend(number for number, _ in store.read())
        reading = store.read()
        assert [next(reading)[0] for _ in range(5)] == [1, 2, 3, 4, 5]
