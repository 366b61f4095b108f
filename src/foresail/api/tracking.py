"""Trackers beside a study: a process each, which reads the log and cannot disturb who writes it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import foresail
from foresail.errors import CallerError, nearest

LINGER_S = 60.0
"""Seconds that trackers get after the study's end, together; then they go on by themselves."""


KINDS = ("tensorboard", "mlflow", "wandb", "csv", "parquet")


def checked(trackers: Sequence[str]) -> tuple[str, ...]:
    """The trackers, each "kind" or "kind:place".

    Raises:
        CallerError: no such kind.
    """
    if isinstance(trackers, str):
        raise CallerError(f"track is {trackers!r}", allowed="a list", do=f"write [{trackers!r}]")
    for to in trackers:
        if to.partition(":")[0] not in KINDS:
            raise CallerError(f"there is no tracker {to!r}", do=nearest(to, KINDS))
    return tuple(trackers)


@contextmanager
def tracked(storage: Path, trackers: Sequence[str]) -> Iterator[None]:
    """While the block runs, `trackers` ("kind" or "kind:place") are told of the study in `storage`.

    Whatever goes wrong in one is told on stderr, by itself.
    """
    children = [_start(storage, to) for to in dict.fromkeys(checked(trackers))]
    try:
        yield
    finally:
        _settle(children)


def _start(storage: Path, to: str) -> subprocess.Popen[bytes]:
    home = str(Path(foresail.__file__).parents[1])
    path = os.pathsep.join(part for part in (home, os.environ.get("PYTHONPATH", "")) if part)
    return subprocess.Popen(
        [sys.executable, "-m", "foresail", "track", str(storage), "--to", to, "--wait", "--quiet"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,  # Ctrl-C is for the study; they end with it
    )


def _settle(children: Sequence[subprocess.Popen[bytes]]) -> None:
    left_s = LINGER_S
    for child in children:
        try:
            child.wait(left_s)
        except subprocess.TimeoutExpired:
            left_s = 0.0
            print("note:    a tracker is still at work; it goes on by itself", file=sys.stderr)
