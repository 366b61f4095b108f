"""A study whose trials never report: `python silent_study.py STORAGE`."""

from __future__ import annotations

import signal
import sys
import time

import foresail as fs


def train(run: fs.Run) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for _ in run.steps(max=5):
        time.sleep(3600)


if __name__ == "__main__":
    space = fs.Space(x=fs.Float(0.0, 1.0))
    goal = fs.maximize("score", within="2 s")
    fs.Study(train, space=space, goal=goal, storage=sys.argv[1], workers=2, grace_s=1.0).run(quiet=True)
