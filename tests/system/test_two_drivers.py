"""Two real drivers on one study: one writes, the other is refused by the first's name or takes over; never both."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from counting_study import STEPS, TRIALS

from foresail.core import events as ev
from foresail.core.view import fold
from foresail.core.words import Status
from foresail.stores.sqlite import SqliteStore

SCRIPT = Path(__file__).parent / "counting_study.py"
PATIENCE_S = float(os.environ.get("FORESAIL_PATIENCE_S", "60"))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="the executor of this machine needs a fork"),
]
Start = Callable[[], subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts drivers of one study; none outlives the test."""
    drivers: list[subprocess.Popen[str]] = []

    def another() -> subprocess.Popen[str]:
        command = [sys.executable, str(SCRIPT), str(tmp_path / "study.db"), "fifo"]
        drivers.append(subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True))
        return drivers[-1]

    yield another
    for driver in drivers:
        driver.send_signal(signal.SIGCONT)
        driver.kill()
        driver.communicate()


def until(done: Callable[[], object]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < end_s, "it did not come to it"
        time.sleep(0.01)


def log(storage: Path) -> list[ev.Event]:
    with SqliteStore.open(storage, write=False) as store:
        return [event for _, event in store.read()]


def has_points(storage: Path) -> bool:
    return storage.exists() and any(isinstance(event, ev.PointReported) for event in log(storage))


def stop(driver: subprocess.Popen[str], storage: Path) -> None:
    """Stop it, but not in the middle of a transaction, which would keep everybody from writing."""

    def is_between_transactions() -> bool:
        driver.send_signal(signal.SIGSTOP)
        db = sqlite3.connect(storage, timeout=0.0, isolation_level=None)
        try:
            db.execute("BEGIN IMMEDIATE")
            db.execute("ROLLBACK")
        except sqlite3.OperationalError:
            driver.send_signal(signal.SIGCONT)
            return False
        finally:
            db.close()
        return True

    until(is_between_transactions)


def check_whole(storage: Path) -> None:
    """Each trial ran to its end once, whoever drove."""
    view = fold(log(storage))
    assert view.ended is not None
    assert [trial.ended for trial in view.trials] == [Status.COMPLETED] * TRIALS
    for trial in view.trials:
        assert list(trial.steps) == list(range(1, STEPS + 1))
        assert trial.last_value == pytest.approx(trial.config["x"])


def test_the_second_is_refused_by_the_name_of_the_first_and_takes_over_when_it_is_killed(
    tmp_path: Path, start: Start
) -> None:
    storage = tmp_path / "study.db"
    first = start()
    until(lambda: has_points(storage))
    stop(first, storage)  # so that it has not ended when the second comes
    second = start()
    _, said = second.communicate(timeout=PATIENCE_S)
    assert second.returncode != 0
    assert f"is being written by process {first.pid} " in said
    first.kill()
    first.wait()
    third = start()
    assert third.communicate(timeout=PATIENCE_S)
    assert third.returncode == 0
    assert sum(isinstance(event, ev.DriverStarted) for event in log(storage)) == 2
    check_whole(storage)


@pytest.mark.parametrize("salvaged", [False, True], ids=["same file", "salvaged file"])
def test_a_paused_driver_whose_lock_is_lost_leaves_when_it_wakes(tmp_path: Path, start: Start, salvaged: bool) -> None:
    """Paused alone it keeps the lock. A lock that is gone (its file was removed) is the other's."""
    storage = tmp_path / "study.db"
    first = start()
    until(lambda: has_points(storage))
    stop(first, storage)
    (tmp_path / "study.db.lock").unlink()
    if salvaged:
        fresh = tmp_path / "copy.db"
        fresh.write_bytes(storage.read_bytes())
        (tmp_path / "copy.db-wal").write_bytes((tmp_path / "study.db-wal").read_bytes())
        with SqliteStore.open(fresh) as store:
            assert store.last > 0
        os.replace(fresh, storage)
        for suffix in ("-wal", "-shm"):
            (tmp_path / f"study.db{suffix}").unlink(missing_ok=True)
    second = start()
    until(lambda: sum(isinstance(event, ev.DriverStarted) for event in log(storage)) == 2)
    first.send_signal(signal.SIGCONT)
    _, said = first.communicate(timeout=PATIENCE_S)
    assert first.returncode != 0
    assert f"process {second.pid} " in said or "taken over by another driver" in said
    assert second.communicate(timeout=PATIENCE_S)
    assert second.returncode == 0
    check_whole(storage)
