"""The demo: a real tuning job, small enough for a laptop.

Seven hyperparameters of a convolutional network on handwritten digits; the goal is a validation accuracy that
about one random configuration in twenty reaches (docs/measured.md).
"""

from __future__ import annotations

from pathlib import Path

from foresail.api.study import Study
from foresail.core.goal import maximize
from foresail.errors import MissingExtraError
from foresail.space import Float, Int, Space

TARGET = 0.971
SPACE = Space(
    lr=Float(1e-5, 10.0, log=True),
    momentum=Float(0.0, 0.99),
    weight_decay=Float(1e-6, 1.0, log=True),
    width=Int(4, 16, log=True, touches="both"),
    depth=Int(1, 3, touches="both"),
    batch_size=Int(16, 256, log=True, touches="both"),
    dropout=Float(0.0, 0.9),
)


def study(
    *, seed: int = 0, storage: str | Path = "demo.db", policy: str = "hybrid", within: str | float = "20 min"
) -> Study:
    """The demo's study.

    Raises:
        MissingExtraError: PyTorch or the images are not installed.
    """
    try:
        from foresail.demo.digits import EPOCHS, train
    except ModuleNotFoundError as error:
        raise MissingExtraError(str(error.name), "demo") from None
    goal = maximize("accuracy", target=TARGET, within=within)
    return Study(train, space=SPACE, goal=goal, storage=storage, policy=policy, seed=seed, workers=2, max_steps=EPOCHS)
