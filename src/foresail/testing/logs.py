"""Small logs of points on disk, and processes that use them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import foresail
from foresail.core import events as ev
from foresail.core.words import AttemptId
from foresail.stores.sqlite import SqliteStore

_SOURCE = Path(foresail.__file__).parent.parent


def point(step: int) -> ev.PointReported:
    """A point of the one attempt that these logs are about."""
    metrics = {"accuracy": step / 7, "loss": 1.0 / step}
    return ev.PointReported(at_s=float(step), attempt=AttemptId("0-1"), step=step, metrics=metrics, seconds=0.25)


class Child:
    """A process of Python that imports foresail from where the tests do, and talks in lines."""

    def __init__(self, code: str, *arguments: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": str(_SOURCE), "PATH": "/usr/bin:/bin"},
        )

    def line(self) -> str:
        """The next line that it says; empty when it has gone."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def tell(self, text: str = "") -> None:
        """Say a line to it."""
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        """End it at once and wait for that."""
        self.process.kill()
        self.process.communicate()


def write_log(path: Path, appends: list[int]) -> None:
    """A closed log whose appends have these sizes, with points whose step is their number."""
    with SqliteStore.open(path) as store:
        for size in appends:
            store.append([point(store.last + n) for n in range(1, size + 1)])


def steps(store: SqliteStore) -> list[int]:
    """The steps of the points in a log."""
    return [event.step for _, event in store.read() if isinstance(event, ev.PointReported)]
