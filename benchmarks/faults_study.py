"""The study that `faults.py` maltreats: `python benchmarks/faults_study.py STORAGE POLICY SEED [DEATH]`.

Small and real: each trial counts in state that checkpoints carry and reports `x * n / STEPS`, so what was lost shows in
its curve. DEATH, "POINT:N", has the driver kill itself at its N-th pass of a point of the loop.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import foresail as fs
from foresail.executors.local import LocalExecutor
from foresail.stores.sqlite import SqliteStore

STEPS = 40
TRIALS = 10
STEP_S = 0.03


class Counter:
    """The smallest thing with a state; `dies_at`: a save at this count is cut short by the process's death, once."""

    def __init__(self, dies_at: int) -> None:
        self.n, self.dies_at = 0, dies_at

    def state_dict(self) -> dict[str, int]:
        if self.n == self.dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"n": self.n}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.n = state["n"]


def train(run: fs.Run) -> None:
    marks = os.environ.get("FAULTS_CUT_SAVES", "")
    first = run.folder.name.endswith("-1")
    counter = Counter(1 + run.trial % STEPS if marks and first else 0)
    run.track(counter=counter)
    for _ in run.steps(max=STEPS):
        time.sleep(STEP_S)
        counter.n += 1
        run.report(score=run.config["x"] * counter.n / STEPS)


def study(storage: str, policy: str, seed: int) -> fs.Study:
    return fs.Study(
        train,
        space=fs.Space(x=fs.Float(0.1, 1.0)),
        goal=fs.maximize("score", trials=TRIALS),
        storage=storage,
        policy=policy,
        workers=2,
        seed=seed,
        grace_s=3.0,
        retries=100,
    )


def die_at(point: str, number: int) -> None:
    """Have the driver die before or after an append, or before or after it acts, at its `number`-th pass."""
    owner, name = (SqliteStore, "append") if point.endswith("append") else (LocalExecutor, "perform")
    plain: Callable[..., Any] = getattr(owner, name)
    passed = 0

    def mortal(self: Any, *args: Any, **more: Any) -> Any:
        nonlocal passed
        passed += 1
        if passed == number and point.startswith("before"):
            os.kill(os.getpid(), signal.SIGKILL)
        result = plain(self, *args, **more)
        if passed == number and point.startswith("after"):
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, mortal)


def move_clock(seed: int) -> None:
    """The wall clock jumps by up to a day at every look."""
    plain, rng = time.time, random.Random(seed)
    time.time = lambda: plain() + rng.uniform(-86_400.0, 86_400.0)


if __name__ == "__main__":
    storage, policy, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
    for death in sys.argv[4:]:
        point, _, number = death.partition(":")
        if point == "clock":
            move_clock(int(number))
        else:
            die_at(point, int(number))
    study(storage, policy, seed).run(quiet=True)
