"""Ray Tune's function interface with Foresail's engine behind it: change `from ray import tune` to

    from foresail import tune

Ray is not needed. Functions that report with `tune.report(metrics, checkpoint=...)` and look at `tune.get_checkpoint()`
are suspended and resumed through their own checkpoints. What is offered and what differs is told in docs/ray-tune.md.
"""

from foresail.tune.session import Checkpoint, get_checkpoint, report
from foresail.tune.spaces import (
    choice,
    grid_search,
    lograndint,
    loguniform,
    qrandint,
    quniform,
    randint,
    uniform,
)
from foresail.tune.tuner import (
    ResultGrid,
    RunConfig,
    TuneConfig,
    Tuner,
    TuneResult,
    with_parameters,
    with_resources,
)

__all__ = [
    "Checkpoint",
    "ResultGrid",
    "RunConfig",
    "TuneConfig",
    "TuneResult",
    "Tuner",
    "choice",
    "get_checkpoint",
    "grid_search",
    "lograndint",
    "loguniform",
    "qrandint",
    "quniform",
    "randint",
    "report",
    "uniform",
    "with_parameters",
    "with_resources",
]
