"""What an attempt costs on Ray, beside a trial of Ray Tune: `python -m benchmarks.ray_overhead` (needs `ray[tune]`).

Both train the same: import the training's file, report once. On one local cluster, one at a time, in turns: some
attempts of ours from the command to the end, then some trials of Tune from one's end to the next one's. Also from the
wish to suspend to the first new point of the attempt that goes on, its checkpoint included. Times are of the wall; on a
machine that is busy with other things, compare the columns and not the figures.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import tempfile
import time
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


def tune_trainable(config: dict[str, Any]) -> None:
    from ray import tune

    tune.report({"score": config["steps"]})


def tuned(folder: Path, trials: int) -> list[float]:
    """Seconds of each trial of Ray Tune, from the end of the one before; without the first, which also pays for Tune's
    own start."""
    from ray import tune

    ends: list[float] = []

    class Ends(tune.Callback):
        def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
            ends.append(time.perf_counter())

    place = tune.PlacementGroupFactory([{"tune": 1}])  # our agent holds the CPUs
    tuner = tune.Tuner(
        tune.with_resources(tune_trainable, place),
        param_space={"steps": 1.0},
        tune_config=tune.TuneConfig(num_samples=1 + trials, max_concurrent_trials=1),
        run_config=tune.RunConfig(storage_path=str(folder), callbacks=[Ends()], verbose=0),
    )
    results = tuner.fit()
    assert not results.errors, results.errors
    return [after - before for before, after in itertools.pairwise(ends)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--trials", type=int, default=5, help="of each kind in a round")
    args = parser.parse_args()
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1"}
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "150")
    import ray

    ray.init(
        address="local", num_cpus=4, resources={"tune": 1}, include_dashboard=False, log_to_driver=False,
        _node_ip_address="127.0.0.1",
    )  # fmt: skip
    attempts, others, resumes = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(Path(folder) / "ours")
        lab.once()
        for _ in range(args.rounds):
            attempts += [lab.once() for _ in range(args.trials)]
            others += tuned(Path(folder) / "tune", args.trials)
            resumes += [lab.again() for _ in range(args.trials)]
            tell({"attempt": attempts, "trial of Ray Tune": others, "suspend to resume": resumes})
        lab.executor.close()
    ray.shutdown()


def tell(taken: dict[str, list[float]]) -> None:
    """After each round, of all so far."""
    for name, times in taken.items():
        print(f"{name:18} median {statistics.median(times):.3f} s, worst {max(times):.3f} s, of {len(times)}")
    ours, theirs = taken["attempt"], taken["trial of Ray Tune"]
    print(f"attempt / trial    {statistics.median(ours) / statistics.median(theirs):.3f} of medians", flush=True)


if __name__ == "__main__":
    main()
