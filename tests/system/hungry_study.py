"""A study whose trials need more memory than there is, by the size of their micro-batches: `hungry_study.py LOG`."""

from __future__ import annotations

import sys

import foresail as fs

SAMPLE_BYTES = 4 * 2**20


def train(run: fs.Run) -> None:
    batch = run.batch(64)
    held = bytearray(batch.micro * SAMPLE_BYTES)
    held[::4096] = b"x" * len(held[::4096])  # so that it is there
    for _ in run.steps(max=2):
        run.report(score=float(batch.micro * batch.accumulation), micro=float(batch.micro))


if __name__ == "__main__":
    fs.Study(
        train,
        space=fs.Space(x=fs.Float(0.0, 1.0)),
        goal=fs.maximize("score", trials=3),
        storage=sys.argv[1],
        policy="fifo",
        workers=2,
        retries=4,
    ).run(quiet=True)
