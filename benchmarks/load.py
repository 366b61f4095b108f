"""Load: how long a long log takes to open, what a driver holds, and 64 workers that report 100 times a second.

    PYTHONPATH=src python benchmarks/load.py open [--trials 10000] [--points 50] [--folder FOLDER]
    PYTHONPATH=src python benchmarks/load.py reports [--workers 64] [--hz 100] [--seconds 20]

`open` writes a log of so many trials with so many points each, once, and opens it as a reader (`foresail status`) and
as a driver do. Seconds are given on the wall and of CPU: on a machine that others use, the second is what to compare.
`reports` feeds a real executor's listeners, the engine and the store with what so many workers write, and tells what
share of one core that takes; the workers are one process that writes their spools, so that it fits a small machine.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from foresail.api.drive import controller_of, read_log
from foresail.api.recorded import load_view
from foresail.core import events as ev
from foresail.core.goal import Goal
from foresail.core.spec import Choice, Resources, StudySpec
from foresail.core.words import Outcome, Status, TrialId, attempt_id
from foresail.executors.listening import Listener
from foresail.space import Float, Space
from foresail.stores.sqlite import SqliteStore
from foresail.worker.folder import StudyFolder
from foresail.worker.spool import Point, Spool


def spec_of(trials: int, workers: int) -> StudySpec:
    return StudySpec(
        name="load",
        space=Space(lr=Float(1e-4, 1.0, log=True)).to_dict(),
        goal=Goal("accuracy", "max", trials=trials),
        policy=Choice("fifo"),
        resources=Resources(workers, 1),
    )


def log_of(trials: int, points: int, at_once: int = 64) -> Iterator[ev.Event]:
    """A study whose trials have all trained to their end, `at_once` at a time."""
    yield ev.StudyCreated(at_s=0.0, spec=spec_of(trials + at_once, at_once))
    yield ev.DriverStarted(at_s=0.0, cores=tuple(range(at_once)))
    at_s = 0.0
    for first in range(0, trials, at_once):
        numbers = [TrialId(n) for n in range(first, min(trials, first + at_once))]
        for trial in numbers:
            attempt = attempt_id(trial, 1)
            config = {"lr": 1e-4 + trial * 1e-6}
            yield ev.TrialProposed(at_s=at_s, trial=trial, config=config, origin="random")
            yield ev.AttemptGranted(at_s=at_s, attempt=attempt, trial=trial, number=1, cores=(trial % at_once,))
            yield ev.AttemptStarted(at_s=at_s, attempt=attempt, pid=1)
        for step in range(1, points + 1):
            for trial in numbers:
                at_s += 0.01
                value = {"accuracy": step / (step + 10.0 + trial % 7)}
                attempt = attempt_id(trial, 1)
                yield ev.PointReported(at_s=at_s, attempt=attempt, step=step, metrics=value, seconds=0.64)
        for trial in numbers:
            attempt = attempt_id(trial, 1)
            yield ev.AttemptEnded(at_s=at_s, attempt=attempt, outcome=Outcome.COMPLETED)
            yield ev.TrialEnded(at_s=at_s, trial=trial, status=Status.COMPLETED)


def write(path: Path, trials: int, points: int) -> None:
    with SqliteStore.open(path) as store:
        batch: list[ev.Event] = []
        for event in log_of(trials, points):
            batch.append(event)
            if len(batch) == 5_000:
                store.append(batch)
                batch = []
        store.append(batch)


def timed(name: str, action: Callable[[], object]) -> None:
    wall_s, cpu_s = time.monotonic(), time.process_time()
    before = psutil.Process().memory_info().rss
    kept = action()
    grown = (psutil.Process().memory_info().rss - before) / 1e6
    wall_s, cpu_s = time.monotonic() - wall_s, time.process_time() - cpu_s
    print(f"{name:34} {wall_s:8.2f} s on the wall {cpu_s:8.2f} s of CPU {grown:8.0f} MB more held", flush=True)
    del kept


def show_open(folder: Path, trials: int, points: int) -> None:
    path = folder / f"load-{trials}-{points}.db"
    if not path.exists():
        timed("written", lambda: write(path, trials, points))
    size = path.stat().st_size
    print(f"{trials:,} trials, {trials * points:,} points: {size / 1e6:.0f} MB, {size / trials / points:.0f} B a point")
    context = multiprocessing.get_context("spawn")
    for action in (as_reader, as_driver):  # each in a fresh process, for its memory
        process = context.Process(target=action, args=(path,))
        process.start()
        process.join()


def as_reader(path: Path) -> None:
    timed("opened by a reader, folded", lambda: load_view(path))


def as_driver(path: Path) -> None:
    def open_and_load() -> object:
        with SqliteStore.open(path) as store:
            first, events = read_log(store)
            controller = controller_of(first.spec)
            controller.load(events)
        return controller

    timed("opened by a driver, engine ready", open_and_load)


# --- 64 workers, 100 reports a second ----------------------------------------------------------------------------


def write_spools(root: Path, workers: int, hz: float, seconds: float) -> None:
    """What `workers` trainings write."""
    spools = [Spool(StudyFolder(root).attempt(attempt_id(TrialId(n), 1)).spool) for n in range(workers)]
    began = time.monotonic()
    for step in range(1, int(hz * seconds) + 1):
        for spool in spools:
            spool.write(
                Point(step=step, metrics={"accuracy": step / (step + 10.0), "loss": 1.0 / step}, seconds=1 / hz)
            )
        time.sleep(max(0.0, began + step / hz - time.monotonic()))


def show_reports(folder: Path, workers: int, hz: float, seconds: float) -> None:
    spec = spec_of(workers, workers)
    controller = controller_of(spec)
    store = SqliteStore.open(folder / "reports.db")
    facts: list[ev.Fact] = [
        ev.StudyCreated(at_s=0.0, spec=spec),
        ev.DriverStarted(at_s=0.0, cores=tuple(range(workers))),
        ev.Ticked(at_s=0.0),
    ]
    store.append([event for fact in facts for event in controller.feed(fact).events])
    root = folder / "reports.runs"
    listeners = []
    for number in range(workers):
        attempt = attempt_id(TrialId(number), 1)
        place = StudyFolder(root).attempt(attempt)
        place.path.mkdir(parents=True)
        listeners.append(Listener(attempt, place, metric="accuracy", now_s=0.0))
    writer = multiprocessing.get_context("spawn").Process(target=write_spools, args=(root, workers, hz, seconds))
    writer.start()
    began, cpu_s, told, longest_s = time.monotonic(), time.process_time(), 0, 0.0
    while told < workers * int(hz * seconds):
        turn_s = time.monotonic()
        now_s = turn_s - began
        new = [fact for listener in listeners for fact in listener.facts(now_s)]
        events = [event for fact in new for event in controller.feed(fact).events]
        store.append(events)
        told += sum(isinstance(fact, ev.PointReported) for fact in new)
        longest_s = max(longest_s, time.monotonic() - turn_s)
        time.sleep(0.02)
    wall_s, cpu_s = time.monotonic() - began, time.process_time() - cpu_s
    writer.join()
    me = psutil.Process()
    size = (folder / "reports.db").stat().st_size
    print(f"{told:,} reports of {workers} workers in {wall_s:.1f} s ({workers * hz:,.0f} a second were asked for)")
    print(f"driver: {cpu_s:.1f} s of CPU, {cpu_s / told * 1e6:.0f} us a report; longest turn {longest_s * 1e3:.0f} ms")
    print(f"held: {me.memory_info().rss / 1e6:.0f} MB, {me.num_fds()} descriptors; log {size / told:.0f} B a report")
    store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("open", "reports"))
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--points", type=int, default=50)
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--hz", type=float, default=100.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = given.folder or Path(place)
        os.makedirs(folder, exist_ok=True)
        if given.what == "open":
            show_open(folder, given.trials, given.points)
        else:
            show_reports(folder, given.workers, given.hz, given.seconds)


if __name__ == "__main__":
    main()
