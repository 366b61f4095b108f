"""Earlier studies of the same space, as a prior for a new one: what their trials ended at, and where.

Letters: C trials of an earlier study, N its finished ones, K knobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foresail.curves.history import gather
from foresail.curves.scale import Scale, fit_scale, sign_of
from foresail.errors import CallerError

Floats = NDArray[Any]

UNLIKE_VARIANCE = 0.08**2  # of what a configuration ends at from one study to the next, internal units
MOST_KEPT = 128  # trials of each earlier study


@dataclass(frozen=True, slots=True)
class Earlier:
    """A finished study, reduced to what a later one can use.

    Attributes:
        knobs: hyperparameters in the unit cube of its finished trials, (N, K).
        level: what they ended at, on that study's own internal scale, (N,).
        scale: that scale, which serves a new study until it has points.
    """

    knobs: Floats
    level: Floats
    scale: Scale


def summarise(
    steps: Sequence[ArrayLike], values: Sequence[ArrayLike], features: ArrayLike, *, mode: str
) -> Earlier:
    """An earlier study from its points and hyperparameters; arguments as of `foresail.curves.forecast`.

    A trial counts as finished if it got to 95 % of the farthest step, or diverged.

    Raises:
        CallerError: features that do not fit the trials.
    """
    history = gather(sign_of(mode), steps, values)
    knobs = np.asarray(features, dtype=np.float64)
    if knobs.ndim != 2 or len(knobs) != len(history):
        raise CallerError(f"features of shape {knobs.shape}", allowed=f"({len(history)}, knobs)")
    scale = fit_scale(history.ends)
    done = (history.count > 0) & (history.last_step >= 0.95 * history.last_step.max(initial=0.0))
    rows = np.flatnonzero(done | history.lost)
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), MOST_KEPT)).astype(np.int64))]
    ends = np.where(history.lost, np.nan, history.ends.last)[rows]
    return Earlier(knobs[rows], scale.inside(ends), scale)
