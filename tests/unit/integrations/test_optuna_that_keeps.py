"""An Optuna objective that keeps its state by `trial.run` goes on where it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


class Counter:
    def __init__(self) -> None:
        self.n = 0

    def state_dict(self) -> dict[str, int]:
        return {"n": self.n}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.n = state["n"]


def objective(trial: Any) -> float:
    lr = trial.suggest_float("lr", 0.01, 1.0, log=True)
    late = trial.suggest_float("not_in_the_configuration", 0.0, 1.0)
    counter = Counter()
    trial.run.track(counter=counter)
    for step in trial.run.steps(max=5):
        counter.n += 1
        trial.report(lr * counter.n + late, step - 1)
    return lr * counter.n + late


def test_it_suspends_and_resumes(suspended: Callable[..., tuple[dict[int, Any], dict[int, Any]]]) -> None:
    pytest.importorskip("optuna", reason="Optuna is not installed")
    from foresail.optuna.work import training

    whole, parts = suspended(training(objective, ["maximize"]), "value", steps=5)
    assert parts == whole
    assert whole[5]["value"] - whole[4]["value"] == pytest.approx(0.1)
