"""In the training process: `tune.report` and `tune.get_checkpoint` of the trial that runs here."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from foresail.errors import CallerError, HostError
from foresail.integrations.loop import kept_in, numbers_in
from foresail.worker.run import Run

_FOLDER = "checkpoint"
BEST = "best"


class Checkpoint:
    """A folder with the state of a training, as Ray Tune's."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)

    @classmethod
    def from_directory(cls, path: str | Path) -> Checkpoint:
        """The folder at `path`; it is copied when it is reported."""
        return cls(path)

    @contextmanager
    def as_directory(self) -> Iterator[str]:
        """The folder, to be read."""
        yield self.path

    def to_directory(self, path: str | Path | None = None) -> str:
        """A copy of the folder, at `path` or in a temporary place."""
        target = str(path or tempfile.mkdtemp())
        shutil.copytree(self.path, target, dirs_exist_ok=True)
        return target


class Finished(BaseException):
    """Leaves a training function that has done all steps that were asked for."""


class Session:
    """The trial that runs in this process."""

    current: Session | None = None

    def __init__(self, run: Run, max_steps: int | None) -> None:
        self._run = run
        self.found = kept_in(run)
        self._names: frozenset[str] = frozenset()
        self._offered: Path | None = None
        self._keeps = False
        self.reports = run.resume_step
        self._steps = run.steps(max=max_steps)
        self._next()

    def _next(self) -> None:
        if next(self._steps, None) is None:
            raise Finished

    def report(self, metrics: Mapping[str, Any], checkpoint: Checkpoint | None) -> None:
        """A step is over."""
        numbers = numbers_in(metrics)
        self._names = self._names or frozenset(numbers)
        if checkpoint is not None and not self._keeps:
            self._keeps = True
            self._run.on_save(self._save)
        self._offered = None if checkpoint is None else Path(checkpoint.path)
        self._run.report(**{name: value for name, value in numbers.items() if name in self._names})
        if self._offered is not None and self._run.has_improved:
            self._keep_best(self._offered)
        self.reports += 1
        self._next()

    def _keep_best(self, offered: Path) -> None:
        """Of the trial's best step, for the result: the function removes its own copy when it goes on."""
        best, fresh = self._run.folder / BEST, self._run.folder / f"{BEST}.part"
        shutil.copytree(offered, fresh)
        shutil.rmtree(best, ignore_errors=True)
        fresh.rename(best)

    def _save(self, folder: Path) -> None:
        if self._offered is None:
            raise HostError("no checkpoint was reported with this step")
        shutil.copytree(self._offered, folder / _FOLDER)


def report(metrics: Mapping[str, Any], *, checkpoint: Checkpoint | None = None) -> None:
    """Report a step's metrics, with the state that the training could go on from.

    Returns unless the trial is to leave: then the checkpoint is kept, and the function is left here. Numbers are kept;
    the first report fixes their names.

    Raises:
        CallerError: no trial runs here.
    """
    _session().report(metrics, checkpoint)


def get_checkpoint() -> Checkpoint | None:
    """What was kept when the trial left last; None for a fresh start.

    Raises:
        CallerError: no trial runs here.
    """
    found = _session().found
    return None if found is None else Checkpoint(found / _FOLDER)


def _session() -> Session:
    if Session.current is None:
        raise CallerError("no trial runs here", do="call it in a function that a Tuner trains")
    return Session.current
