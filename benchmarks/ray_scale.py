"""What the driver costs where trials run on Ray: 1,000 trials on 64 slots of several raylets, training being free.

    python -m benchmarks.ray_scale [--trials 1000] [--machines 4] [--slots 16] [--policy asha]

Everything is real but the training: driver, engine, SQLite, Ray's processes, an agent on each raylet, a process for
each attempt. Seconds are of the processor, so what else the machine does counts little: of the driver's main thread,
and of its whole process, Ray's threads in it included. By fifths of the study: a cost that grows is seen in the last.
"""

from __future__ import annotations

import argparse
import itertools
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from foresail.api.drive import controller_of
from foresail.core import events as ev
from foresail.core.goal import maximize
from foresail.core.spec import Choice, Entry, Resources, StudySpec
from foresail.driver.clock import StudyClock
from foresail.driver.loop import Driver
from foresail.executors.ray import RayExecutor
from foresail.space import Float, Space
from foresail.stores.sqlite import SqliteStore

TRAINING = f"{Path(__file__).resolve()}:train"
SPACE = Space(end=Float(0.0, 1.0), pace=Float(0.1, 1.0))
FIFTHS, POINTS = 5, 10


def train(run: Any) -> None:
    for step in run.steps(max=POINTS):
        run.report(score=run.config["end"] * (1 - 2.7 ** (-run.config["pace"] * step)))


@dataclass(frozen=True)
class Mark:
    """What had been spent when so many trials were over."""

    over: int
    reports: int
    wall_s: float
    thread_s: float
    process_s: float
    rss_bytes: int


class Marked(Driver):
    """Notes what it has spent at each fifth of the study."""

    def __init__(self, *args: Any, trials: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._every = max(1, trials // FIFTHS)
        self.marks: list[Mark] = []

    def _handle(self, facts: Any) -> None:
        super()._handle(facts)
        over = sum(self.view.counts.values())
        if self.view.points and (over >= len(self.marks) * self._every or self.view.ended is not None):
            rss = psutil.Process().memory_info().rss
            spent = (time.perf_counter(), time.thread_time(), time.process_time(), rss)
            self.marks.append(Mark(over, self.view.points, *spent))


def run(address: str, trials: int, slots: int, policy: str) -> list[Mark]:
    spec = StudySpec(
        name="ray-scale",
        space=SPACE.to_dict(),
        goal=maximize("score", trials=trials),
        policy=Choice(policy),
        max_steps=POINTS,
        resources=Resources(workers=slots),
        entry=Entry(function=TRAINING),
    )
    clock = StudyClock()
    with tempfile.TemporaryDirectory() as folder, SqliteStore.open(Path(folder) / "study.db") as store:
        controller = controller_of(spec)
        store.append(controller.feed(ev.StudyCreated(at_s=0.0, spec=spec)).events, durable=True)
        executor = RayExecutor(Path(folder) / "runs", clock=clock, goal=spec.goal, entry=spec.entry, address=address)
        driver = Marked(controller, store=store, executor=executor, clock=clock, trials=trials)
        try:
            driver.run(())
        finally:
            executor.close()
    return driver.marks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--machines", type=int, default=4)
    parser.add_argument("--slots", type=int, default=16, help="of each machine")
    parser.add_argument("--policy", default="asha")
    args = parser.parse_args()
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_raylet_start_wait_time_s": "150"}
    os.environ |= {"RAY_prestart_worker_first_driver": "0", "RAY_enable_worker_prestart": "0"}
    from ray.cluster_utils import Cluster

    small = {"object_store_memory": 80 << 20, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **small})
    try:
        for _ in range(args.machines):
            cluster.add_node(num_cpus=args.slots, **small)
        marks = run(cluster.address, args.trials, args.machines * args.slots, args.policy)
    finally:
        cluster.shutdown()
    tell(marks)


def tell(marks: list[Mark]) -> None:
    print("trials over   reports   main thread ms/report   whole process ms/report   MiB   wall s")
    for before, after in itertools.pairwise(marks):
        reports = max(1, after.reports - before.reports)
        thread, process = (1000 * (b - a) / reports for a, b in _spent(before, after))
        wall = after.wall_s - marks[0].wall_s
        mib = after.rss_bytes / 2**20
        print(f"{after.over:11}   {after.reports:7}   {thread:21.3f}   {process:23.3f}   {mib:3.0f}   {wall:6.1f}")
    first, last = marks[0], marks[-1]
    thread, process = (1000 * (b - a) / max(1, last.reports - first.reports) for a, b in _spent(first, last))
    print(f"all: {thread:.3f} ms/report of the main thread, {process:.3f} of the process")


def _spent(before: Mark, after: Mark) -> tuple[tuple[float, float], tuple[float, float]]:
    return (before.thread_s, after.thread_s), (before.process_s, after.process_s)


if __name__ == "__main__":
    main()
