"""What a study says as a whole, fitted once and then used for any of its trials.

Scale of the metric, neighbours in hyperparameter space, gains of finished trials. Letters: C trials of the
study, M trials asked for, J knots, Q normal scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foresail.curves.earlier import UNLIKE_VARIANCE, Earlier
from foresail.curves.features import Context, no_context, told
from foresail.curves.history import History
from foresail.curves.honesty import MIXES, Record, at_fraction, best_mixes, defended, record_of, replays_of
from foresail.curves.neighbours import PRIOR_SD, USELESS, Neighbours, fit_neighbours
from foresail.curves.network import Laws, Network, knot_lags
from foresail.curves.peers import Gains, gains_of
from foresail.curves.posterior import Cut, Rows, cut, pace
from foresail.curves.scale import Scale, fit_scale
from foresail.curves.tables import MEAN_WEIGHTS

Floats = NDArray[Any]

PRIOR_MEAN = 0.4  # of final values, internal units
FINISHED_VARIANCE = 1e-4
SD_INFLATION, SD_FLOOR = np.sqrt(2.0), 0.05  # neighbours are not quite as sure as they think
CEILING_POINTS, CEILING_TRIALS = 5, 3  # a ceiling: this many points at the very best, in as many trials
MOST_ASKED = 512  # running trials whose own word on their end is heard


@dataclass(frozen=True, slots=True)
class GlobalView:
    """The fitted view; `laws` applies it."""

    scale: Scale
    end: float
    gap: float
    peers: int
    finished: Rows
    neighbours: Neighbours | None = None
    gains: Gains | None = None
    mix: Floats | None = None  # for each replayed fraction, one of `MIXES`; the first of them before there is a record
    capped: bool = False  # the best value looks like a ceiling
    record: Record | None = None
    defend: bool = True

    def laws(self, network: Network, trials: Cut, rows: Rows, knobs_MK: Floats) -> Laws:
        """Futures of trials as cut, told what the study knows, corrected by its record."""
        advice = self._advice(rows, knobs_MK)
        heard = self.mixed(self.told(network, trials, rows, advice), trials, advice)
        return heard if self.record is None else self.record.corrected(heard, trials.fraction)

    def told(self, network: Network, trials: Cut, rows: Rows, advice: tuple[Floats, Floats], every: bool = False
             ) -> tuple[Laws, ...]:  # fmt: skip
        """Futures by how much of the study is listened to: neighbours and gains, gains alone, nothing.

        Where two of these are the same, or one does not count and not `every` is asked for, the one before it stands
        there again."""
        deaf = self._context(trials, rows)
        asked = [deaf if self.neighbours is None else replace(deaf, level=advice[0], level_sd=advice[1])]
        at, counts = [0, 0, 0], MIXES[0] if self.mix is None else self.mix.max(axis=0)
        if self.neighbours is not None and (every or counts[1] > 0):
            asked.append(deaf)
            at[1] = at[2] = len(asked) - 1
        if self.gains is not None and (every or counts[2] > 0):
            asked.append(no_context(len(rows), max(self.peers, 1)))
            at[2] = len(asked) - 1
        found = _each(network, trials, asked)
        return tuple(found[i] for i in at)

    def mixed(self, told: tuple[Laws, ...], trials: Cut, advice: tuple[Floats, Floats]) -> Laws:
        """One law from those, and tails no thinner than a young curve deserves."""
        full, deaf, alone = (laws.tables for laws in told)
        shares = np.array([MIXES[0]]) if self.mix is None else at_fraction(self.mix, trials.fraction)
        shares_M11 = (shares * (trials.prefixes.count_C > 0)[:, None]).astype(np.float32)[:, :, None, None]
        tables = full
        if deaf is not full:
            tables = tables + shares_M11[:, 1] * (deaf - full)
        if alone is not full:
            tables = tables + shares_M11[:, 2] * (alone - full)
        if self.defend:
            lags = knot_lags(trials.remaining)
            tables = defended(tables, trials.last_value, *advice, trials.fraction, lags / lags[:, -1:])
        return replace(told[0], tables=tables)

    def _advice(self, rows: Rows, knobs_MK: Floats) -> tuple[Floats, Floats]:
        """What the neighbours say of each final value: mean and sd, (M,) each."""
        if self.neighbours is None:
            return np.full(len(rows), PRIOR_MEAN), np.full(len(rows), np.hypot(SD_INFLATION * PRIOR_SD, SD_FLOOR))
        known = rows < len(self.neighbours.level)
        if known.all():
            level, sd = self.neighbours.level[rows], self.neighbours.level_sd[rows]
        else:
            level, sd = np.empty(len(rows)), np.empty(len(rows))
            level[known], sd[known] = self.neighbours.level[rows[known]], self.neighbours.level_sd[rows[known]]
            level[~known], sd[~known] = self.neighbours.predict(knobs_MK[~known])
        return level, np.hypot(SD_INFLATION * sd, SD_FLOOR)

    def _context(self, trials: Cut, rows: Rows) -> Context:
        """What finished trials tell of each; no word of the neighbours."""
        nothing = no_context(len(rows), max(self.peers, 1))
        if self.gains is None:
            return nothing
        stands = np.where(trials.prefixes.count_C > 0, trials.last_value, np.nan)
        mean, sd, trust = self.gains.of(trials.fraction, stands, rows)
        return replace(nothing, gain=mean, gain_sd=sd, gain_weight=trust)


def _each(network: Network, trials: Cut, contexts: list[Context]) -> list[Laws]:
    """The futures under each context, in one pass of the network."""
    alone, number = trials.summary, len(contexts)
    columns = [told(alone, context) for context in contexts]
    if number == 1:
        return [network.laws(columns[0], alone.level, alone.unit)]
    both = network.laws(
        np.concatenate(columns), np.concatenate([alone.level] * number), np.concatenate([alone.unit] * number)
    )
    parts = [slice(i * len(alone.level), (i + 1) * len(alone.level)) for i in range(number)]
    return [Laws(both.tables[part], both.loadings[part], both.freshness[part]) for part in parts]


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
    finished = finished_trials(history, end, gap)
    view = GlobalView(scale, end, gap, peers, finished, capped=_is_capped(history), defend=honesty)
    if study:
        view = replace(view, gains=gains_of(history, finished[~history.lost[finished]], scale, end))
        if peers >= 2 or earlier:
            view = replace(view, neighbours=_neighbours(view, network, history, knobs_CK, finished, earlier))
    return _honest(view, network, history, knobs_CK) if honesty else view


def _honest(view: GlobalView, network: Network, history: History, knobs_CK: Floats) -> GlobalView:
    """How far to listen, and what to correct, settled by the study's own finished trials."""
    parts = replays_of(history, view.finished, view.scale, view.end, view.gap)
    if not parts:
        return view
    advice = [view._advice(part.rows, knobs_CK[part.rows]) for part in parts]
    told = [view.told(network, p.trials, p.rows, a, every=True) for p, a in zip(parts, advice, strict=True)]
    if view.neighbours is not None or view.gains is not None:
        ends = [tuple(laws.tables[:, -1] for laws in laws_of_part) for laws_of_part in told]
        view = replace(view, mix=best_mixes(parts, ends))
    said = [view.mixed(t, p.trials, a).tables for t, p, a in zip(told, parts, advice, strict=True)]
    return replace(view, record=record_of(parts, said))


