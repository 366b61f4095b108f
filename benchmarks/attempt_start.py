"""From the command to the first word of an attempt, and from its last to the driver's knowledge of its end.

    python benchmarks/attempt_start.py [--attempts 20]

Cases: a training that imports nothing, its template forked from this process or imported; one that imports torch,
its template warm; a command. `own work` is what the training function itself takes until its first report. Beside
them, for the scale of the machine: a bare interpreter that does the same imports and prints a word.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from foresail.core import events as ev
from foresail.core.commands import Launch
from foresail.core.goal import Goal
from foresail.core.spec import Entry
from foresail.core.words import TrialId, attempt_id
from foresail.executors.local import LocalExecutor

BARE = "def train(run):\n    import time\n    run.report(at=time.monotonic())\n"
TORCH = (
    "import time\nimport torch\n"
    "def train(run):\n"
    "    began = time.monotonic()\n"
    "    model = torch.nn.Linear(8, 8)\n"
    "    optimizer = torch.optim.AdamW(model.parameters())\n"
    "    model(torch.zeros(4, 8)).sum().backward()\n"
    "    optimizer.step()\n"
    "    run.report(at=time.monotonic(), own=time.monotonic() - began)\n"
)
SCRIPT = (
    "import os, time\n"
    'print(f\'{{"at": {time.monotonic()}}}\', file=open(os.environ["FORESAIL_REPORTS"], "a"), flush=True)\n'
)


class Clock:
    def now_s(self) -> float:
        return time.monotonic()


def report_now(run: Any) -> None:
    run.report(at=time.monotonic())


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--attempts", type=int, default=20)
    attempts = options.parse_args().attempts
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name).resolve()
        for file, text in (("bare.py", BARE), ("with_torch.py", TORCH), ("script.py", SCRIPT)):
            (folder / file).write_text(text)
        command = Entry(command=(sys.executable, str(folder / "script.py")))
        measure("imports nothing, forked template", folder / "a", report_now, attempts)
        measure("imports nothing, imported template", folder / "b", Entry(function=f"{folder}/bare.py:train"), attempts)
        measure("imports torch, warm template", folder / "c", Entry(function=f"{folder}/with_torch.py:train"), attempts)
        measure("a command", folder / "d", command, attempts)
        for code in ("pass", "import torch"):
            print(f"bare interpreter, {code!r}: {1e3 * statistics.median(interpreter(code) for _ in range(3)):.0f} ms")


def measure(what: str, folder: Path, target: Any, attempts: int) -> None:
    executor = LocalExecutor(folder, clock=Clock(), goal=Goal("at", "max", trials=1), target=target)
    executor.start()
    rows = [one(executor, number) for number in range(attempts)]
    executor.close()
    first, later = rows[0], rows[1:]
    names = ("to first word", "word to driver", "to known end", "own work")
    print(f"{what}: first attempt {1e3 * first[0]:.0f} ms to its first word; later ones, median (worst), ms:")
    columns = list(zip(*later, strict=True))
    print(
        "   "
        + ", ".join(
            f"{n} {1e3 * statistics.median(c):.1f} ({1e3 * max(c):.1f})" for n, c in zip(names, columns, strict=True)
        )
    )


def one(executor: LocalExecutor, number: int) -> tuple[float, float, float, float]:
    """Seconds: launch to report, report to driver, launch to known end, own work."""
    began = time.monotonic()
    attempt = attempt_id(TrialId(number), 1)
    executor.perform(Launch(attempt=attempt, trial=TrialId(number), number=1, config={}, cores=(0,)))
    point: ev.PointReported | None = None
    while True:
        for fact in executor.poll(time.monotonic() + 10):
            if isinstance(fact, ev.PointReported):
                point = fact
            elif isinstance(fact, ev.AttemptEnded):
                assert point is not None, fact
                at = point.metrics["at"]
                return at - began, point.at_s - at, fact.at_s - began, point.metrics.get("own", 0.0)


def interpreter(code: str) -> float:
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return time.monotonic() - began


if __name__ == "__main__":
    main()
