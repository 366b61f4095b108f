"""One writer, readers beside it, and a host that does not always do what it is asked."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from foresail.core import events as ev
from foresail.core.codec import encode
from foresail.core.spec import SCHEMA
from foresail.errors import CallerError, HostError, InternalError
from foresail.stores import connect, filesystem
from foresail.stores.rows import APPLICATION_ID, READERS
from foresail.stores.salvage import DamageWarning
from foresail.stores.sqlite import SqliteStore
from foresail.testing.logs import Child, point, steps, write_log

Start = Callable[..., Child]

HOLD = """
import sys
from foresail.stores.sqlite import SqliteStore
store = SqliteStore.open(sys.argv[1])
print("held", flush=True)
sys.stdin.readline()
"""
WRITE_ON = """
import sys
from foresail.stores.sqlite import SqliteStore
from foresail.testing.logs import point
store = SqliteStore.open(sys.argv[1])
while True:
    store.append([point(store.last + n) for n in (1, 2, 3)], durable=store.last % 50 == 0)
    print(store.last, flush=True)
"""
FOLLOW = """
import sys
from foresail.stores.sqlite import SqliteStore
store, last = SqliteStore.open(sys.argv[1], write=False), 0
print("open", flush=True)
while last < int(sys.argv[2]):
    for number, event in store.read(last):
        assert number == last + 1 == event.step, (number, last, event)
        last = number
    assert last % 3 == 0, last
print(last, flush=True)
"""


def test_a_second_writer_is_refused_with_the_name_of_the_first(tmp_path: Path, child: Start) -> None:
    path = tmp_path / "a.db"
    first = child(HOLD, path)
    assert first.line() == "held"
    with pytest.raises(CallerError, match=rf"written by process {first.process.pid} on .*one driver a study"):
        SqliteStore.open(path)
    first.kill()
    with SqliteStore.open(path) as store:
        assert store.last == 0


def test_a_second_writer_in_the_same_process_is_refused(tmp_path: Path) -> None:
    with SqliteStore.open(tmp_path / "a.db"), pytest.raises(CallerError, match=f"process {os.getpid()} "):
        SqliteStore.open(tmp_path / "a.db")
    SqliteStore.open(tmp_path / "a.db").close()


FORK = """
import os, sys
from foresail.stores.sqlite import SqliteStore
store = SqliteStore.open(sys.argv[1])
ready, tell = os.pipe()
if os.fork() == 0:
    os.close(1)
    os.write(tell, b"x")
    sys.stdin.readline()
    os._exit(0)
