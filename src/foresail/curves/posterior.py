"""From observed points to tables: trials as they are, or as they were at an earlier step.

Letters: C trials of the study, M trials asked for, T points, J knots, H horizon, Q normal scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foresail.curves.features import EMPTY_LEVEL, Prefixes, Summary, summary
from foresail.curves.history import History
from foresail.curves.network import KNOTS, Laws, knot_position
from foresail.curves.scale import Scale

Floats = NDArray[Any]
Rows = NDArray[np.int64]

# Recorded paths are less white than the prior is: with the learnt freshness as it is, chances to reach a
# target came out too high on the traces of the model card. Read off them; the only number here that is.
WHITENESS = 0.2


@dataclass(frozen=True)
class Cut:
    """Trials of a study up to some of their points, in internal units; each field but `prefixes` is (M,)."""

    prefixes: Prefixes
    spacing: Floats  # metric steps to a unit of `prefixes.steps_CT`
    last_step: Floats  # 0 where there is no point
    last_value: Floats  # internal units
    remaining: Floats  # units from the last point to the end of the schedule
    fraction: Floats  # of the schedule that has been seen

    @cached_property
    def summary(self) -> Summary:
        """What the curves say by themselves; asked for more than once, with different contexts."""
        return summary(self.prefixes)


def cut(history: History, rows: Rows, count: Rows, scale: Scale, end: float, gap: float) -> Cut:
    """The first `count` (M,) points of the trials `rows`.

    Args:
        end: the last step of the schedule.
        gap: distance between reports, for trials with fewer than two points.
    """
    width = max(int(count.max(initial=0)), 1)
    steps = history.steps[rows, :width].astype(np.float64)
    values = scale.inside(history.values[rows, :width])
    if len(rows) > 1:
        values[np.arange(width) >= count[:, None]] = 0.0
    started, at, latest = count > 0, np.arange(len(rows)), np.maximum(count - 1, 0)
    first = steps[:, 0]
    last = np.where(started, steps[at, latest], 0.0)
    spacing = _spacing(history, rows, count, first, last, gap)
    shift = started & (first < 0.5 * spacing)  # schedules that report before the first step
    return Cut(
        prefixes=Prefixes(
            steps / spacing[:, None] + shift[:, None], values, count, np.maximum(end / spacing + shift, 1.0)
        ),
        spacing=spacing,
        last_step=last,
        last_value=np.where(started, values[at, latest], EMPTY_LEVEL),
        remaining=np.maximum((end - last) / spacing, 1.0),
        fraction=np.minimum(np.maximum(last / end, 0.0), 1.0),
    )


def pace(history: History, rows: Rows, count: Rows, gap: float) -> tuple[Floats, Floats]:
    """The last step of the first `count` points of trials, and the mean distance between their reports."""
    last = np.where(count > 0, history.steps[rows, np.maximum(count - 1, 0)], 0.0).astype(np.float64)
    return last, _spacing(history, rows, count, history.steps[rows, 0], last, gap)


def _spacing(history: History, rows: Rows, count: Rows, first: Floats, last: Floats, gap: float) -> Floats:
    thinned = history.count[rows] / np.maximum(history.total[rows], 1)
    return np.where(count > 1, (last - first) / np.maximum(count - 1, 1) * thinned, gap)


def spread_over(horizon_H: Floats, trials: Cut, at_knots: Laws) -> tuple[Floats, Floats, Floats]:
    """Tables (M, H, Q), loadings and freshness (M, H) at the steps of the horizon, straight between the
    knots."""
    lag = (horizon_H - trials.last_step[:, None]) / trials.spacing[:, None]
    position = knot_position(lag, trials.remaining[:, None]).astype(np.float32)
    hat_MJH = position[:, None, :] - _KNOT_NUMBERS
    np.abs(hat_MJH, out=hat_MJH)
    np.subtract(1.0, hat_MJH, out=hat_MJH)
    np.maximum(hat_MJH, 0.0, out=hat_MJH)
    table_MQH = at_knots.tables.transpose(0, 2, 1) @ hat_MJH
    loading = (at_knots.loadings[:, None, :] @ hat_MJH)[:, 0]
    apart = np.empty(len(horizon_H))
    apart[1:] = horizon_H[1:] - horizon_H[:-1]
    apart[0] = apart[1] if len(apart) > 1 else horizon_H[0]
    kept = np.log1p(-np.minimum(WHITENESS * at_knots.freshness, 0.9999))[:, None]
    fresh = -np.expm1(kept * np.maximum(apart / trials.spacing[:, None], 1e-3))
    return table_MQH.transpose(0, 2, 1), loading, np.minimum(np.maximum(fresh, 1e-4), 1.0)


_KNOT_NUMBERS = np.arange(KNOTS, dtype=np.float32)[:, None]
