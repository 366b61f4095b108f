"""scikit-learn's `partial_fit`: `model = keep(run, SGDClassifier(...))`, then `for epoch in run.steps(max=...)`.

The estimator is kept as scikit-learn recommends for one's own machine, by joblib, which can run code when it is read:
it is read only from this run's own checkpoint, whose digest is checked first.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import joblib

from foresail.worker.run import Run

Estimator = TypeVar("Estimator")
_FILE = "estimator.joblib"


def keep(run: Run, estimator: Estimator) -> Estimator:
    """The estimator to train, saved at checkpoints: the given one, or where the trial resumes the one saved last."""
    models = [estimator]

    def load(folder: Path) -> None:
        models[0] = joblib.load(folder / _FILE)

    def save(folder: Path) -> None:
        joblib.dump(models[0], folder / _FILE)

    run.on_load(load)
    run.on_save(save)
    return models[0]
