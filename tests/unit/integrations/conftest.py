"""A trial that is suspended after some steps and resumed, in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from foresail.core.goal import Goal
from foresail.core.words import AttemptId, Outcome, TrialId
from foresail.worker.attempt import live
from foresail.worker.folder import StudyFolder
from foresail.worker.grant import Grant, write_grant
from foresail.worker.run import Run
from foresail.worker.spool import Farewell, Horizon, Point, Saved, decode_line

sys.path.insert(0, str(Path(__file__).parent))

Train = Callable[[Run], None]


class Trial:
    """One trial's lives. `curves`: by attempt, the metrics by step."""

    def __init__(self, root: Path, metric: str) -> None:
        self.study, self.goal = StudyFolder(root), Goal(metric, "max", trials=1)
        self.lives = 0
        self.saved: Saved | None = None
        self.horizons: list[int] = []

    def live(self, train: Train, *, leave_after: int | None = None) -> dict[int, dict[str, Any]]:
        """One life of it, with a wish to suspend after so many reports; its curve."""
        self.lives += 1
        grant = Grant(
            root=str(self.study.root),
            attempt=AttemptId(f"0-{self.lives}"),
            trial=TrialId(0),
            number=self.lives,
            config={"lr": 0.1},
            goal=self.goal,
            seed=3,
            resume_step=self.saved.step if self.saved else 0,
            checkpoint=self.saved.path if self.saved else "",
        )
        folder = self.study.attempt(grant.attempt)
        write_grant(folder, grant)

        def watched(run: Run) -> None:
            report, told = run.report, []

            def counting(step: int | None = None, **metrics: Any) -> None:
                report(step, **metrics)
                told.append(step)
                if len(told) == leave_after:
                    folder.wish.touch()

            run.report = counting  # type: ignore[method-assign]
            train(run)

        farewell = live(grant, lambda: watched, own_process=False)
        lines = [decode_line(line) for line in folder.spool.read_bytes().splitlines()]
        expected = Outcome.COMPLETED if leave_after is None else Outcome.YIELDED
        assert farewell.outcome is expected, folder.traceback.read_text() if folder.traceback.exists() else farewell
        assert isinstance(lines[-1], Farewell)
        self.horizons += [line.max_steps for line in lines if isinstance(line, Horizon)]
        self.saved = next((line for line in reversed(lines) if isinstance(line, Saved)), self.saved)
        return {line.step: line.metrics for line in lines if isinstance(line, Point)}


@pytest.fixture
def suspended(tmp_path: Path) -> Callable[..., tuple[dict[int, Any], dict[int, Any]]]:
    """Curves of a training without a break, and with one after `leave_after` of its `steps`."""

    def both(train: Train, metric: str, *, steps: int, leave_after: int = 2) -> tuple[dict[int, Any], dict[int, Any]]:
        whole = Trial(tmp_path / "whole", metric).live(train)
        trial = Trial(tmp_path / "parts", metric)
        first = trial.live(train, leave_after=leave_after)
        assert trial.saved is not None
        assert trial.saved.step == leave_after
        second = trial.live(train)
        assert list(whole) == list(range(1, steps + 1))
        assert [*first, *second] == list(whole), "each step once"
        assert set(trial.horizons) <= {steps}
        return whole, {**first, **second}

    return both
