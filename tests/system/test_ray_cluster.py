"""A study on a real Ray cluster of several raylets: a machine is killed, another comes, the driver is killed too."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from test_kill_driver import SCRIPT, check_story, last_event, leftovers

from foresail.api.drive import controller_of
from foresail.core import events as ev
from foresail.core.view import fold
from foresail.engine.verify import verify
from foresail.stores.sqlite import SqliteStore

pytestmark = [
    pytest.mark.ray,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Ray's own log files
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
]
PATIENCE_S = 120.0


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A head without CPUs, so that what is killed is never the head."""
    utils = pytest.importorskip("ray.cluster_utils", reason="Ray is not installed: pip install foresail[ray]")
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_raylet_start_wait_time_s": "150"}
    made = utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    yield made
    made.shutdown()


def drive(storage: Path, on: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, str(SCRIPT), str(storage), "asha", on], start_new_session=True)


def wait(driver: subprocess.Popen[bytes], done: Callable[[], bool]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not done():
        assert driver.poll() in (None, 0), f"the driver ended with {driver.poll()}"
        assert time.monotonic() < end_s, "it did not come to it"
        time.sleep(0.01)


def events_of(storage: Path) -> list[ev.Event]:
    with SqliteStore.open(storage, write=False) as store:
        return [event for _, event in store.read()]


def test_a_machine_is_killed_and_one_added_and_the_driver_is_killed_and_comes_back(cluster, tmp_path):
    storage, on = tmp_path / "study.db", f"ray:{cluster.address}"
    first = cluster.add_node(num_cpus=1)
    driver = drive(storage, on)
    wait(driver, lambda: last_event(storage) >= 15)
    cluster.add_node(num_cpus=1)
    cluster.remove_node(first, allow_graceful=False)
    wait(driver, lambda: sum(isinstance(e, ev.MachinesChanged) for e in events_of(storage)) >= 3)
    seen = last_event(storage)
    wait(driver, lambda: last_event(storage) >= seen + 15)
    driver.kill()
    driver.wait()
    driver = drive(storage, on)
    wait(driver, lambda: driver.poll() == 0)
    events = events_of(storage)
    check_story(events)
    check_capacity(events)
    assert verify(events, controller_of(fold(events).spec)) is None
    assert any(isinstance(e, ev.AttemptEnded) and e.outcome == "lost" for e in events)
    wait(driver, lambda: not leftovers(storage))


def check_capacity(events: list[ev.Event]) -> None:
    """A core is granted only while its machine is there, and to one attempt at a time."""
    there: set[int] = set()
    held: dict[str, tuple[int, ...]] = {}
    for event in events:
        match event:
            case ev.DriverStarted():
                there = set(event.cores)
            case ev.MachinesChanged(machines=machines):
                there = {core for machine in machines for core in machine}
            case ev.AttemptGranted(attempt=attempt, cores=cores):
                assert set(cores) <= there
                assert not set(cores) & {core for other in held.values() for core in other}
                held[attempt] = cores
            case ev.AttemptEnded(attempt=attempt):
                del held[attempt]
            case _:
                pass
