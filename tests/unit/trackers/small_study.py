"""A study of four trials that takes a second."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import foresail as fs


def train(run: fs.Run) -> None:
    for step in run.steps(max=3):
        run.report(score=run.config["x"] * step, loss=1.0 / step)


def study(storage: Path, **settings: Any) -> fs.Study:
    space = fs.Space(x=fs.Float(0.0, 1.0), kind=fs.Choice(["a", 1, False]))
    goal = fs.maximize("score", trials=4)
    return fs.Study(train, space=space, goal=goal, storage=storage, policy="fifo", workers=2, **settings)
