"""The study that `faults.py` maltreats: `python benchmarks/faults_study.py STORAGE TRAINING POLICY SEED [DEATH]`.

TRAINING says what is trained, and how much of it:

* "counting": small; each trial counts in state that checkpoints carry and reports `x * n / STEPS`, so what was lost
  shows in its curve;
* "digits:MINUTES": a small network on scikit-learn's digits, for so long; what was lost shows beside a training of the
  same configuration that nobody disturbed.

DEATH, "POINT:N", has the driver kill itself at its N-th pass of a point of the loop.
"""

from __future__ import annotations

import faulthandler
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import foresail as fs
from foresail.core import events as ev
from foresail.executors.local import LocalExecutor
from foresail.stores.sqlite import SqliteStore
from foresail.worker import randomness

STEPS = 40
TRIALS = 10
STEP_S = 0.03
EPOCHS = 12


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


def dying(run: Any, steps: int) -> Counter:
    marked = os.environ.get("FAULTS_CUT_SAVES", "") and run.folder.name.endswith("-1")
    return Counter(1 + run.trial % steps if marked else 0)


def counting(run: fs.Run) -> None:
    counter = dying(run, STEPS)
    run.track(counter=counter)
    for _ in run.steps(max=STEPS):
        time.sleep(STEP_S)
        counter.n += 1
        run.report(score=run.config["x"] * counter.n / STEPS)


def digits(run: fs.Run) -> None:
    import torch
    from sklearn.datasets import load_digits
    from torch import nn
    from torch.nn import functional as F

    pixels, labels = load_digits(return_X_y=True)
    x, y = torch.tensor(pixels, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16, torch.tensor(labels)
    channels = run.config["channels"]
    model = nn.Sequential(
        nn.Conv2d(1, channels, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(channels * 16, 10)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=run.config["lr"], momentum=run.config["momentum"])
    counter = dying(run, EPOCHS)
    run.track(model=model, optimizer=optimizer, counter=counter)
    for _ in run.steps(max=EPOCHS):
        counter.n += 1
        for batch in torch.randperm(1400).split(32):
            optimizer.zero_grad()
            F.cross_entropy(model(x[batch]), y[batch]).backward()
            optimizer.step()
        with torch.no_grad():
            run.report(score=float((model(x[1400:]).argmax(1) == y[1400:]).float().mean()))


class Undisturbed:
    """As much of a `Run` as `digits` needs, in a process that nobody kills."""

    folder, trial = Path("quiet"), 0

    def __init__(self, config: dict[str, Any], seed: int) -> None:
        self.config, self.values = config, []
        randomness.seed_all(seed)

    def track(self, **objects: Any) -> None:
        return None

    def steps(self, max: int) -> Iterator[int]:
        yield from range(1, max + 1)

    def report(self, score: float) -> None:
        self.values.append(score)


def study(storage: str, training: str, policy: str, seed: int) -> fs.Study:
    name, _, minutes = training.partition(":")
    common = {"storage": storage, "policy": policy, "workers": 2, "seed": seed, "grace_s": 3.0, "retries": 1000}
    if name == "counting":
        goal = fs.maximize("score", trials=TRIALS)
        return fs.Study(counting, space=fs.Space(x=fs.Float(0.1, 1.0)), goal=goal, **common)
    import sklearn.datasets  # noqa: F401  # before the first fork, as a script's own imports are
    import torch  # noqa: F401

    space = fs.Space(lr=fs.Float(1e-3, 1.0, log=True), momentum=fs.Float(0.0, 0.99), channels=fs.Int(8, 32))
    goal = fs.maximize("score", within=60.0 * float(minutes))
    return fs.Study(digits, space=space, goal=goal, **{**common, "workers": 1})  # it is to leave a core to others


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


def say_when_it_trains() -> None:
    """One word when the first attempt of this driver has started and that is on record."""
    plain, told = SqliteStore.append, False

    def telling(self: SqliteStore, events: Any, **more: Any) -> None:
        nonlocal told
        plain(self, events, **more)
        if not told and any(isinstance(event, ev.AttemptStarted) and event.pid is not None for event in events):
            told = True
            os.write(2, b"trains\n")

    SqliteStore.append = telling  # type: ignore[method-assign]


def move_clock(seed: int) -> None:
    """The wall clock jumps by up to a day at every look."""
    plain, rng = time.time, random.Random(seed)
    time.time = lambda: plain() + rng.uniform(-86_400.0, 86_400.0)


if __name__ == "__main__":
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    storage, training, policy, seed = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    say_when_it_trains()
    for death in sys.argv[5:]:
        point, _, number = death.partition(":")
        if point == "clock":
            move_clock(int(number))
        else:
            die_at(point, int(number))
    study(storage, training, policy, seed).run(quiet=True)
