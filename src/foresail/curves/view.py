"""What a study says as a whole, fitted once and then used for any of its trials.

Scale of the metric, neighbours in hyperparameter space, gains of finished trials. Letters: C trials of the
study, M trials asked for, J knots, Q normal scores, R fractions of the schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foresail.curves.earlier import UNLIKE_VARIANCE, Earlier
from foresail.curves.features import NO_LEVEL_SD, Context, no_context
from foresail.curves.history import History
from foresail.curves.honesty import (
    LEAST_REPLAYED,
    Record,
    Replays,
    best_share,
    defended,
    record_of,
    replay,
)
from foresail.curves.neighbours import PRIOR_SD, USELESS, Neighbours, fit_neighbours
from foresail.curves.network import Laws, Network, knot_lags
from foresail.curves.posterior import Cut, Rows, cut, laws, pace
from foresail.curves.scale import Scale, fit_scale
from foresail.curves.tables import MEAN_WEIGHTS

Floats = NDArray[Any]

PRIOR_MEAN = 0.4  # of final values, internal units
FINISHED_VARIANCE = 1e-4
SD_INFLATION, SD_FLOOR = np.sqrt(2.0), 0.05  # neighbours are not quite as sure as they think
LOCAL_SHARES = (
    0.2,
    0.45,
    0.7,
    0.95,
)  # of the forecast that does not listen to the neighbours; the first by default
CEILING_POINTS, CEILING_TRIALS = 5, 3  # a ceiling: this many points at the very best, in as many trials
MOST_ASKED = 512  # running trials whose own word on their end is heard
MOST_CURVES = 200  # finished trials whose gains are averaged
FRACTIONS = np.linspace(0.0, 1.0, 33)  # where the gains of finished trials are kept
GAIN_TRUST = 3.0  # finished trials at which their gains are half trusted; as in training


@dataclass(frozen=True, slots=True)
class Gains:
    """What finished trials gained from each fraction of the schedule to its end: mean and sd (R,), and
    trust."""

    mean: Floats
    sd: Floats
    weight: float


@dataclass(frozen=True, slots=True)
class GlobalView:
    """The fitted view; `laws` applies it."""

    scale: Scale
    end: float
    gap: float
    peers: int
    neighbours: Neighbours | None
    gains: Gains | None
    local_share: float = LOCAL_SHARES[0]
    capped: bool = False  # the best value looks like a ceiling
    record: Record | None = None
    defend: bool = True

    def laws(self, network: Network, trials: Cut, rows: Rows, knobs_MK: Floats) -> Laws:
        """Futures of trials as cut, told what the study knows, corrected by its record."""
        told = self._told(network, trials, rows, knobs_MK)
        return told if self.record is None else self.record.corrected(told, trials.fraction)

    def _told(self, network: Network, trials: Cut, rows: Rows, knobs_MK: Floats) -> Laws:
        level, sd = self._levels(rows, knobs_MK)
        joint = laws(network, trials, self._context(trials, None))
        if self.neighbours is not None:
            heard = laws(network, trials, self._context(trials, (level, sd)))
            share = np.where(trials.prefixes.count_C > 0, self.local_share, 0.0).astype(np.float32)
            joint = replace(heard, tables=heard.tables + share[:, None, None] * (joint.tables - heard.tables))
        if not self.defend:
            return joint
        lags = knot_lags(trials.remaining)
        tables = defended(joint.tables, trials.last_value, level, sd, trials.fraction, lags / lags[:, -1:])
        return replace(joint, tables=tables)

    def _levels(self, rows: Rows, knobs_MK: Floats) -> tuple[Floats, Floats]:
        """What the neighbours say of each final value: mean and sd, (M,) each."""
        level, sd = np.full(len(rows), PRIOR_MEAN), np.full(len(rows), PRIOR_SD)
        if self.neighbours is None:
            return level, sd
        known = rows < len(self.neighbours.level)
        level[known], sd[known] = self.neighbours.level[rows[known]], self.neighbours.level_sd[rows[known]]
        if not known.all():
            level[~known], sd[~known] = self.neighbours.predict(knobs_MK[~known])
        return level, np.sqrt((SD_INFLATION * sd) ** 2 + SD_FLOOR**2)

    def _context(self, trials: Cut, told: tuple[Floats, Floats] | None) -> Context:
        m = len(trials.fraction)
        empty = no_context(m, max(self.peers, 1))
        level, sd = told if told is not None else (np.zeros(m), np.full(m, NO_LEVEL_SD))
        if self.gains is None:
            return Context(level, sd, empty.gain, empty.gain_sd, empty.gain_weight, empty.peers)
        gain = np.interp(trials.fraction, FRACTIONS, self.gains.mean)
        gain_sd = np.interp(trials.fraction, FRACTIONS, self.gains.sd)
        return Context(level, sd, gain, gain_sd, np.full(m, self.gains.weight), empty.peers)


def fit_view(
    history: History,
    knobs_CK: Floats,
    network: Network,
    end: float,
    gap: float,
    *,
    study: bool = True,
    honesty: bool = True,
    earlier: Sequence[Earlier] = (),
) -> GlobalView:
    """Fits the view to all that has been observed; `study` and `honesty` off leave the scale only."""
    peers = int((history.count > 0).sum())
    scale = fit_scale(history.ends) if peers or not earlier else earlier[-1].scale
    view = GlobalView(scale, end, gap, peers, None, None, capped=_is_capped(history), defend=honesty)
    finished = finished_trials(history, end, gap)
    if study:
        view = replace(view, gains=_gains(history, finished[~history.lost[finished]], scale, end))
        if peers >= 2 or earlier:
            view = replace(view, neighbours=_neighbours(view, network, history, knobs_CK, finished, earlier))
    if not honesty:
        return view

    def replayed(view: GlobalView) -> Replays | None:
        def laws_of(part: Cut, rows: Rows) -> Laws:
            return view.laws(network, part, rows, knobs_CK[rows])

        return replay(history, finished, scale, end, gap, laws_of)

    if view.neighbours is not None and len(finished) >= LEAST_REPLAYED:
        listening, deaf = replayed(replace(view, local_share=0.0)), replayed(replace(view, local_share=1.0))
        view = replace(view, local_share=best_share(listening, deaf, LOCAL_SHARES))
    replays = replayed(view)
    return view if replays is None else replace(view, record=record_of(replays))


def _is_capped(history: History) -> bool:
    """Whether several trials have stood at the very same best value again and again, as a full score does."""
    known = np.arange(history.values.shape[1]) < history.count[:, None]
    best = np.nanmax(history.ends.high, initial=-np.inf)
    at_best = ((history.values == best) & known).sum(axis=1)
    return bool((at_best >= CEILING_POINTS).sum() >= CEILING_TRIALS)


def finished_trials(history: History, end: float, gap: float) -> Rows:
    """Trials that have got to the end of the schedule, or diverged."""
    last, spacing = pace(history, np.arange(len(history)), history.count, gap)
    there = (end - last) < 0.5 * spacing
    return np.flatnonzero((history.count > 0) & (there | history.lost))


def _neighbours(
    view: GlobalView,
    network: Network,
    history: History,
    knobs_CK: Floats,
    finished: Rows,
    earlier: Sequence[Earlier],
) -> Neighbours:
    mean, noise = _sites(view, network, history, finished)
    fit = [e for e in earlier if e.knobs.shape[1] == knobs_CK.shape[1]]
    knobs = np.concatenate([knobs_CK, *(e.knobs for e in fit)])
    mean = np.concatenate([mean, *(e.level for e in fit)])
    noise = np.concatenate([noise, *(np.full(len(e.level), UNLIKE_VARIANCE) for e in fit)])
    fitted = fit_neighbours(knobs, mean, noise)
    own = slice(0, len(history))
    return replace(fitted, level=fitted.level[own], level_sd=fitted.level_sd[own])


def _gains(history: History, rows: Rows, scale: Scale, end: float) -> Gains | None:
    if not len(rows):
        return None
    curves = np.empty((len(rows), len(FRACTIONS)))
    for i, row in enumerate(rows[:MOST_CURVES]):
        n = history.count[row]
        curves[i] = np.interp(FRACTIONS * end, history.steps[row, :n], history.values[row, :n])
    inner = scale.inside(curves[: min(len(rows), MOST_CURVES)])
    gained = inner[:, -1:] - inner
    return Gains(gained.mean(axis=0), gained.std(axis=0), len(rows) / (len(rows) + GAIN_TRUST))


def _sites(view: GlobalView, network: Network, history: History, finished: Rows) -> tuple[Floats, Floats]:
    """Mean and variance of each trial's own word on its final value, (C,) each."""
    mean, variance = np.full(len(history), PRIOR_MEAN), np.full(len(history), 10.0 * USELESS)
    running = np.setdiff1d(np.flatnonzero(history.count > 0), finished, assume_unique=True)
    if (
        len(running) > MOST_ASKED
    ):  # those that have come farthest know most; the process holds no more of them
        ahead = np.argsort(-history.last_step[running], kind="stable")[:MOST_ASKED]
        running = np.sort(running[ahead])
    if len(running):
        part = cut(history, running, history.count[running], view.scale, view.end, view.gap)
        mean[running], variance[running] = _own_word(view, network, part)
    ends = np.where(history.lost, np.nan, history.ends.last)[finished]
    mean[finished], variance[finished] = view.scale.inside(ends), FINISHED_VARIANCE
    return mean, variance


def _own_word(view: GlobalView, network: Network, part: Cut) -> tuple[Floats, Floats]:
    """Moments of the forecast of each final value, with the broad prior divided out; `USELESS` where
    little is left."""
    end = laws(network, part, view._context(part, None)).tables[:, -1].astype(np.float64)
    m = end @ MEAN_WEIGHTS
    v = np.maximum((end**2) @ MEAN_WEIGHTS - m * m, 1e-6)
    precision = 1.0 / v - 1.0 / PRIOR_SD**2
    useful = precision > 0.3 / PRIOR_SD**2
    own = 1.0 / np.where(useful, precision, 1.0)
    mean = np.clip((m / v - PRIOR_MEAN / PRIOR_SD**2) * own, -0.5, 1.5)
    return (
        np.where(useful, mean, PRIOR_MEAN),
        np.where(useful, np.maximum(own, FINISHED_VARIANCE), 10.0 * USELESS),
    )
