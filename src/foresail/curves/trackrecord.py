"""The scores of a study's own earlier forecasts, as `explain` and `export` show them.

Each finished trial is cut at several fractions of the schedule and forecast with what the study knows now,
its own end left out of what the neighbours say. Letters: D finished trials, X grid values, Q normal scores.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from foresail.curves.history import History
from foresail.curves.honesty import REPLAYED, prefix_counts
from foresail.curves.network import Network
from foresail.curves.normal import ndtr
from foresail.curves.posterior import Rows, cut
from foresail.curves.scale import FLOOR
from foresail.curves.score import Scorecard, scorecard
from foresail.curves.tables import scores_at
from foresail.curves.view import GlobalView

Floats = NDArray[Any]

GRID = np.linspace(FLOOR, 1.5, 801)
RESOLUTION = 0.001  # on the internal scale
HARD = 0.8  # the event of the small chances: to end above this quantile of the finished trials


def track_record(view: GlobalView, network: Network, history: History, knobs_CK: Floats) -> Scorecard:
    """Scores over all finished trials and fractions; no forecasts in it before a trial has finished."""
    rows = view.finished
    ends = view.scale.inside(np.where(history.lost, np.nan, history.ends.last)[rows])
    target = float(np.quantile(ends, HARD)) if len(rows) else 0.0
    laws, outcomes, chances = [np.zeros((0, len(GRID)))], [np.zeros(0)], [np.zeros(0)]
    for fraction in REPLAYED[1:]:
        count = prefix_counts(history, rows, fraction * view.end)
        usable = np.flatnonzero(count < history.count[rows])
        if len(usable):
            law = _final_laws(view, network, history, rows[usable], count[usable], knobs_CK)
            laws.append(law)
            outcomes.append(ends[usable])
            chances.append(1.0 - np.array([np.interp(target, GRID, row) for row in law]))
    outcome = np.concatenate(outcomes)
    return scorecard(
        GRID,
        np.concatenate(laws),
        outcome,
        resolution=RESOLUTION,
        prob_M=np.concatenate(chances),
        event_M=(outcome > target).astype(float),
    )


def _final_laws(
    view: GlobalView, network: Network, history: History, rows: Rows, count: Rows, knobs_CK: Floats
) -> Floats:
    part = cut(history, rows, count, view.scale, view.end, view.gap)
    tables = view.laws(network, part, rows, knobs_CK[rows]).tables[:, -1]
    law = ndtr(scores_at(tables[:, None], GRID[None, :].astype(np.float32))).astype(np.float64)
    law[:, -1] = 1.0
    return law
