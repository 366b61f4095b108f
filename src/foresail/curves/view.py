"""What a study says as a whole, fitted once and then used for any of its trials.

Scale of the metric, neighbours in hyperparameter space, gains of finished trials. Letters: C trials of the
study, M trials asked for, J knots, Q normal scores, R fractions of the schedule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foresail.curves.features import NO_LEVEL_SD, Context, no_context
from foresail.curves.forecasts import mean_weights
from foresail.curves.history import History
from foresail.curves.neighbours import PRIOR_SD, USELESS, Neighbours, fit_neighbours
from foresail.curves.network import Network
from foresail.curves.posterior import Cut, Rows, cut, laws
from foresail.curves.scale import Scale, fit_scale

Floats = NDArray[Any]

PRIOR_MEAN = 0.4  # of final values, internal units
FINISHED_VARIANCE = 1e-4
SD_INFLATION, SD_FLOOR = np.sqrt(2.0), 0.05  # neighbours are not quite as sure as they think
LOCAL_SHARE = 0.2  # of the forecast that does not listen to the neighbours
FRACTIONS = np.linspace(0.0, 1.0, 33)  # where the gains of finished trials are kept
GAIN_TRUST = 3.0  # finished trials at which their gains are half trusted; as in training


@dataclass(frozen=True, slots=True)
class Gains:
    """What finished trials gained from each fraction of the schedule to its end: mean and sd (R,), and trust."""

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

    def laws(self, network: Network, trials: Cut, rows: Rows, knobs_MK: Floats) -> tuple[Floats, Floats]:
        """Tables (M, J, Q) and loadings (M, J) of trials as cut, told what the study knows."""
        alone = self._context(trials, None)
        if self.neighbours is None:
            return laws(network, trials, alone)
        level, sd = self._levels(rows, knobs_MK)
        told = self._context(trials, (level, np.sqrt((SD_INFLATION * sd) ** 2 + SD_FLOOR**2)))
        tables, loadings = laws(network, trials, told)
        own, _ = laws(network, trials, alone)
        share = np.where(trials.prefixes.count_C > 0, LOCAL_SHARE, 0.0).astype(np.float32)[:, None, None]
        return tables + share * (own - tables), loadings

    def _levels(self, rows: Rows, knobs_MK: Floats) -> tuple[Floats, Floats]:
        assert self.neighbours is not None
        known = rows < len(self.neighbours.level)
        level, sd = np.empty(len(rows)), np.empty(len(rows))
        level[known], sd[known] = self.neighbours.level[rows[known]], self.neighbours.level_sd[rows[known]]
        if not known.all():
            level[~known], sd[~known] = self.neighbours.predict(knobs_MK[~known])
        return level, sd

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
    history: History, knobs_CK: Floats, network: Network, end: float, gap: float, study: bool = True
) -> GlobalView:
    """Fits the view to all that has been observed; with `study` off, the scale only."""
    scale = fit_scale(history.ends)
    peers = int((history.count > 0).sum())
    if not study:
        return GlobalView(scale, end, gap, peers, None, None)
    rows = np.arange(len(history))
    now = cut(history, rows, history.count, scale, end, gap)
    finished = (history.count > 0) & ((end - now.last_step) < 0.5 * now.spacing)
    gains = _gains(history, np.flatnonzero(finished & ~history.lost), scale, end)
    alone = GlobalView(scale, end, gap, peers, None, gains)
    if peers < 2:
        return alone
    neighbours = fit_neighbours(knobs_CK, *_sites(alone, network, history, now, finished))
    return GlobalView(scale, end, gap, peers, neighbours, gains)


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


MOST_CURVES = 200


def _sites(
    view: GlobalView, network: Network, history: History, now: Cut, finished: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """Mean and variance of each trial's own word on its final value, (C,) each."""
    mean, variance = np.full(len(history), PRIOR_MEAN), np.full(len(history), 10.0 * USELESS)
    open_ = np.flatnonzero((history.count > 0) & ~finished & ~history.lost)
    if len(open_):
        gap = view.gap
        part = cut(history, open_, history.count[open_], view.scale, view.end, gap)
        tables, _ = view.laws(network, part, open_, np.empty((len(open_), 0)))
        weights = mean_weights()
        m = tables[:, -1] @ weights
        v = np.maximum((tables[:, -1] ** 2) @ weights - m * m, 1e-6)
        precision = 1.0 / v - 1.0 / PRIOR_SD**2
        useful = precision > 0.3 / PRIOR_SD**2
        own = 1.0 / np.where(useful, precision, 1.0)
        mean[open_] = np.where(useful, np.clip((m / v - PRIOR_MEAN / PRIOR_SD**2) * own, -0.5, 1.5), PRIOR_MEAN)
        variance[open_] = np.where(useful, np.maximum(own, FINISHED_VARIANCE), 10.0 * USELESS)
    done = np.flatnonzero(finished | history.lost)
    ends = view.scale.inside(np.where(history.lost, np.nan, history.ends.last)[done])
    mean[done], variance[done] = ends, FINISHED_VARIANCE
    return mean, variance
