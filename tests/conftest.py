"""What several folders of tests share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent / "contracts"))

from lab import GOAL, Lab, WallClock
from ray_lab import PATIENCE_S, STORE_BYTES, import_ray, patiently
from trainings import HERE, TRAININGS

from foresail.core.goal import Goal
from foresail.core.spec import Entry
from foresail.executors.inline import InlineExecutor
from foresail.executors.local import LocalExecutor

MakeLab = Callable[..., Lab]


@pytest.fixture
def make_lab(tmp_path: Path) -> Iterator[MakeLab]:
    """`make_lab(kind, training)`: a laboratory with an executor of that kind; closed at the test's end."""
    made: list[Lab] = []

    def make(kind: str, training: Any, *, goal: Goal = GOAL, folder: Path = tmp_path / "study") -> Lab:
        clock = WallClock()
        executor: Any
        entry = training if isinstance(training, Entry) else Entry(function=f"{HERE}:{training}")
        if kind == "inline":
            executor = InlineExecutor(folder, clock=clock, goal=goal, target=TRAININGS[training])
        elif kind == "import":
            executor = LocalExecutor(folder, clock=clock, goal=goal, target=entry)
        elif kind == "ray":
            from foresail.executors.ray import RayExecutor

            for earlier in made:
                if isinstance(earlier.executor, RayExecutor):
                    _forsake(earlier.executor)
            executor = RayExecutor(folder, clock=clock, goal=goal, entry=entry)
        else:
            target = training if callable(training) else TRAININGS[training]
            executor = LocalExecutor(folder, clock=clock, goal=goal, target=target, start="fork")
        executor.start()
        made.append(Lab(executor, clock, folder))
        if kind == "ray":
            made[-1].patience_s = PATIENCE_S
            while not executor.poll(clock.now_s() + 1.0):
                assert clock.now_s() < PATIENCE_S, "no machine has come"
        return made[-1]

    yield make
    for lab in made:
        lab.executor.close()


def _forsake(executor: Any) -> None:
    """What Ray does when a driver is killed: its agents die at once. One that is there would hold their machines."""
    import ray

    for machine in executor._machines.values():
        ray.kill(machine.agent)
    executor._machines.clear()


@pytest.fixture(scope="session")
def local_ray() -> Iterator[None]:
    """A Ray cluster of one machine with four CPUs."""
    ray = import_ray()
    quiet = {"include_dashboard": False, "log_to_driver": False, "_node_ip_address": "127.0.0.1"}
    patiently(lambda: ray.init(address="local", num_cpus=4, object_store_memory=STORE_BYTES, **quiet))
    yield
    ray.shutdown()
