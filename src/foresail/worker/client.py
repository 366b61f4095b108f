"""For plain scripts: `foresail.report(...)` and its few companions, working from the environment.

Outside a study they print and do nothing else, so a script runs as it is. In a study the environment holds

    FORESAIL_ATTEMPT    the attempt's folder; a file `yield` in it is the wish that the script leaves
    FORESAIL_CONFIG     a JSON file with the configuration
    FORESAIL_REPORTS    a file to which any language may append JSON lines: {"step": 3, "accuracy": 0.9}
    FORESAIL_SEED       the trial's seed
    FORESAIL_KEPT       the folder of `checkpoint_dir()`; it need not exist yet

A script that has `yield` before it and leaves by `{"yielded": true}` and exit code 0 is continued later; without that
line it counts as done.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from foresail.core.words import Outcome
from foresail.worker.folder import AttemptFolder, StudyFolder
from foresail.worker.grant import Grant, read_grant
from foresail.worker.metrics import Metrics, check_step
from foresail.worker.run import Configuration
from foresail.worker.spool import Farewell, Point, Spool, to_wire


def report(step: int | None = None, **metrics: Any) -> None:
    """Report the metrics of a step; returns at once. Outside a study: prints them.

    Args:
        step: number of completed steps, rising from 1; left out: one more than in the last report.
        metrics: numbers by name, the goal's metric among them.

    Raises:
        TrainingError: a value is no number, the goal's metric is missing, or the step does not rise.
    """
    link = _link(os.environ.get("FORESAIL_ATTEMPT", ""))
    if link is not None:
        link.report(step, metrics)
    else:
        at = "" if step is None else f"step {step}: "
        print(at + ", ".join(f"{name} {value}" for name, value in metrics.items()), flush=True)


def config(**defaults: Any) -> Configuration:
    """The configuration that the study gives; values that it does not give, and all outside one, from `defaults`.

    >>> config(lr=0.1).lr
    0.1
    """
    link = _link(os.environ.get("FORESAIL_ATTEMPT", ""))
    return Configuration({**defaults, **(link.grant.config if link is not None else {})})


def should_stop() -> bool:
    """Whether the study asks the script to leave; exit with 0 soon then. Outside a study: never."""
    link = _link(os.environ.get("FORESAIL_ATTEMPT", ""))
    return link is not None and link.should_stop()


def checkpoint_dir() -> Path:
    """A folder where the script may keep its state: the same one in every attempt of its trial.

    Outside a study: `checkpoint/` in the working directory. It exists.
    """
    link = _link(os.environ.get("FORESAIL_ATTEMPT", ""))
    folder = Path("checkpoint") if link is None else link.kept
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class _Link:
    """The script's side of its attempt."""

    def __init__(self, folder: AttemptFolder) -> None:
        self.grant: Grant = read_grant(folder)
        self.kept = StudyFolder(Path(self.grant.root)).kept(self.grant.trial)
        self._wish = folder.wish
        self._spool = Spool(folder.spool)
        self._metrics = Metrics(self.grant.goal.metric)
        self._step = 0
        self._heeded = False

    def report(self, step: int | None, metrics: dict[str, Any]) -> None:
        values = self._metrics.check(metrics)
        self._step = check_step(self._step + 1 if step is None else step, self._step)
        self._spool.write(Point(step=self._step, metrics=to_wire(values)))

    def should_stop(self) -> bool:
        if not self._heeded and self._wish.exists():
            self._heeded = True
            self._spool.write(Farewell(outcome=Outcome.YIELDED))
        return self._heeded


@lru_cache(maxsize=1)
def _link(attempt: str) -> _Link | None:
    return _Link(AttemptFolder(Path(attempt))) if attempt else None
