"""Of every trial that may still run, started or not: what is foreseen of it and what its next second is worth.

An index, folded from the log. A trial is looked at again at each of the chain's looks (`chain.py`); all of them are when
the study has grown by a quarter or the lens must change. What is foreseen of a trial's end joins its own curve, by the
chain, with what trials of similar hyperparameters make of it, by a Gaussian process (`curves/neighbours.py`); of a
configuration that has not been started only the latter is known, and it is worth what its first look would tell.

Letters: N trials, K looks, Y grid of values, L prices, G nodes of a normal distribution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from foresail.core import events as ev
from foresail.core.spec import StudySpec
from foresail.core.view import Trial, View
from foresail.core.words import Status, TrialId
from foresail.curves.neighbours import USELESS, Neighbours, fit_neighbours
from foresail.policies.chain import GRID, LOWEST, PRICES, Chain, Floats, index, looks
from foresail.policies.costs import Costs
from foresail.policies.focus import Focus, Starts
from foresail.policies.horizon import horizon_of
from foresail.space import Space

REFIT = 1.25
"""All is fitted again when the study has so many times the points of the last fit: its cost stays a constant share."""
SPAN = 4.0
"""Units of the lens that are one unit of the Gaussian process: from the target to where trials start."""
UNKNOWN = (-2.5, 1.5)
"""Mean and spread of values at the end before anything is known, in units of the lens."""
STEP = 0.2
"""What beats the best so far must be so much nearer to the target, in units of the lens."""
LEAST_VARIANCE = 0.01
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


@dataclass(frozen=True, slots=True)
class Prospect:
    """Of one trial. `p`: chance to reach the target by its end; `rate`, `held`: index, targets a second, if it must be
    started first and as it is; `final`: expected value at the end; `reach`: chance by each look that is ahead, `ahead`:
    steps to these; `step_s`: seconds of a step."""

    p: float
    rate: float
    held: float
    final: float
    ahead: Floats
    reach: Floats
    step_s: float

    def within(self, seconds: float | None) -> float:
        """P(target reached within so many seconds)."""
        if seconds is None:
            return self.p
        upto = int(np.searchsorted(self.ahead, seconds / max(self.step_s, 1e-12), side="right"))
        return float(self.reach[upto - 1]) if upto else 0.0

    @property
    def expected_s(self) -> float:
        """Expected seconds of training to the target, given that it is reached."""
        mass = np.diff(self.reach, prepend=0.0)
        return float((self.ahead * mass).sum() * self.step_s / max(self.p, 1e-12))


@dataclass
class Prospects:
    """`begin` makes it, `observe` carries it over an event; nothing else changes it."""

    space: Space
    end: int
    costs: Costs = field(default_factory=Costs)
    starts: Starts = field(default_factory=Starts)
    focus: Focus | None = None
    steps: list[int] = field(default_factory=list)
    chain: Chain | None = None
    aim: float = 0.0
    aimed: Chain | None = None
    neighbours: Neighbours | None = None
    own: tuple[float, float] = UNKNOWN
    seen: dict[TrialId, list[float]] = field(default_factory=dict)
    units: list[Sequence[float]] = field(default_factory=list)
    of: dict[TrialId, Prospect] = field(default_factory=dict)
    sign: float = 1.0
    points: int = 0
    fitted: int = 0
    known: int = 0

    @classmethod
    def begin(cls, spec: StudySpec) -> Prospects:
        end = spec.max_steps or 4
        sign = 1.0 if spec.goal.mode == "max" else -1.0
        return cls(Space.from_dict(spec.space), end, steps=looks(end).tolist(), sign=sign)

    def observe(self, view: View, event: ev.Event) -> bool:
        """True: a trial has come to a look."""
        match event:
            case ev.TrialProposed(trial=number, config=config):
                self.units.append(self.space.to_unit(config))
                if self.chain is not None:
                    self._see([view.trials[number]])
            case ev.PointReported(attempt=attempt, metrics=metrics):
                if view.spec.goal.metric in metrics:
                    return self._point(view, view.trial_of(attempt), event)
            case ev.TrialEnded(trial=number):
                self.of.pop(number, None)
        return False

    def _point(self, view: View, trial: Trial, event: ev.PointReported) -> bool:
        self.points += 1
        self.costs.observe(view, event, self.units[trial.id])
        if len(trial.values) == 1:
            self.starts.add(trial.values[0])
        due = self._arrive(view, trial)
        focus, end = self._wanted(view), max(self.end, horizon_of(trial))
        stale = self.focus is None or (self.aim < 0.0 and self._level(trial.best_value) > self.aim - STEP / 2)
        if stale or focus != self.focus or end != self.end or self.points > REFIT * self.fitted:
            self._fit(view, focus, end)
        elif due:
            self._see([trial])
        return due

    def _level(self, value: float | None) -> float:
        """Where a value stands in the lens."""
        if value is None or self.focus is None:
            return LOWEST
        return float(np.clip(self.sign * self.focus.of(value), LOWEST, 0.0))

    def _arrive(self, view: View, trial: Trial) -> bool:
        """Enter the trial's best at every look that it has come to."""
        values = self.seen.setdefault(trial.id, [])
        before = len(values)
        while len(values) < len(self.steps) and trial.last_step >= self.steps[len(values)]:
            best = trial.best_until(self.steps[len(values)], view.spec.goal.mode)
            values.append(math.nan if best is None else best)
        return len(values) > before

    def at_look(self, trial: Trial) -> bool:
        """Whether the trial has just come to a look."""
        passed = len(self.seen.get(trial.id, ()))
        return passed > 0 and trial.last_step == self.steps[passed - 1]

    def _wanted(self, view: View) -> Focus | None:
        target = view.spec.goal.target
        if target is None and view.best is not None:
            target = view.best[2]
        return self.focus if target is None else self.starts.focus(target, self.focus)

    # --- fitting ---------------------------------------------------------------------------------------------

    def _fit(self, view: View, focus: Focus | None, end: int) -> None:
        if end != self.end:
            self.end, self.steps = end, looks(end).tolist()
            self.seen.clear()
            for trial in view.trials:
                self._arrive(view, trial)
        self.focus, self.fitted = focus, self.points
        if focus is None:
            return
        started = [n for n in self.seen if self.seen[n]]
        values_NK = np.full((len(started), len(self.steps)), np.nan)
        for row, number in enumerate(started):
            values_NK[row, : len(self.seen[number])] = self.seen[number]
        values_NK = np.clip(self.sign * focus.of(values_NK), LOWEST, 0.0)
        self.chain = Chain.fit(np.array(self.steps), values_NK)
        self._compare(view, started)
        alive = [view.trials[n] for n in started if view.trials[n].ended is None]
        best = max((self._level(view.trials[n].best_value) for n in started), default=LOWEST) + STEP
        expected = float(self._joined(alive).max()) if alive else LOWEST
        self.aim = min(0.0, max(best, expected))
        self.aimed = self.chain.aimed(self.aim)
        self._see([t for t in view.trials if t.ended is None])

    def _compare(self, view: View, started: Sequence[TrialId]) -> None:
        """Fit the Gaussian process to what each started trial's own curve says of its end."""
        trials = [view.trials[n] for n in started]
        mean_N, variance_N = self._ends(trials)
        self.own = float(mean_N.mean()), math.sqrt(float(mean_N.var() + variance_N.mean()))
        site_N, noise_N = self._divided(mean_N, variance_N)
        mean, noise = np.zeros(len(view.trials)), np.full(len(view.trials), 10.0 * USELESS)
        mean[list(started)], noise[list(started)] = 1.0 + site_N / SPAN, noise_N / SPAN**2
        self.known = len(view.trials)
        self.neighbours = fit_neighbours(np.array(self.units), mean, noise) if len(started) >= 3 else None

    def _ends(self, trials: Sequence[Trial]) -> tuple[Floats, Floats]:
        """What the chain says of each trial's value at its end: mean and variance."""
        assert self.chain is not None
        first_KY, variance_KY = self.chain.end_KY
        look_N, value_N = self._stand(trials)
        mean_N, variance_N = _at(first_KY, look_N, value_N), _at(variance_KY, look_N, value_N)
        done_N = np.array([t.ended is not None and t.ended is not Status.ENDED for t in trials], dtype=bool)
        lost_N = np.array([t.ended is Status.DIVERGED for t in trials], dtype=bool)
        mean_N = np.where(lost_N, LOWEST, np.where(done_N, value_N, mean_N))
        return mean_N, np.where(done_N | lost_N, LEAST_VARIANCE, variance_N)

    def _stand(self, trials: Sequence[Trial]) -> tuple[np.ndarray, Floats]:
        """Look and value of trials that have started."""
        assert self.focus is not None
        look_N = np.array([len(self.seen[t.id]) - 1 for t in trials], dtype=np.int64)
        best_N = np.array([np.nan if t.best_value is None else t.best_value for t in trials], dtype=float)
        return look_N, np.nan_to_num(np.clip(self.sign * self.focus.of(best_N), LOWEST, -1e-3), nan=LOWEST)

    def _divided(self, mean_N: Floats, variance_N: Floats) -> tuple[Floats, Floats]:
        """The trials' own words: what is common to all of them is taken out."""
        centre, spread = self.own
        precision_N = np.maximum(1.0 / variance_N - 1.0 / spread**2, 1e-3)
        return np.clip((mean_N / variance_N - centre / spread**2) / precision_N, LOWEST - 2.0, 2.0), 1.0 / precision_N

    def _levels(self, trials: Sequence[Trial]) -> tuple[Floats, Floats]:
        """What the others say of each trial's end: mean and spread."""
        centre, spread = self.own
        if self.neighbours is None:
            return np.full(len(trials), centre), np.full(len(trials), spread)
        level, sd = np.empty(len(trials)), np.empty(len(trials))
        at = np.array([t.id for t in trials])
        old = at < self.known
        level[old], sd[old] = self.neighbours.level[at[old]], self.neighbours.level_sd[at[old]]
        if not old.all():
            level[~old], sd[~old] = self.neighbours.predict(np.array([self.units[n] for n in at[~old]]))
        return SPAN * (level - 1.0), SPAN * sd

    # --- looking ---------------------------------------------------------------------------------------------

    def _see(self, trials: Sequence[Trial]) -> None:
        if self.chain is None:
            return
        started = [t for t in trials if self.seen.get(t.id)]
        fresh = [t for t in trials if not self.seen.get(t.id)]
        if started:
            self._see_started(started)
        if fresh:
            self._see_fresh(fresh)

    def _see_started(self, trials: Sequence[Trial]) -> None:
        assert self.chain is not None
        look_N, value_N = self._stand(trials)
        mean_N = self._joined(trials)
        assert self.aimed is not None
        value_N = np.minimum(np.maximum(self._standing_for(look_N, mean_N, value_N) - self.aim, LOWEST), -1e-3)
        going_NL = _at(self.aimed.going_KYL, look_N, value_N)
        reach_NK = _at(np.moveaxis(self.aimed.reach_KKY, 1, 2), look_N, value_N)
        self._keep(trials, going_NL, reach_NK, mean_N)

    def _joined(self, trials: Sequence[Trial]) -> Floats:
        """Expected value at the end, by the trial's own curve and by what others say."""
        mean_N, variance_N = self._ends(trials)
        site_N, noise_N = self._divided(mean_N, variance_N)
        level_N, sd_N = self._levels(trials)
        own_N = 1.0 / noise_N
        others_N = 1.0 / np.maximum(sd_N, 0.1) ** 2
        return (own_N * site_N + others_N * level_N) / (own_N + others_N)

    def _standing_for(self, look_N: np.ndarray, mean_N: Floats, value_N: Floats) -> Floats:
        """The value from which the chain would expect that end."""
        assert self.chain is not None
        first_KY, _ = self.chain.end_KY
        found = np.array([np.interp(m, first_KY[k], GRID) for k, m in zip(look_N, mean_N, strict=True)])
        return np.minimum(np.clip(found, value_N - 1.0, value_N + 1.0), -1e-3)

    def _see_fresh(self, trials: Sequence[Trial]) -> None:
        assert self.chain is not None
        first_KY, variance_KY = self.chain.end_KY
        level_N, sd_N = self._levels(trials)
        told_N = np.sqrt(np.maximum(sd_N**2 - np.interp(level_N, first_KY[0], variance_KY[0]), 0.05 * sd_N**2))
        ends_NG = level_N[:, None] + told_N[:, None] * NODES
        assert self.aimed is not None
        values_NG = np.clip(np.interp(ends_NG, first_KY[0], GRID) - self.aim, LOWEST, -1e-3)
        look = np.zeros(len(NODES), dtype=np.int64)
        going_NL = np.empty((len(trials), len(PRICES)))
        reach_NK = np.empty((len(trials), len(self.steps)))
        reach_KYK = np.moveaxis(self.aimed.reach_KKY, 1, 2)
        for row, values_G in enumerate(values_NG):
            later_GL = np.maximum(_at(self.aimed.going_KYL, look, values_G), 0.0)
            going_NL[row] = WEIGHTS @ later_GL - self.steps[0] * PRICES
            reach_NK[row] = WEIGHTS @ _at(reach_KYK, look, values_G)
        self._keep(trials, going_NL, reach_NK, level_N)

    def _keep(self, trials: Sequence[Trial], going_NL: Floats, reach_NK: Floats, mean_N: Floats) -> None:
        assert self.focus is not None
        step_s_N = np.array([self.costs.step_s(t, self.units[t.id]) for t in trials])
        start_N = np.array([self.costs.start_s(t) for t in trials]) / step_s_N
        held_N = index(going_NL) / step_s_N
        rate_N = index(going_NL, start_N) / step_s_N if start_N.any() else held_N
        final_N = self.focus.back(self.sign * mean_N)
        for row, trial in enumerate(trials):
            self.of[trial.id] = Prospect(
                p=float(reach_NK[row, -1]),
                rate=float(rate_N[row]),
                held=float(held_N[row]),
                final=float(final_N[row]),
                ahead=np.maximum(np.array(self.steps) - trial.last_step, 0),
                reach=reach_NK[row],
                step_s=float(step_s_N[row]),
            )


def _at(table: Floats, look_N: np.ndarray, value_N: Floats) -> Floats:
    """A table [look, value, ...] read at looks and values, straight between the values of the grid."""
    place_N = (value_N - GRID[0]) / (GRID[1] - GRID[0])
    low_N = np.clip(place_N.astype(np.int64), 0, len(GRID) - 2)
    part_N = np.reshape(place_N - low_N, (-1, *(1,) * (table.ndim - 2)))
    below = table[look_N, low_N]
    return below + part_N * (table[look_N, low_N + 1] - below)
