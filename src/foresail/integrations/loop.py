"""The steps of a training whose loop a framework owns: what `run.steps()` is for a loop of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from foresail.worker.run import Run


class Loop:
    """Begun once, then told of each step's end.

    Args:
        run: the trial's handle.
        max: steps of the whole training; None: not known.
        save: writes the framework's state into the folder that it is given.
    """

    def __init__(self, run: Run, max: int | None, save: Callable[[Path], object]) -> None:
        self._run = run
        self._names: frozenset[str] = frozenset()
        run.on_save(save)
        self._steps: Iterator[int] = run.steps(max=max)

    def begin(self) -> None:
        """The first step begins; random states are restored here where the trial resumes.

        Raises:
            Yielded: the trial is to leave at once.
        """
        next(self._steps, None)

    def report(self, metrics: Mapping[str, Any]) -> None:
        """Report those of the metrics that are numbers; the first report fixes their names."""
        numbers = numbers_in(metrics)
        self._names = self._names or frozenset(numbers)
        self._run.report(**{name: value for name, value in numbers.items() if name in self._names})

    def end_step(self) -> None:
        """The step is over: a checkpoint is taken where one is due.

        Raises:
            Yielded: the trial is to leave; its state is saved.
        """
        next(self._steps, None)


def kept_in(run: Run) -> Path | None:
    """The folder that the framework's state was saved in; None for a fresh start."""
    found: list[Path] = []
    run.on_load(found.append)
    return found[0] if found else None


class Length:
    """How long trainings of this study were that told nobody beforehand: later ones expect the same.

    Policies need it: without, no share of a training is known to have been seen, and nobody is ended early.
    """

    def __init__(self, run: Run) -> None:
        self._file = run.folder.parents[1] / "length"
        self._run = run
        if known := self._read():
            run.expect(known)

    def _read(self) -> int:
        try:
            return int(self._file.read_text())
        except (OSError, ValueError):
            return 0

    def keep(self, steps: int) -> None:
        """This one was trained to its end, in so many steps."""
        if steps > self._read():
            fresh = self._run.folder / "length"
            fresh.write_text(str(steps))
            fresh.replace(self._file)


def numbers_in(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the metrics that are numbers, as floats."""
    return {name: float(value) for name, value in metrics.items() if _is_number(value)}


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, RuntimeError):
        return False
    return not isinstance(value, str | bytes | bool)
