"""Optuna's interface with Foresail's engine behind it: change `import optuna` to

    import foresail.optuna as optuna

and `create_study(...).optimize(objective, ...)` runs its trials in processes of their own, side by side, and ends those
that will not get there. Everything else of the name (`TrialPruned`, `samplers`, `visualization`, ...) is Optuna's own.
What differs is told in docs/optuna.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from foresail.errors import MissingExtraError

if TYPE_CHECKING:
    from foresail.optuna.tuned import TunedStudy, create_study

__all__ = ["TunedStudy", "create_study"]


def __getattr__(name: str) -> Any:
    try:
        import optuna
    except ImportError:
        raise MissingExtraError("Optuna", "optuna") from None
    if name not in __all__:
        return getattr(optuna, name)
    from foresail.optuna import tuned

    return getattr(tuned, name)
