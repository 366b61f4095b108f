"""`kill -9` of a real study's driver, twenty times at random moments: nothing is lost, nothing finished is redone."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from counting_study import STEPS, TRIALS

from foresail.api.drive import controller_of
from foresail.core import events as ev
from foresail.core.view import fold
from foresail.core.words import Status, trial_of
from foresail.engine.verify import verify
from foresail.stores.sqlite import SqliteStore

SCRIPT = Path(__file__).parent / "counting_study.py"
KILLS = 20


def last_event(storage: Path) -> int:
    if not storage.exists():
        return 0
    try:
        with sqlite3.connect(f"file:{storage}?mode=ro", uri=True) as connection:
            return int(connection.execute("SELECT coalesce(max(seq), 0) FROM event").fetchone()[0])
    except sqlite3.OperationalError:  # not made yet
        return 0


def run_until(storage: Path, policy: str, event: int | None, on: str = "") -> bool:
    """Run the study; at the given event, kill -9. True if it came to its end."""
    driver = subprocess.Popen([sys.executable, str(SCRIPT), str(storage), policy, on], start_new_session=True)
    deadline = time.monotonic() + 60
    while driver.poll() is None and time.monotonic() < deadline:
        if event is not None and last_event(storage) >= event:
            os.kill(driver.pid, signal.SIGKILL)
            driver.wait()
            return False
        time.sleep(0.003)
    assert driver.poll() == 0, f"the driver ended with {driver.poll()}"
    return True


def leftovers(storage: Path) -> list[int]:
    """Processes that know of the study."""
    found = []
    for process in psutil.process_iter(["pid", "cmdline", "environ"]):
        told = " ".join(process.info["cmdline"] or ()) + str(process.info["environ"] or "")
        if str(storage) in told and process.pid != os.getpid():
            found.append(process.pid)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["asha", "pop", "hybrid"])
def test_twenty_kills_lose_nothing(tmp_path: Path, policy: str) -> None:
    storage, rng = tmp_path / "study.db", random.Random(policy)
    kills, ended = 0, False
    while kills < KILLS and not ended:
        ended = run_until(storage, policy, last_event(storage) + rng.randint(1, 18))
        kills += not ended
    if not ended:
        run_until(storage, policy, None)
    assert kills >= KILLS // 2, "the study ended before it was killed often enough to tell"
    with SqliteStore.open(storage, write=False) as store:
        events = [event for _, event in store.read()]
    check_story(events)
    assert verify(events, controller_of(fold(events).spec)) is None
    deadline = time.monotonic() + 5
    while leftovers(storage) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert leftovers(storage) == []


def check_story(events: list[ev.Event]) -> None:
    view = fold(events)
    assert view.ended is not None
    assert len(view.trials) == TRIALS
    over: set[int] = set()
    reported: dict[int, set[int]] = {}
    for event in events:
        match event:
            case ev.TrialEnded(trial=trial):
                over.add(trial)
            case ev.AttemptGranted(trial=trial):
                assert trial not in over, f"trial {trial} was over and ran again"
            case ev.PointReported(attempt=attempt, step=step):
                reported.setdefault(trial_of(attempt), set()).add(step)
            case _:
                pass
    for trial in view.trials:
        assert set(trial.steps) == reported.get(trial.id, set()), "a point was lost"
        for step, value in zip(trial.steps, trial.values, strict=True):
            assert value == pytest.approx(trial.config["x"] * step / STEPS), "the state was lost"
        if view.status(trial) is Status.COMPLETED:
            assert list(trial.steps) == list(range(1, STEPS + 1))