os.read(ready, 1)
print("forked", flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_children_of_a_dead_writer_do_not_hold_its_lock(tmp_path: Path, child: Start) -> None:
    first = child(FORK, tmp_path / "a.db")
    assert first.line() == "forked"
    assert first.process.wait() == -signal.SIGKILL
    with SqliteStore.open(tmp_path / "a.db") as store:
        assert store.last == 0


def test_a_killed_writer_loses_nothing_that_it_had_appended(tmp_path: Path, child: Start) -> None:
    path, told = tmp_path / "a.db", 0
    for lines in (1, 2, 40, 300, 7):
        writer = child(WRITE_ON, path)
        for _ in range(lines):
            told = int(writer.line())
        writer.kill()
        with SqliteStore.open(path) as store:
            assert store.loss is None
            assert store.last >= told
            assert store.last % 3 == 0
            assert steps(store) == list(range(1, store.last + 1))


def test_readers_follow_a_writer_and_do_not_block_it(tmp_path: Path, child: Start) -> None:
    path, total = tmp_path / "a.db", 9_000
    with SqliteStore.open(path) as store:
        followers = [child(FOLLOW, path, total) for _ in range(2)]
        assert [follower.line() for follower in followers] == ["open", "open"]
        slow = SqliteStore.open(path, write=False)
        slow._connection.execute("BEGIN")  # the worst reader: one that never ends its transaction
        slow._connection.execute("SELECT count(*) FROM event").fetchone()
        store._connection.execute("PRAGMA busy_timeout = 0")  # a writer that had to wait would fail
        while store.last < total:
            store.append([point(store.last + n) for n in (1, 2, 3)], durable=store.last % 3000 == 0)
        assert [follower.line() for follower in followers] == [str(total)] * 2
        assert slow._connection.execute("SELECT count(*) FROM event").fetchone() == (0,)
        slow.close()


def test_a_reader_reads_what_a_killed_writer_left(tmp_path: Path, child: Start) -> None:
    writer = child(WRITE_ON, tmp_path / "a.db")
    told = [int(writer.line()) for _ in range(20)][-1]
    writer.kill()
    with SqliteStore.open(tmp_path / "a.db", write=False) as reader:
        assert reader.last >= told
        assert steps(reader) == list(range(1, reader.last + 1))


def test_a_reader_goes_on_with_the_salvaged_file(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    write_log(path, [1] * 20)
    with SqliteStore.open(path, write=False) as reader:
        assert reader.last == 20
        db = sqlite3.connect(path)
        db.execute("UPDATE event SET crc = 0 WHERE seq = 11")
        db.commit()
        db.close()
        with pytest.warns(DamageWarning, match="was damaged"):
            store = SqliteStore.open(path)
        store.append([point(store.last + 1)])
        assert store.last > 10
        assert steps(reader) == list(range(1, store.last + 1))
        store.close()


def test_a_reader_does_not_append_and_leaves_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    write_log(path, [2])
    before = path.read_bytes()
    with SqliteStore.open(path, write=False) as reader:
        with pytest.raises(InternalError, match="only its writer appends"):
            reader.append([point(3)])
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader._connection.execute("DELETE FROM event")
    assert path.read_bytes() == before


def test_some_events_are_read_by_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    write_log(path, [3, 4])
    with SqliteStore.open(path, write=False) as reader:
        everything = dict(reader.read())
        assert reader.read_some([6, 1, 2, 99]) == [everything[1], everything[2], everything[6]]
        assert reader.read_some([]) == []
    with sqlite3.connect(path) as other:
        other.execute("UPDATE event SET body = replace(body, '}', ' }') WHERE seq = 4")
    other.close()
    with SqliteStore.open(path, write=False) as reader:
        assert reader.read_some([1, 2]) == [everything[1], everything[2]]
        with pytest.raises(HostError, match="row 4"):
            reader.read_some([1, 4])


# --- what is not a log of ours ------------------------------------------------------------------------------------


def other_database(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE trials (id INTEGER)")
    db.commit()
    db.close()


def other_event_table(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE event (id INTEGER)")
    db.execute("INSERT INTO event VALUES (1)")
    db.commit()
    db.close()


def newer_log(path: Path) -> None:
    write_log(path, [3])
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    db.close()


def contents(folder: Path) -> dict[str, bytes]:
    """Files and what is in them; but for SQLite's shared memory, an empty journal, and the lock."""
    files = {f.name: f.read_bytes() for f in folder.iterdir() if f.is_file()}
    return {name: data for name, data in files.items() if data and not name.endswith(("-shm", ".lock"))}


@pytest.mark.parametrize("write", [True, False])
@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: path.write_text("lr = 0.1\n" * 1000), "not a log of Foresail|damaged"),
        (lambda path: path.write_bytes(os.urandom(20_000)), "not a log of Foresail|damaged"),
        (other_database, "not a log of Foresail|header is not that of a log"),
        (other_event_table, "not a log of Foresail|header is not that of a log"),
        (newer_log, f"schema {SCHEMA + 1}.*reads {SCHEMA}.*newer Foresail"),
        (lambda path: path.mkdir(), "is a folder"),
    ],
    ids=["text", "noise", "other database", "other event table", "newer", "folder"],
)
def test_what_is_not_ours_is_refused_and_left_alone(
    tmp_path: Path, make: Callable[[Path], None], says: str, write: bool
) -> None:
    path = tmp_path / "a.db"
    make(path)
    before = contents(tmp_path)
    with pytest.raises((CallerError, HostError) if not write else CallerError, match=says):
        SqliteStore.open(path, write=write)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("write", [True, False])
def test_a_pipe_or_a_device_is_left_alone(tmp_path: Path, write: bool) -> None:
    path = tmp_path / "a.db"
    os.mkfifo(path)
    with pytest.raises(CallerError, match="is a device or a pipe"):
        SqliteStore.open(path, write=write)
    assert path.is_fifo()
    assert [f.name for f in tmp_path.iterdir()] == ["a.db"]


def test_a_file_that_is_not_ours_gets_no_lock_file(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("[space]\n")
    with pytest.raises(CallerError):
        SqliteStore.open(tmp_path / "a.toml")
    assert [f.name for f in tmp_path.iterdir()] == ["a.toml"]


@pytest.mark.parametrize("write", [True, False])
def test_a_folder_that_is_not_there(tmp_path: Path, write: bool) -> None:
    with pytest.raises(CallerError, match="there is no folder"):
        SqliteStore.open(tmp_path / "no" / "a.db", write=write)


def test_a_reader_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(CallerError, match="no study at"):
        SqliteStore.open(tmp_path / "a.db", write=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("left", [b"", "blank database"])
def test_a_writer_that_died_while_it_made_the_file(tmp_path: Path, left: bytes | str) -> None:
    path = tmp_path / "a.db"
    if isinstance(left, bytes):
        path.write_bytes(left)
    else:
        db = sqlite3.connect(path)
        db.execute("PRAGMA journal_mode = WAL")
        db.close()
    with SqliteStore.open(path) as store:
        assert store.loss is None
        store.append([point(1)])
        assert steps(store) == [1]


# --- a host that fails --------------------------------------------------------------------------------------------


def test_a_full_disk_keeps_all_or_nothing_and_the_log_goes_on(tmp_path: Path) -> None:
    with SqliteStore.open(tmp_path / "a.db") as store:
        store.append([point(n) for n in range(1, 101)], durable=True)
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count = {pages + 1}")
        for durable in (False, True):
            with pytest.raises(HostError, match=r"the disk is full.*make room; nothing that was recorded is lost"):
                store.append([point(n) for n in range(101, 1001)], durable=durable)
            assert store.last == 100
            assert steps(store) == list(range(1, 101))
        store._connection.execute("PRAGMA max_page_count = 100000")
        store.append([point(n) for n in range(101, 1001)])
    with SqliteStore.open(tmp_path / "a.db") as store:
        assert store.loss is None
        assert steps(store) == list(range(1, 1001))


FILE_LIMIT = """
import resource, signal, sys
from foresail.errors import HostError
from foresail.stores.sqlite import SqliteStore
from foresail.testing.logs import point, steps
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = SqliteStore.open(sys.argv[1])
store.append([point(n) for n in range(1, 101)], durable=True)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
refused = 0
while refused < 3:
    try:
        store.append([point(store.last + n) for n in range(1, 101)], durable=refused % 2 == 0)
    except HostError as error:
        refused += 1
        last = store.last
        assert steps(store) == list(range(1, last + 1))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
store.append([point(store.last + n) for n in range(1, 101)])
print(last, store.last, flush=True)
store.close()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on file size")
def test_a_disk_that_refuses_to_write(tmp_path: Path, child: Start) -> None:
    last, after = map(int, child(FILE_LIMIT, tmp_path / "a.db").line().split())
    assert after == last + 100
    with SqliteStore.open(tmp_path / "a.db", write=False) as store:
        assert steps(store) == list(range(1, after + 1))


OPEN_AS_NOBODY = """
import os, sys
sys.path[:0] = sys.argv[3].split(os.pathsep)
import psutil
from foresail.errors import ForesailError
from foresail.stores.sqlite import SqliteStore
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    with SqliteStore.open(sys.argv[1], write=sys.argv[2] == "write") as store:
        print(store.last)
except ForesailError as error:
    print(type(error).__name__, error)
"""


def as_nobody(path: Path, how: str) -> str:
    """What a process says that may not write the folder of `path`, though this one may be root's."""
    arguments = [sys.executable, "-W", "error", "-c", OPEN_AS_NOBODY, path, how, os.pathsep.join(sys.path)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.strip()


@pytest.mark.skipif(sys.platform == "win32", reason="needs users and modes")
@pytest.mark.parametrize("left", ["closed", "killed"])
def test_a_folder_that_cannot_be_written(tmp_path: Path, left: str) -> None:
    source = tmp_path / "a.db"
    store = SqliteStore.open(source)
    store.append([point(n) for n in range(1, 8)])
    if left == "closed":
        store.close()
    with tempfile.TemporaryDirectory() as name:  # its parents can be entered by anyone, those of tmp_path cannot
        folder = Path(name)
        for file in tmp_path.iterdir():
            shutil.copyfile(file, folder / file.name)
        folder.chmod(0o555)
        assert as_nobody(folder / "a.db", "write").startswith(f"HostError cannot write {folder}/a.db.lock")
        assert as_nobody(folder / "b.db", "write").startswith(f"HostError cannot write {folder}/b.db.lock")
        seen = as_nobody(folder / "a.db", "read")
        folder.chmod(0o000)
        unseen = as_nobody(folder / "a.db", "read")
        folder.chmod(0o755)
    store.close()
    assert seen == "7"
    assert unseen.startswith("HostError storage")


def test_a_network_file_system_gets_a_rollback_journal_and_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.db"
    write_log(path, [3] * 10)
    monkeypatch.setattr(connect, "network_kind", lambda path: "nfs4")
    with pytest.warns(RuntimeWarning, match=r"network file system \(nfs4\)"):
        store = SqliteStore.open(path)
    with store:
        assert store._connection.execute("PRAGMA journal_mode").fetchone() == (b"delete",)
        store.append([point(31)], durable=True)
        with SqliteStore.open(path, write=False) as reader:
            assert steps(reader) == list(range(1, 32))
            store.append([point(32)])
            assert reader.last == 32
    assert not (tmp_path / "a.db-wal").exists()
    monkeypatch.undo()
    with SqliteStore.open(path) as store:
        assert store._connection.execute("PRAGMA journal_mode").fetchone() == (b"wal",)
        assert store.last == 32


def test_a_reader_that_holds_a_rollback_journal_costs_the_writer_nothing_but_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.db"
    monkeypatch.setattr(connect, "network_kind", lambda path: "nfs4")
    with pytest.warns(RuntimeWarning, match="network file system"):
        store = SqliteStore.open(path)
    with store, SqliteStore.open(path, write=False) as reader:
        store._connection.execute("PRAGMA busy_timeout = 0")
        reader._connection.execute("BEGIN")
        reader._connection.execute("SELECT count(*) FROM event").fetchone()
        with pytest.raises(HostError, match="another program holds it"):
            store.append([point(1), point(2)])
        assert store.last == 0
        reader._connection.execute("COMMIT")
        store.append([point(1)])
        assert steps(reader) == [1]


@pytest.mark.parametrize(
    ("where", "kind"),
    [("/data/nfs/a.db", "nfs4"), ("/data/a.db", ""), ("/data/nfs/local/a.db", ""), ("/ceph/x/y/a.db", "fuse.ceph")],
)
def test_the_innermost_mount_counts(monkeypatch: pytest.MonkeyPatch, where: str, kind: str) -> None:
    from types import SimpleNamespace

    mounts = {"/": "ext4", "/data/nfs": "nfs4", "/data/nfs/local": "xfs", "/ceph": "fuse.ceph"}
    listed = [SimpleNamespace(mountpoint=point, fstype=kind) for point, kind in mounts.items()]
    monkeypatch.setattr("psutil.disk_partitions", lambda all: listed)
    assert filesystem.network_kind(Path(where)) == kind


# --- the form of the file -----------------------------------------------------------------------------------------


def test_the_file_says_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    write_log(path, [2])
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    assert db.execute("PRAGMA user_version").fetchone() == (SCHEMA,)
    kind, body = db.execute("SELECT typeof(body), body FROM event WHERE seq = 1").fetchone()
    db.close()
    assert kind == "text"
    assert json.loads(body)["event"] == "PointReported"
    assert body.encode() == encode(point(1))


CAME_LATER = {1: {ev.AttemptSilent, ev.MachinesChanged, ev.Noted}}
"""Kinds of events that a schema got after its log was kept. New fields are optional and not set there."""


def test_there_is_a_reader_for_every_schema_number() -> None:
    assert set(READERS) == set(range(1, SCHEMA + 1))


@pytest.mark.parametrize("schema", sorted(READERS))
def test_the_kept_log_of_each_schema_is_read(schema: int, tmp_path: Path) -> None:
    assets = Path(__file__).parents[2] / "assets"
    kept = assets / f"schema-{schema}.db"
    shutil.copyfile(kept, tmp_path / "a.db")
    expected = (assets / f"schema-{schema}.txt").read_text(encoding="utf-8").splitlines()
    for write in (False, True):
        with SqliteStore.open(tmp_path / "a.db", write=write) as store:
            events = [event for _, event in store.read()]
        assert {type(event) for event in events} == set(ev.Event.__args__) - CAME_LATER[schema]
        told = [repr(event) for event in events]
        for unset in (", silence_s=UNSET", ", parallel=UNSET"):
            told = [line.replace(unset, "") for line in told]
        assert told == expected
