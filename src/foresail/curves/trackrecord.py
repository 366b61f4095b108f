"""The scores of a study's own earlier forecasts, as `explain` and `export` show them.

Each finished trial is cut at several fractions of the schedule and forecast with what the study knows now,
its own end left out of what the neighbours say. Letters: D finished trials, X grid values, Q normal scores.
"""

from __future__ import annotations

from dataclasses import dataclass
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
from foresail.curves.view import GlobalView, finished_trials

Floats = NDArray[Any]

GRID = np.linspace(FLOOR, 1.5, 801)
RESOLUTION = 0.001  # on the internal scale
HARD = 0.8  # the event of the small chances: to end above this quantile of the finished trials


@dataclass(frozen=True, slots=True)
class PastForecasts:
    """What would have been forecast for finished trials, and what came of it: M forecasts.

    Attributes:
        fraction: of the schedule that had been seen, (M,).
        law: distribution of the value at the end on `GRID`, internal units, (M, X).
        outcome: where it ended, internal units, (M,).
        said, came: chance to end above the `HARD` quantile of the finished trials, and whether it did, (M,).
    """

    fraction: Floats
    law: Floats
    outcome: Floats
    said: Floats
    came: Floats


def past_forecasts(view: GlobalView, network: Network, history: History, knobs_CK: Floats) -> PastForecasts:
    """Of all finished trials at all fractions; none before a trial has finished."""
    rows = finished_trials(history, view.end, view.gap)
    ends = view.scale.inside(np.where(history.lost, np.nan, history.ends.last)[rows])
    target = float(np.quantile(ends, HARD)) if len(rows) else 0.0
    fractions, laws, outcomes = [np.zeros(0)], [np.zeros((0, len(GRID)))], [np.zeros(0)]
    for fraction in REPLAYED[1:]:
        count = prefix_counts(history, rows, fraction * view.end)
        usable = np.flatnonzero(count < history.count[rows])
        if len(usable):
            laws.append(_final_laws(view, network, history, rows[usable], count[usable], knobs_CK))
            outcomes.append(ends[usable])
            fractions.append(np.full(len(usable), fraction))
    law, outcome = np.concatenate(laws), np.concatenate(outcomes)
    said = 1.0 - np.array([np.interp(target, GRID, row) for row in law])
    return PastForecasts(np.concatenate(fractions), law, outcome, said, (outcome > target).astype(float))


def track_record(past: PastForecasts) -> Scorecard:
    """Their scores."""
    return scorecard(GRID, past.law, past.outcome, resolution=RESOLUTION, prob_M=past.said, event_M=past.came)


def _final_laws(
    view: GlobalView, network: Network, history: History, rows: Rows, count: Rows, knobs_CK: Floats
) -> Floats:
    part = cut(history, rows, count, view.scale, view.end, view.gap)
    tables = view.laws(network, part, rows, knobs_CK[rows]).tables[:, -1]
    law = ndtr(scores_at(tables[:, None], GRID[None, :].astype(np.float32))).astype(np.float64)
    law[:, -1] = 1.0
    return law
