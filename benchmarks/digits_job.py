"""How much training a CPU-second buys: a small network on scikit-learn's digits, two workers, nothing stopped.

    python -m benchmarks.digits_job [--trials 12] [--rounds 3]

Foresail (first in, first out) beside a bare loop of two forked workers that train the same configurations without any
framework. Epochs per CPU-second of the whole process tree, imports included; the runs alternate.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import foresail as fs

EPOCHS = 27

SPACE = fs.Space(
    lr=fs.Float(1e-3, 1.0, log=True),
    momentum=fs.Float(0.0, 0.99),
    weight_decay=fs.Float(1e-6, 1e-2, log=True),
    channels=fs.Int(8, 48),
    layers=fs.Int(1, 3),
    batch=fs.Int(16, 128),
)


def study(storage, trials):
    from benchmarks.digits_training import train

    goal = fs.maximize("accuracy", trials=trials)
    return fs.Study(train, space=SPACE, goal=goal, storage=storage, policy="fifo", workers=2)


def bare(configs):
    """Two workers, a queue by turns, no framework."""
    import torch
    from benchmarks.digits_training import epochs

    children = []
    for worker in range(2):
        pid = os.fork()
        if pid == 0:
            torch.set_num_threads(1)
            for number, config in enumerate(configs):
                if number % 2 == worker:
                    list(epochs(config, number))
            os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)


def cpu_of(command):
    """CPU-seconds of a command with all its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def one(kind, storage, trials):
    """One run, in a process of its own: `foresail`, then `bare` with the configurations that it drew."""
    if kind == "foresail":
        study(storage, trials).run(quiet=True)
    else:
        bare([row.config for row in sorted(study(storage, trials).result().trials, key=lambda row: row.trial)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", nargs=2, metavar=("KIND", "STORAGE"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        one(*args.one, args.trials)
        return
    for _ in range(args.rounds):
        with tempfile.TemporaryDirectory() as folder:
            storage = str(Path(folder) / "digits.db")
            me = [sys.executable, "-m", "benchmarks.digits_job", "--trials", str(args.trials), "--one"]
            ours, floor = (cpu_of([*me, kind, storage]) for kind in ("foresail", "bare"))
            done = study(storage, args.trials).result().points
        print(
            f"foresail {done / ours:.1f} epochs a CPU-second, bare loop {args.trials * EPOCHS / floor:.1f}", flush=True
        )


if __name__ == "__main__":
    main()
