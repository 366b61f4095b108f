"""Speed and memory of engine and policy in a replay.

    python benchmarks/replay_speed.py [--policies random,asha] [--trials 100,1000,10000] [--points 100]

Prints reports a second of processor time (one core, everything included: executor, engine, policy), the growth of the
cost of a report from the fewest to the most trials, and the peak of memory. `--budget 0.035` stops ASHA while almost
all that happens is trials being opened and paused, its most expensive phase.
"""

from __future__ import annotations

import argparse
import math
import resource
import subprocess
import sys
import time
from random import Random

from foresail.replay.session import Contender, Setting, replay
from foresail.replay.trace import Trace, as_recording
from foresail.space import Float, Space

NEVER = {"top10pct": 9.0, "top1pct": 9.0, "best": 9.0}


def made_up(trials: int, points: int) -> Trace:
    """Saturating curves with noise over eight knobs."""
    rng = Random(0)
    names = [f"k{i}" for i in range(8)]
    curves = []
    for _ in range(trials):
        final, tau = rng.betavariate(2, 2), rng.uniform(1, points / 3)
        curves.append([final * (1 - math.exp(-t / tau)) + rng.gauss(0, 0.01) for t in range(1, points + 1)])
    return Trace(
        name="made-up",
        metric="accuracy",
        mode="max",
        space=Space.of({name: Float(0.0, 1.0) for name in names}),
        configs=tuple({name: rng.random() for name in names} for _ in range(trials)),
        curves=tuple(as_recording(curve, None) for curve in curves),
        targets=NEVER,
    )


def measure(policy: str, trials: int, points: int, budget: float) -> float:
    """Microseconds of processor time a report; printed with the rest."""
    trace = made_up(trials, points)
    started = time.process_time()
    record = replay(trace, Contender(policy, policy), 0, Setting(workers=4, budget_frac=budget))
    spent_s = time.process_time() - started
    memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(
        f"{policy:12s} {trials:6d} trials  {record.steps:8d} reports  {record.steps / spent_s:9.0f} reports/s  "
        f"{1e6 * spent_s / record.steps:6.1f} us/report  {memory_mb:5.0f} MB",
        flush=True,
    )
    return 1e6 * spent_s / record.steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", default="random,asha")
    parser.add_argument("--trials", default="100,1000,10000")
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--budget", type=float, default=1.5)
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.alone:  # a process of its own for each line, so that the peak of memory is that line's
        measure(given.policies, int(given.trials), given.points, given.budget)
        return
    for policy in given.policies.split(","):
        for trials in given.trials.split(","):
            options = ["--points", str(given.points), "--budget", str(given.budget), "--alone"]
            subprocess.run([sys.executable, __file__, "--policies", policy, "--trials", trials, *options], check=True)


if __name__ == "__main__":
    main()
