"""Training functions for the executors' tests. A template imports this file, as it would a user's."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Counter:
    """The smallest thing with a state."""

    def __init__(self) -> None:
        self.n = 0

    def state_dict(self) -> dict[str, int]:
        return {"n": self.n}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.n = state["n"]


def counts(run: Any) -> None:
    """Reports 1, 2, 3, ... with its state kept; `config.steps` of them, each taking `config.pause_s`."""
    counter = Counter()
    run.track(counter=counter)
    for _ in run.steps(max=run.config["steps"]):
        counter.n += 1
        time.sleep(run.config.get("pause_s", 0.0))
        run.report(accuracy=counter.n, luck=random.random())


def keeps_nothing(run: Any) -> None:
    for step in run.steps(max=1_000_000):
        time.sleep(0.002)
        run.report(accuracy=step)


def saves_files(run: Any) -> None:
    state = {"n": 0}
    run.on_save(lambda folder: (folder / "n.txt").write_text(str(state["n"])))
    run.on_load(lambda folder: state.update(n=int((folder / "n.txt").read_text())))
    for _ in run.steps(max=1_000_000):
        state["n"] += 1
        time.sleep(0.002)
        run.report(accuracy=state["n"])


def raises(run: Any) -> None:
    run.report(accuracy=0.5)
    raise ValueError("the shapes do not fit\nsecond line")


def runs_out_of_memory(run: Any) -> None:
    raise MemoryError("no 3 GB more")


def diverges(run: Any) -> None:
    run.report(accuracy=float("nan"))
    run.report(accuracy=float("-inf"))


def misspells(run: Any) -> None:
    run.report(acuracy=0.5)


def returns_early(run: Any) -> None:
    """Heeds the wish by itself, without steps()."""
    while not run.should_stop:
        time.sleep(0.002)


def exits(run: Any) -> None:
    sys.exit(0)


def vanishes(run: Any) -> None:
    os._exit(0)


def says_nothing(run: Any) -> None:
    pass


def ignores_sigterm(run: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    run.report(accuracy=0.1)
    while True:
        time.sleep(60)


def has_children(run: Any) -> None:
    """A forked child and one of another program; both would live for long."""
    forked = os.fork()
    if forked == 0:
        time.sleep(600)
    other = subprocess.Popen(["sleep", "600"])
    run.report(accuracy=0.1, forked=forked, other=other.pid)
    if run.config.get("leaves"):
        return
    time.sleep(600)


def prints_endlessly(run: Any) -> None:
    print("first words", flush=True)
    for step in run.steps():
        print("x" * 10_000)
        print("y" * 10_000, file=sys.stderr)
        run.report(accuracy=step)


def tells_threads(run: Any) -> None:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else len(run.config)
    run.report(accuracy=int(os.environ["OMP_NUM_THREADS"]), cores=cores)


def cleans_up(run: Any) -> None:
    """Leaves a mark when it is ended with time to do so."""
    try:
        run.report(accuracy=0.1)
        time.sleep(600)
    finally:
        (run.folder / "cleaned").touch()


def loads_data_with_workers(run: Any) -> None:
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    data = DataLoader(TensorDataset(torch.arange(64.0)), batch_size=8, num_workers=1)
    run.report(accuracy=float(sum(batch.sum() for (batch,) in data)))


def tells_torch_threads(run: Any) -> None:
    import torch

    run.report(accuracy=torch.get_num_threads())


TRAININGS: dict[str, Callable[[Any], None]] = {
    name: value for name, value in globals().items() if callable(value) and getattr(value, "__module__", "") == __name__
}
HERE = Path(__file__).resolve()
