"""A small real study, run as a script by the tests that kill it: `python counting_study.py STORAGE POLICY [ON]`."""

from __future__ import annotations

import sys
import time

import foresail as fs

STEPS = 8
TRIALS = 12


class Counter:
    def __init__(self) -> None:
        self.n = 0

    def state_dict(self) -> dict[str, int]:
        return {"n": self.n}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.n = state["n"]


def train(run: fs.Run) -> None:
    """The n-th step of a trial reports x * n / STEPS, where n is counted in state that checkpoints carry.

    All wait while there is a file `hold` in the study's folder.
    """
    hold = run.folder.parents[1] / "hold"
    counter = Counter()
    run.track(counter=counter)
    for _ in run.steps(max=STEPS):
        time.sleep(0.03)
        while hold.exists():
            time.sleep(0.01)
        counter.n += 1
        run.report(score=run.config["x"] * counter.n / STEPS)


def study(storage: str, policy: str) -> fs.Study:
    space = fs.Space(x=fs.Float(0.1, 1.0))
    goal = fs.maximize("score", trials=TRIALS)
    return fs.Study(train, space=space, goal=goal, storage=storage, policy=policy, workers=2, seed=3, grace_s=5.0)


if __name__ == "__main__":
    study(sys.argv[1], sys.argv[2]).run(quiet=True, on=sys.argv[3] if sys.argv[3:] else "")
