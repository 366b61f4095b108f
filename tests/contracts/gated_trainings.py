"""A training whose steps wait for their turn where the folder of its study has a plan of turns: order is then told."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

from trainings import Counter

from foresail.worker.moments import Moments

HERE = Path(__file__).resolve()
STEPS = 9
TURNS = "turns"


def train(run: Any) -> None:
    """A noisy curve that rises to `x`. With turns: each step waits for its file, and an attempt that left after a step
    waits there until it is asked to leave."""
    Moments.is_due = lambda self, now_s, *, improved: improved  # type: ignore[method-assign]  # by no clock
    counter = Counter()
    run.track(counter=counter)
    turns = run.folder.parents[1] / TURNS
    ordered = turns.exists()
    leaves = turns / f"{run.folder.name}-leaves"
    last = int(leaves.read_text()) if leaves.exists() else -1
    if last == run.resume_step:
        _wait(lambda: run.should_stop)
    for step in run.steps(max=STEPS):
        if ordered:
            _wait((turns / f"{run.folder.name}-{step}").exists)
        else:
            time.sleep(0.1 * run.config["x"])
        counter.n += 1
        run.report(score=run.config["x"] * (1 - 0.7**counter.n) + 0.01 * random.random())
        if step == last:
            _wait(lambda: run.should_stop)


def _wait(done: Any) -> None:
    while not done():
        time.sleep(0.005)
