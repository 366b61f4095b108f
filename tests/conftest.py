"""What several folders of tests share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent / "contracts"))

from lab import GOAL, Lab, WallClock
from trainings import HERE, TRAININGS

from foresail.core.goal import Goal
from foresail.core.spec import Entry
from foresail.executors.inline import InlineExecutor
from foresail.executors.local import LocalExecutor

MakeLab = Callable[..., Lab]


@pytest.fixture
def make_lab(tmp_path: Path) -> Iterator[MakeLab]:
    """`make_lab(kind, training)`: a laboratory with an executor of that kind; closed at the test's end."""
    made: list[Lab] = []

    def make(kind: str, training: Any, *, goal: Goal = GOAL, folder: Path = tmp_path / "study") -> Lab:
        clock = WallClock()
        executor: Any
        if kind == "inline":
            executor = InlineExecutor(folder, clock=clock, goal=goal, target=TRAININGS[training])
        elif kind == "import":
            entry = training if isinstance(training, Entry) else Entry(function=f"{HERE}:{training}")
            executor = LocalExecutor(folder, clock=clock, goal=goal, target=entry)
        else:
            target = training if callable(training) else TRAININGS[training]
            executor = LocalExecutor(folder, clock=clock, goal=goal, target=target, start="fork")
        executor.start()
        made.append(Lab(executor, clock, folder))
        return made[-1]

    yield make
    for lab in made:
        lab.executor.close()
