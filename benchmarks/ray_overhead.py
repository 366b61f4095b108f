"""What an attempt costs on Ray, beside what a bare Ray actor costs: `python -m benchmarks.ray_overhead`.

A trial of Ray Tune is an actor that imports the training code and is sent its configuration, and more; so a bare actor
that imports the same and answers once is the least that one can cost. Both are measured in turns on one local cluster.
Times are of the wall; on a machine that is busy with other things, compare the columns and not the figures.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from foresail.core import events as ev
from foresail.core.commands import Launch, Yield
from foresail.core.goal import Goal
from foresail.core.spec import Entry
from foresail.core.words import AttemptId, TrialId
from foresail.driver.clock import StudyClock
from foresail.executors.ray import RayExecutor

TRAINING = f"{Path(__file__).resolve()}:train"


class Counter:
    def __init__(self) -> None:
        self.n = 0

    def state_dict(self) -> dict[str, int]:
        return {"n": self.n}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.n = state["n"]


def train(run: Any) -> None:
    counter = Counter()
    run.track(counter=counter)
    for step in run.steps(max=run.config["steps"]):
        counter.n = step
        run.report(score=counter.n)
        time.sleep(run.config["pause_s"])


class Actor:
    """As little as a trial can be."""

    def report(self, config: dict[str, float]) -> float:
        import foresail.worker.run  # noqa: F401

        return config["steps"]


class Lab:
    def __init__(self, folder: Path) -> None:
        self.clock, self.trial = StudyClock(), 0
        self.facts: list[Any] = []
        goal = Goal("score", "max", trials=1)
        self.executor = RayExecutor(folder, clock=self.clock, goal=goal, entry=Entry(function=TRAINING))
        self.executor.start()
        self.until(ev.MachinesChanged, "")

    def until(self, kind: type, attempt: str) -> Any:
        while True:
            for fact in self.facts:
                if isinstance(fact, kind) and getattr(fact, "attempt", "") == attempt:
                    return fact
            self.facts += self.executor.poll(self.clock.now_s() + 60.0)

    def launch(self, number: int = 1, *, pause_s: float = 0.0, steps: int = 1, **more: Any) -> AttemptId:
        self.trial += number == 1
        self.facts = self.facts if number > 1 else []
        attempt = AttemptId(f"{self.trial}-{number}")
        config = {"steps": steps, "pause_s": pause_s}
        trial = TrialId(self.trial)
        self.executor.perform(Launch(attempt=attempt, trial=trial, number=number, config=config, cores=(0,), **more))
        return attempt

    def once(self) -> float:
        """Seconds from the command to the end of an attempt that reports once."""
        began = time.perf_counter()
        self.until(ev.AttemptEnded, self.launch())
        return time.perf_counter() - began

    def again(self) -> float:
        """Seconds from the wish to leave to the first new point of the attempt that goes on, its pause left out."""
        pause_s = 0.01
        first = self.launch(pause_s=pause_s, steps=10**6)
        self.until(ev.PointReported, first)
        began = time.perf_counter()
        self.executor.perform(Yield(first))
        saved = self.until(ev.CheckpointSaved, first)
        self.until(ev.AttemptEnded, first)
        second = self.launch(2, pause_s=pause_s, steps=10**6, resume_step=saved.step, checkpoint=saved.path)
        self.until(ev.PointReported, second)
        took = time.perf_counter() - began
        self.executor.perform(Yield(second))
        self.until(ev.AttemptEnded, second)
        return took - pause_s


def actors(ray: Any) -> Iterator[float]:
    """Seconds for an actor to come, answer and be gone."""
    make = ray.remote(Actor).options(num_cpus=0)
    while True:
        began = time.perf_counter()
        actor = make.remote()
        ray.get(actor.report.remote({"steps": 1.0}))
        ray.kill(actor)
        yield time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "150")
    import ray

    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False)
    with tempfile.TemporaryDirectory() as folder:
        lab, bare = Lab(Path(folder)), actors(ray)
        lab.once()
        next(bare)
        attempts, others, resumes = [], [], []
        for _ in range(rounds):
            attempts.append(lab.once())
            others.append(next(bare))
            resumes.append(lab.again())
        lab.executor.close()
    for name, times in (("attempt", attempts), ("bare actor", others), ("suspend to resume", resumes)):
        print(f"{name:18} median {statistics.median(times):.3f} s, worst {max(times):.3f} s, of {rounds}")
    ray.shutdown()


if __name__ == "__main__":
    main()
