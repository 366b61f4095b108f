"""The demo with one policy against another, side by side, each from nothing as a user runs it.

    python -m benchmarks.demo [--policies pop,fifo] [--seeds 5] [--cap 4] [--json FILE]
    python -m benchmarks.demo --spread 100 [--record FILE]
    python -m benchmarks.demo --replay FILE --policies pop,hybrid,fifo [--seeds 20]

Wall seconds from the command to the goal (process start, imports and all), and what was done until then. The policies
of a seed see the same configurations in the same order. Runs alternate, so that a noisy machine is noisy for all. A
run that takes `cap` times as long as the first policy's of its seed is stopped and counts with that time: ratios are
then bounds from above.

`--spread` trains so many random configurations to their ends, and says how many reach the goal; FILE keeps the study.
`--replay` plays it again, each seed another order of its configurations, in the seconds that were recorded.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import foresail as fs
from foresail.demo import SPACE, TARGET
from foresail.replay.contenders import contenders
from foresail.replay.session import Setting, replay
from foresail.replay.source import read

LONGEST_S = 1200.0
SPREAD_SEED = 100
"""Apart from the seeds that are compared."""
RUN = """
import sys, json
from foresail.demo import study
made = study(seed=int(sys.argv[1]), storage=sys.argv[2], policy=sys.argv[3], within=float(sys.argv[4]))
result = made.run(quiet=True)
found = {"end": result.end, "best": result.best.value, "trials": len(result.view.trials), "epochs": result.points}
print(json.dumps(found))
"""


def run(policy: str, seed: int, within_s: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        command = [sys.executable, "-c", RUN, str(seed), str(Path(folder) / "demo.db"), policy, str(within_s)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return {"policy": policy, "seed": seed, "seconds": time.monotonic() - started, **json.loads(done.stdout)}


def live(policies: Sequence[str], seeds: int, cap: float) -> Iterator[dict[str, Any]]:
    for seed in range(seeds):
        within_s = LONGEST_S
        for policy in policies:
            row = run(policy, seed, within_s)
            yield row
            within_s = cap * row["seconds"] if policy == policies[0] else within_s


def compare(rows: list[dict[str, Any]], first: str, other: str) -> str:
    """Ratios of the times of two policies, seed by seed."""
    times = {(row["policy"], row["seed"]): row["seconds"] for row in rows}
    seeds = sorted({row["seed"] for row in rows})
    ratios = [times[first, seed] / times[other, seed] for seed in seeds]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    total = sum(times[first, seed] for seed in seeds) / sum(times[other, seed] for seed in seeds)
    each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    return f"{first} / {other}: geometric mean {mean:.3f}, of the sums {total:.3f}, each {each}"


def spread(count: int, record: Path | None) -> str:
    """How good random configurations are when they are trained to their ends."""
    from foresail.demo.digits import EPOCHS, train

    goal = fs.maximize("accuracy", trials=count)
    with tempfile.TemporaryDirectory() as folder:
        storage = record or Path(folder) / "spread.db"
        made = fs.Study(
            train, space=SPACE, goal=goal, storage=storage, policy="fifo", seed=SPREAD_SEED, workers=2, max_steps=EPOCHS
        )
        found = sorted((row.best or 0.0 for row in made.run(quiet=True).trials), reverse=True)
    reach = sum(value >= TARGET for value in found)
    return f"{reach} of {len(found)} reach {TARGET}; the best: {', '.join(f'{value:.4f}' for value in found[:10])}"


def orders(recorded: Path, policies: Sequence[str], seeds: int) -> Iterator[dict[str, Any]]:
    """The same as `run`, of recorded curves. Without pauses or starts being free: both cost what a fork does."""
    trace = read(recorded)
    trace.targets["goal"] = TARGET
    setting = Setting(workers=2, target="goal", budget_frac=1.0, start_s=0.05, restart_s=0.05)
    for seed in range(seeds):
        for policy in policies:
            played = replay(trace, contenders(policy)[0], seed, setting)
            found = {"seconds": played.total_s, "end": played.end, "trials": played.configs, "epochs": played.steps}
            yield {"policy": policy, "seed": seed, **found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", default="pop,fifo")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--cap", type=float, default=4.0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--spread", type=int)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--replay", type=Path)
    args = parser.parse_args()
    if args.spread:
        print(spread(args.spread, args.record))
        return
    policies = args.policies.split(",")
    rows: list[dict[str, Any]] = []
    for row in orders(args.replay, policies, args.seeds) if args.replay else live(policies, args.seeds, args.cap):
        rows.append(row)
        print(json.dumps(row), flush=True)
    for policy in policies[:-1]:
        print(compare(rows, policy, policies[-1]))
    if args.json:
        args.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
