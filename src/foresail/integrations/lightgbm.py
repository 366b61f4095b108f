"""LightGBM: `boost = Foresail(run, rounds=300)`, then

    lgb.train(params, train, boost.rounds, valid_sets=[val], init_model=boost.model, callbacks=[boost])

A step is a boosting round, or `every` of them. The state is the booster.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from foresail.integrations.loop import Loop, kept_in
from foresail.worker.run import Run

_FILE = "booster.txt"


class Foresail:
    """Reports the evaluations as "valid_0-auc": the set, a dash, the metric.

    Args:
        run: the trial's handle.
        rounds: of the whole training.
        every: rounds a step.

    `rounds` are those that are left, `model` is the file of the booster to go on from, or None.
    """

    order = 30

    def __init__(self, run: Run, rounds: int, every: int = 1) -> None:
        folder = kept_in(run)
        self.model = None if folder is None else str(folder / _FILE)
        self.rounds = rounds - run.resume_step * every
        self._every = every
        self._loop = Loop(run, rounds // every, self._save)
        self._booster: Any = None

    def __call__(self, env: Any) -> None:
        """After each round."""
        if self._booster is None:
            self._loop.begin()
        self._booster = env.model
        if (env.iteration + 1) % self._every == 0:
            self._loop.report({f"{found[0]}-{found[1]}": found[2] for found in env.evaluation_result_list or ()})
            self._loop.end_step()

    def _save(self, folder: Path) -> None:
        self._booster.save_model(folder / _FILE, num_iteration=-1)
