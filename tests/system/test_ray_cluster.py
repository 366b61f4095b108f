"""A study on a real Ray cluster of several raylets: a machine is killed, another comes, the driver is killed too."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ray_lab import ON_RAY, PATIENCE_S, STORE_BYTES, import_ray, patiently
from test_kill_driver import SCRIPT, check_story, last_event, leftovers

from foresail.api.drive import controller_of
from foresail.api.recorded import folder_of
from foresail.core import events as ev
from foresail.core.view import fold
from foresail.engine.verify import verify
from foresail.stores.sqlite import SqliteStore

pytestmark = [
    *ON_RAY,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Ray's own log files
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
]
SMALL = {"object_store_memory": STORE_BYTES, "include_dashboard": False}


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A head without CPUs, so that what is killed is never the head."""
    utils = import_ray("ray.cluster_utils")
    made = patiently(lambda: utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **SMALL}))
    yield made
    made.shutdown()


@pytest.fixture
def drive() -> Iterator[Callable[[Path, str], subprocess.Popen[bytes]]]:
    """Starts a driver; none is left, whatever happens."""
    started: list[subprocess.Popen[bytes]] = []

    def start(storage: Path, on: str) -> subprocess.Popen[bytes]:
        line = [sys.executable, str(SCRIPT), str(storage), "asha", on]
        started.append(subprocess.Popen(line, start_new_session=True))
        return started[-1]

    yield start
    for driver in started:
        driver.kill()
        driver.wait()


def wait(driver: subprocess.Popen[bytes], done: Callable[[], bool]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not done():
        assert driver.poll() in (None, 0), f"the driver ended with {driver.poll()}"
        assert time.monotonic() < end_s, "it did not come to it"
        time.sleep(0.01)


def events_of(storage: Path) -> list[ev.Event]:
    with SqliteStore.open(storage, write=False) as store:
        return [event for _, event in store.read()]


def test_a_machine_is_killed_and_one_added_and_the_driver_is_killed_and_comes_back(cluster, drive, tmp_path):
    storage, on = tmp_path / "study.db", f"ray:{cluster.address}"
    first = patiently(lambda: cluster.add_node(num_cpus=1, **SMALL))
    driver = drive(storage, on)
    wait(driver, lambda: last_event(storage) >= 15)
    hold = folder_of(storage) / "hold"
    hold.touch()  # a raylet takes its time to come, and the study would be over
    patiently(lambda: cluster.add_node(num_cpus=1, **SMALL))
    cluster.remove_node(first, allow_graceful=False)
    wait(driver, lambda: sum(isinstance(e, ev.MachinesChanged) for e in events_of(storage)) >= 3)
    hold.unlink()
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
