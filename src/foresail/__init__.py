"""Foresail tunes deep-learning training: it foresees how each run will end and how fast it can go.

    import foresail as fs

    study = fs.Study(train, space=fs.Space(lr=fs.Float(1e-4, 1.0, log=True)), goal=fs.maximize("accuracy", target=0.98))
    result = study.run()

Names are loaded when they are first used, so that a training script pays only for what it needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from foresail.api.result import Best, Result, TrialRow
    from foresail.api.study import Study
    from foresail.core.goal import Goal, maximize, minimize
    from foresail.core.layout import Parallel
    from foresail.errors import CallerError, ForesailError, HostError, TrainingError
    from foresail.space import Choice, Flag, Float, Int, Space
    from foresail.worker.client import checkpoint_dir, config, report, should_stop
    from foresail.worker.run import Run

_HOMES = {
    "foresail.api.result": ("Best", "Result", "TrialRow"),
    "foresail.api.study": ("Study",),
    "foresail.core.goal": ("Goal", "maximize", "minimize"),
    "foresail.core.layout": ("Parallel",),
    "foresail.errors": ("CallerError", "ForesailError", "HostError", "TrainingError"),
    "foresail.space": ("Choice", "Flag", "Float", "Int", "Space"),
    "foresail.worker.client": ("checkpoint_dir", "config", "report", "should_stop"),
    "foresail.worker.run": ("Run",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Best",
    "CallerError",
    "Choice",
    "Flag",
    "Float",
    "ForesailError",
    "Goal",
    "HostError",
    "Int",
    "Parallel",
    "Result",
    "Run",
    "Space",
    "Study",
    "TrainingError",
    "TrialRow",
    "__version__",
    "checkpoint_dir",
    "config",
    "maximize",
    "minimize",
    "report",
    "should_stop",
]


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'foresail' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
