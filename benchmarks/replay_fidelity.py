"""Live studies on this machine, recorded, and played again by the replay: total time, and the order of the grants.

    python benchmarks/replay_fidelity.py [--trials 16] [--step-ms 40]

Trains a made-up model that takes its time, two trials at once, under five policies.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import foresail as fs
from foresail.replay.again import play_again
from foresail.replay.source import events_of

POLICIES = ("fifo", "median", "asha", "asha-stop", "hyperband")
STEPS = 27


def train(run: fs.Run) -> None:
    """A curve that saturates; a slow configuration takes twice the time of a fast one."""
    quality, pace = float(run.config["quality"]), float(run.config["pace"])
    state = {"steps": 0}
    run.on_save(lambda folder: (folder / "steps").write_text(str(state["steps"])))
    run.on_load(lambda folder: state.update(steps=int((folder / "steps").read_text())))
    for step in run.steps(max=STEPS):
        state["steps"] = step
        time.sleep(float(run.config["unit_ms"]) / 1e3 * pace)
        run.report(accuracy=quality * (1.0 - math.exp(-step / 8.0)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=16)
    parser.add_argument("--step-ms", type=float, default=40.0)
    given = parser.parse_args()
    space = fs.Space(
        quality=fs.Float(0.0, 1.0),
        pace=fs.Float(1.0, 2.0),
        unit_ms=fs.Choice([given.step_ms]),
    )
    for policy in POLICIES:
        with TemporaryDirectory() as folder:
            log = Path(folder) / f"{policy}.db"
            goal = fs.maximize("accuracy", trials=given.trials)
            fs.Study(train, space=space, goal=goal, storage=log, policy=policy, workers=2, max_steps=STEPS).run()
            found = play_again(events_of(log), where=log)
        print(
            f"{policy:10s} live {found.live_s:7.2f} s  replayed {found.replayed_s:7.2f} s  "
            f"off {found.error_frac:6.2%}  same grants {found.same_grants_frac:.0%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
