"""XGBoost: `boost = Foresail(run, rounds=300)`, then

    xgb.train(params, dtrain, boost.rounds, evals=[(dval, "val")], xgb_model=boost.model, callbacks=[boost])

A step is a boosting round, or `every` of them. The state is the booster.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import xgboost

from foresail.integrations.loop import Loop, kept_in
from foresail.worker.run import Run

_FILE = "booster.ubj"


class Foresail(xgboost.callback.TrainingCallback):
    """Reports the evaluations under XGBoost's names ("val-logloss": the set, a dash, the metric).

    Args:
        run: the trial's handle.
        rounds: of the whole training.
        every: rounds a step.

    `rounds` are those that are left, `model` is the booster to go on from, or None.
    """

    def __init__(self, run: Run, rounds: int, every: int = 1) -> None:
        super().__init__()
        folder = kept_in(run)
        self.model = None if folder is None else xgboost.Booster(model_file=str(folder / _FILE))
        self.rounds = rounds - run.resume_step * every
        self._every = every
        self._loop = Loop(run, rounds // every, self._save)
        self._booster: Any = None

    def before_training(self, model: Any) -> Any:
        """The first round of this attempt begins."""
        self._loop.begin()
        return model

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Report the round, if it completes a step."""
        self._booster = model
        if model.num_boosted_rounds() % self._every == 0:
            self._loop.report(
                {f"{data}-{name}": _last(v) for data, metrics in evals_log.items() for name, v in metrics.items()}
            )
            self._loop.end_step()
        return False

    def _save(self, folder: Path) -> None:
        self._booster.save_model(folder / _FILE)


def _last(values: Any) -> float:
    return float(values[-1][0] if isinstance(values[-1], tuple) else values[-1])
