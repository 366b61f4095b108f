"""An executor in a laboratory: give it commands, wait for facts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from foresail.core import events as ev
from foresail.core.commands import Launch
from foresail.core.goal import Goal
from foresail.core.words import AttemptId, TrialId, attempt_id
from foresail.ports import Executor

GOAL = Goal("accuracy", "max", target=1e9)
PATIENCE_S = float(os.environ.get("FORESAIL_PATIENCE_S", "60"))
"""More on a machine that is busy with other things."""

F = TypeVar("F", bound=ev.Happened)


class WallClock:
    def __init__(self) -> None:
        self._began = time.monotonic()

    def now_s(self) -> float:
        return time.monotonic() - self._began


class Lab:
    def __init__(self, executor: Executor, clock: WallClock, folder: Path) -> None:
        self.executor, self.clock, self.folder, self.patience_s = executor, clock, folder, PATIENCE_S
        self.facts: list[Any] = []

    def launch(self, trial: int = 0, number: int = 1, **more: Any) -> AttemptId:
        attempt = attempt_id(TrialId(trial), number)
        config = {"steps": 5, **more.pop("config", {})}
        launch = Launch(attempt=attempt, trial=TrialId(trial), number=number, config=config, **{"cores": (0,), **more})
        self.executor.perform(launch)
        return attempt

    def resume(self, number: int, **more: Any) -> AttemptId:
        saved = self.of(ev.CheckpointSaved)[-1]
        return self.launch(number=number, resume_step=saved.step, checkpoint=saved.path, **more)

    def of(self, kind: type[F], attempt: str | None = None) -> list[F]:
        wanted = (fact for fact in self.facts if isinstance(fact, kind))
        return [fact for fact in wanted if attempt is None or fact.attempt == attempt]  # type: ignore[attr-defined]

    def until(self, done: Callable[[], object]) -> None:
        """Poll until it is so."""
        end_s = self.clock.now_s() + self.patience_s
        while not done():
            assert self.clock.now_s() < end_s, f"it did not come to it; facts: {self.facts[-5:]}"
            self.facts += self.executor.poll(self.clock.now_s() + 1.0)

    def until_point(self, attempt: str, step: int = 1) -> ev.PointReported:
        found: list[ev.PointReported] = []

        def seen() -> bool:
            found[:] = [p for p in self.of(ev.PointReported, attempt) if p.step >= step]
            return bool(found)

        self.until(seen)
        return found[0]

    def until_point_or_end(self, attempt: str, step: int) -> None:
        """Until a point of the step or of a later one has come, or no more will."""
        self.until(
            lambda: self.of(ev.AttemptEnded, attempt) or any(p.step >= step for p in self.of(ev.PointReported, attempt))
        )

    def until_end(self, attempt: str) -> ev.AttemptEnded:
        self.until(lambda: self.of(ev.AttemptEnded, attempt))
        return self.of(ev.AttemptEnded, attempt)[0]

    def values(self, attempt: str | None = None) -> list[float]:
        return [point.metrics["accuracy"] for point in self.of(ev.PointReported, attempt)]
