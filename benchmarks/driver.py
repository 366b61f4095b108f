"""What the driver costs: seconds a report, and bytes a finished trial, with training that is free.

    python -m benchmarks.driver [--trials 10000] [--points 10] [--policy pop] [--json FILE]

The real driver, engine, policy and SQLite store; only the training is played. The time is the driver's own: from a
report to the end of the transaction that holds it and the commands that follow from it.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from array import array
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

import psutil

from foresail.api.drive import controller_of
from foresail.core import events as ev
from foresail.core.goal import maximize
from foresail.core.spec import Choice, StudySpec
from foresail.core.words import Config
from foresail.driver.loop import Driver
from foresail.executors.replay import Recording, ReplayExecutor, VirtualClock
from foresail.space import Float, Space
from foresail.stores.sqlite import SqliteStore

SPACE = Space(**{f"x{i}": Float(0.0, 1.0) for i in range(8)})
WINDOWS = ((0, 10), (90, 110), (990, 1010), (9_900, 10_000))


class Timed(Driver):
    """Notes the seconds of each batch that holds a report, and how many trials are over then."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.costs = {window: array("d") for window in WINDOWS}
        self.memory: dict[int, int] = {}
        self._process = psutil.Process()

    def _handle(self, facts: Sequence[ev.Fact]) -> None:  # type: ignore[override]
        started = time.perf_counter()
        super()._handle(facts)
        took = time.perf_counter() - started
        over = sum(self.view.counts.values())
        if any(isinstance(fact, ev.PointReported) for fact in facts):
            for (low, high), costs in self.costs.items():
                if low <= over < high:
                    costs.append(took)
        if over % 1000 == 0 and over not in self.memory:
            self.memory[over] = self._process.memory_info().rss


def recording(points: int) -> Callable[[Config], Recording]:
    @lru_cache(maxsize=64)
    def played(config: str) -> Recording:
        rng = random.Random(config)
        end, pace = rng.betavariate(2, 2), rng.uniform(0.1, 1.0)
        values = [end * (1 - 2.7 ** (-pace * step)) + rng.gauss(0, 0.01) for step in range(1, points + 1)]
        return Recording(range(1, points + 1), values, [float(step) for step in range(1, points + 1)])

    return lambda config: played(str(sorted(config.items())))


def run(policy: str, trials: int, points: int) -> dict[str, object]:
    spec = StudySpec(
        name="driver",
        space=SPACE.to_dict(),
        goal=maximize("accuracy", trials=trials),
        policy=Choice(policy),
        max_steps=points,
    )
    clock = VirtualClock()
    with tempfile.TemporaryDirectory() as folder, SqliteStore.open(Path(folder) / "study.db") as store:
        controller = controller_of(spec)
        executor = ReplayExecutor(recording(points), "accuracy", clock)
        driver = Timed(controller, store=store, executor=executor, clock=clock)
        store.append(controller.feed(ev.StudyCreated(at_s=0.0, spec=spec)).events, durable=True)
        started = time.perf_counter()
        view = driver.run(tuple(range(2)))
        took = time.perf_counter() - started
    return {"policy": policy, "points": view.points, "trials": len(view.trials), "seconds": took, **summary(driver)}


def summary(driver: Timed) -> dict[str, object]:
    """Median ms a report by how many trials were over; bytes a trial between the first and the last thousand."""
    found: dict[str, object] = {}
    for (_, high), costs in driver.costs.items():
        if costs:
            found[f"median_ms_at_{high}"] = 1000 * statistics.median(costs)
    marks = sorted(driver.memory)
    if len(marks) > 2:
        grown = driver.memory[marks[-1]] - driver.memory[marks[1]]
        found["bytes_per_trial"] = grown / (marks[-1] - marks[1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--points", type=int, default=10)
    parser.add_argument("--policy", default="fifo,asha,pop")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows = [run(policy, args.trials, args.points) for policy in args.policy.split(",")]
    for row in rows:
        print(
            "  ".join(
                f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items()
            )
        )
    if args.json:
        args.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
