"""Calibration: whether earlier forecasts were as right as they said.

Two witnesses. *Replayed*: each finished trial is cut at several fractions of its training and forecast with what the
study knows now, its own end left out (`curves/trackrecord.py`); coverage of central intervals, and reliability of the
chance to end among the best fifth. *Claimed*: what the decisions of the log said of trials that were trained to their
ends, beside what they came to; nothing is made anew there, so it is the harder witness, of fewer trials.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from foresail.core.words import Status
from foresail.curves.score import coverage, interval, reliability
from foresail.curves.trackrecord import GRID, RESOLUTION
from foresail.plots.chronicle import Chronicle
from foresail.plots.foreseen import Foreseen

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
BINS = 5
"""Of the reliability: a study finishes few trials."""


class Covered(Struct, frozen=True):
    """`level`: probability of a central interval; `seen`: share of the outcomes that it held."""

    level: float
    seen: float


class Bin(Struct, frozen=True):
    """Events that were given about the same chance: mean of what was `said`, share that was `seen` to come."""

    said: float
    seen: float
    count: int


class Kept(Struct, frozen=True):
    """A decision's expectation of a trial that was trained to its end: `said` and `came` in the metric's units."""

    trial: int
    at_s: float
    seen_frac: float
    said: float
    came: float


class Calibration(Struct, frozen=True):
    """`forecasts`: replayed ones, `trials` of them finished; `error`: expected calibration error; NaN without any."""

    events: int
    metric: str
    forecasts: int
    coverage: tuple[Covered, ...]
    reliability: tuple[Bin, ...]
    error: float
    claims: tuple[Kept, ...]


def calibration(chronicle: Chronicle, foreseen: Foreseen | None) -> Calibration:
    """How right the forecasts were; with `foreseen` None, the claims alone."""
    view = chronicle.view
    past = None if foreseen is None else foreseen.state.past_forecasts(foreseen.horizon)
    if past is None or not len(past.outcome):
        return Calibration(view.events, view.spec.goal.metric, 0, (), (), float("nan"), _claims(chronicle))
    below, upto = interval(GRID, past.law, past.outcome, RESOLUTION)
    said = reliability(past.said, past.came, BINS)
    return Calibration(
        events=view.events,
        metric=view.spec.goal.metric,
        forecasts=len(past.outcome),
        coverage=tuple(Covered(level, coverage(below, upto, level)) for level in LEVELS),
        reliability=tuple(
            Bin(s, e, n) for s, e, n in zip(said.said.tolist(), said.seen.tolist(), said.count.tolist(), strict=True)
        ),
        error=said.error,
        claims=_claims(chronicle),
    )


def _claims(chronicle: Chronicle) -> tuple[Kept, ...]:
    trials = chronicle.view.trials
    found = []
    for claim in chronicle.claims:
        trial = trials[claim.trial]
        came, end = trial.last_value, trial.last_step
        if trial.ended is Status.COMPLETED and came is not None and np.isfinite(came) and claim.step < end:
            found.append(Kept(claim.trial, claim.at_s, claim.step / end, claim.final, came))
    return tuple(found)