def _is_capped(history: History) -> bool:
    """Whether several trials have stood at the very same best value again and again, as a full score does."""
    there = np.flatnonzero(history.ends.high == np.fmax.reduce(history.ends.high, initial=-np.inf))
    if len(there) < CEILING_TRIALS:
        return False
    values = history.values[there]
    known = np.arange(values.shape[1]) < history.count[there, None]
    at_best = ((values == history.ends.high[there, None]) & known).sum(axis=1)
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


def _sites(view: GlobalView, network: Network, history: History, finished: Rows) -> tuple[Floats, Floats]:
    """Mean and variance of each trial's own word on its final value, (C,) each."""
    mean, variance = np.full(len(history), PRIOR_MEAN), np.full(len(history), 10.0 * USELESS)
    running = np.setdiff1d(np.flatnonzero(history.count > 0), finished, assume_unique=True)
    if len(running) > MOST_ASKED:  # those that have come farthest know most; the process holds no more of them
        ahead = np.argsort(-history.last_step[running], kind="stable")[:MOST_ASKED]
        running = np.sort(running[ahead])
    if len(running):
        part = cut(history, running, history.count[running], view.scale, view.end, view.gap)
        mean[running], variance[running] = _own_word(view, network, part, running)
    ends = np.where(history.lost, np.nan, history.ends.last)[finished]
    mean[finished], variance[finished] = view.scale.inside(ends), FINISHED_VARIANCE
    return mean, variance


def _own_word(view: GlobalView, network: Network, part: Cut, rows: Rows) -> tuple[Floats, Floats]:
    """Moments of the forecast of each final value, with the broad prior divided out; `USELESS` where
    little is left."""
    end = _each(network, part, [view._context(part, rows)])[0].tables[:, -1].astype(np.float64)
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
