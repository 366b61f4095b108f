"""Of every trial that may still run, started or not: what is foreseen of it and what its next second is worth.

An index, folded from the log. A trial is looked at again at each of the chain's looks (`chain.py`); all of them are
when the study has grown by a quarter or the lens must change. What is foreseen of a trial joins its own moves with
what trials of similar hyperparameters have made of theirs, by a Gaussian process (`curves/neighbours.py`); of a
configuration that has not been started only the latter is known, and it is worth what first looks have yielded.

Letters: N trials, K looks, L prices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from foresail.core import events as ev
from foresail.core.reason import Rule
from foresail.core.spec import StudySpec
from foresail.core.view import Trial, View
from foresail.core.words import Status, TrialId
from foresail.curves.neighbours import USELESS, Neighbours, fit_neighbours
from foresail.policies.chain import LOWEST, NEAREST, PRICES, PRIOR, Chain, Floats, index, looks, read
from foresail.policies.costs import Costs
from foresail.policies.focus import Focus, Starts
from foresail.policies.hedge import Hedge
from foresail.policies.horizon import horizon_of
from foresail.policies.widths import Scaling
from foresail.space import Space

EXPLORED = 3
"""Trials that must have come to a look before it is known how curves get there."""
REFIT = 1.25
"""All is fitted again when the study has so many times the points of the last fit: its cost stays a constant share."""
SCALE = 3.0
"""Gifts are so many times wider than what the Gaussian process expects of its values."""
STEP = 0.2
"""What beats the best so far must be so much nearer to the target, in units of the lens."""


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
    def longest_s(self) -> float:
        """Seconds of training to its end."""
        return float(self.ahead[-1]) * self.step_s

    @property
    def turn_s(self) -> float:
        """Seconds of training to its next look."""
        coming = self.ahead[self.ahead > 0.0]
        return float(coming[0]) * self.step_s if len(coming) else 0.0

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
    scaling: Scaling
    hedge: Hedge = field(default_factory=Hedge)
    ahead: TrialId | None = None
    costs: Costs = field(default_factory=Costs)
    starts: Starts = field(default_factory=Starts)
    focus: Focus | None = None
    steps: list[int] = field(default_factory=list)
    chain: Chain | None = None
    yields: float = 1.0
    aim: float = 0.0
    aimed: Chain | None = None
    neighbours: Neighbours | None = None
    shown: dict[TrialId, Floats] = field(default_factory=dict)
    seen: dict[TrialId, list[float]] = field(default_factory=dict)
    over: dict[TrialId, int] = field(default_factory=dict)
    stands: dict[TrialId, int] = field(default_factory=dict)
    speeds: dict[TrialId, tuple[int, float]] = field(default_factory=dict)
    units: list[Sequence[float]] = field(default_factory=list)
    of: dict[TrialId, Prospect] = field(default_factory=dict)
    sign: float = 1.0
    points: int = 0
    fitted: int = 0
    known: int = 0
    passed_K: list[int] = field(default_factory=list)
    table: Floats = field(default_factory=lambda: np.zeros((4, 64)))

    @classmethod
    def begin(cls, spec: StudySpec, scaling: Scaling) -> Prospects:
        end = spec.max_steps or 4
        sign = 1.0 if spec.goal.mode == "max" else -1.0
        steps = looks(end).tolist()
        return cls(Space.from_dict(spec.space), end, scaling, steps=steps, passed_K=[0] * len(steps), sign=sign)

    def observe(self, view: View, event: ev.Event) -> bool:
        """True: a trial has come to a look."""
        match event:
            case ev.TrialProposed(trial=number, config=config):
                self.units.append(self.space.to_unit(config))
                if number >= self.table.shape[1]:
                    self.table = np.concatenate([self.table, np.zeros((4, number + 1))], axis=1)
                if self.chain is not None:
                    self._see([view.trials[number]])
            case ev.PointReported(attempt=attempt, metrics=metrics):
                if view.spec.goal.metric in metrics:
                    return self._point(view, view.trial_of(attempt), event)
            case ev.TrialEnded(trial=number, status=status):
                self.of.pop(number, None)
                self.stands.pop(number, None)
                if status is Status.COMPLETED:
                    self._over(view.trials[number])
        return False

    def _point(self, view: View, trial: Trial, event: ev.PointReported) -> bool:
        self.points += 1
        self.costs.observe(view, event, self.units[trial.id])
        self._scale(view, event)
        self._credit(view, trial, event.seconds)
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

    def _credit(self, view: View, trial: Trial, seconds: float) -> None:
        """To whom let it run."""
        ahead = None if view.best is None else view.best[0]
        by_rank = trial.verdict is not None and trial.verdict.reason.rule is Rule.RANK_FLOOR
        self.hedge.trained(seconds, by_rank=by_rank, leads=ahead == trial.id != self.ahead and self.ahead is not None)
        self.ahead = ahead

    def _scale(self, view: View, event: ev.PointReported) -> None:
        """The first report of an attempt at another width than the trial's last tells how speed grows with width."""
        attempt = view.attempts[event.attempt]
        if attempt.previous != attempt.resume_step or event.seconds <= 0.0:
            return
        now = len(attempt.cores), event.seconds / max(1, event.step - attempt.resume_step)
        before = self.speeds.get(attempt.trial)
        if before is not None and before[0] != now[0]:
            self.scaling.add(now[0] / before[0], before[1] / now[1])
        self.speeds[attempt.trial] = now

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
            self.passed_K[len(values)] += 1
            best = trial.best_until(self.steps[len(values)], view.spec.goal.mode)
            values.append(math.nan if best is None else best)
        if len(values) > before:
            self.stands[trial.id] = trial.last_step
        return len(values) > before

    def _over(self, trial: Trial) -> None:
        """A trial has come to its own end: enter it, and the best that it got to, on its way to the next look."""
        values, end = self.seen.setdefault(trial.id, []), trial.last_step
        if trial.best_value is None:
            return
        if len(values) < len(self.steps) and (not values or end > self.steps[len(values) - 1]):
            self.passed_K[len(values)] += 1
            values.append(trial.best_value)
        self.over[trial.id] = len(values) - 1

    def is_ahead(self, number: TrialId) -> bool:
        """Whether less than `EXPLORED` trials have gone on from where it stands."""
        passed = len(self.seen.get(number, ()))
        return 0 < passed < len(self.steps) and number in self.of and self.passed_K[passed] < EXPLORED

    def rates(self, number_N: NDArray[np.int64], *, held: int, stick: float, left_s: float | None) -> Floats:
        """Indices of trials, the first `held` of which hold a slot: these count `stick` times. Near a deadline an
        index counts by the share of its chance that is left in time."""
        rate_N: Floats = self.table[0, number_N]
        rate_N[:held] = stick * self.table[1, number_N[:held]]
        if left_s is not None:
            for n in np.flatnonzero((self.table[2, number_N] > left_s) & (rate_N > 0.0)):
                seen = self.of[TrialId(int(number_N[n]))]
                rate_N[n] *= seen.within(left_s) / max(seen.p, 1e-300)
        return rate_N

    def at_look(self, trial: Trial) -> bool:
        """Whether the trial has just come to a look, or past one where it reports more rarely."""
        return trial.last_step == self.stands.get(trial.id)

    @property
    def aim_value(self) -> float:
        """The aim in the metric's own units."""
        return 0.0 if self.focus is None else float(self.focus.back(self.sign * self.aim))

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
            self.passed_K = [0] * len(self.steps)
            self.over.clear()
            for trial in view.trials:
                self._arrive(view, trial)
                if trial.ended is Status.COMPLETED:
                    self._over(trial)
        self.focus, self.fitted = focus, self.points
        if focus is None:
            return
        started = [n for n in self.seen if self.seen[n]]
        values_NK, over_NK = np.full((2, len(started), len(self.steps)), np.nan)
        for row, number in enumerate(started):
            values_NK[row, : len(self.seen[number])] = self.seen[number]
            over_NK[row, : len(self.seen[number])] = 0.0
            if number in self.over:
                over_NK[row, self.over[number]] = 1.0
        values_NK = np.clip(self.sign * focus.of(values_NK), LOWEST, 0.0)
        self.chain = Chain.fit(np.array(self.steps), values_NK, over_NK)
        self._show(started, self.chain.moves(values_NK))
        self._compare(view, started)
        self.aim, self.aimed = self._aim(view, started)
        self.yields = self._yields(started, values_NK[:, 0])
        self._see([t for t in view.trials if t.ended is None])

    def _yields(self, started: Sequence[TrialId], first_N: Floats) -> float:
        """What first looks have been worth, over what they were thought to be worth: ratio of the indices."""
        assert self.aimed is not None
        tables, seen_N = self.aimed.tables, np.isfinite(first_N)
        moves_NK = np.array([self.shown[n][:1] for n in started])
        zero_N, rho_N = np.zeros(len(started)), np.full(len(started), self.aimed.rho)
        gift_N = self.aimed.gifts(moves_NK, zero_N, rho_N)
        state = (
            np.ones(len(started), dtype=np.int64),
            np.minimum(np.nan_to_num(first_N, nan=LOWEST) - self.aim, NEAREST),
            gift_N,
        )
        later_NL = np.maximum(read(tables.going, *state), 0.0) * seen_N[:, None]
        thought_L = read(tables.going, np.zeros(1, dtype=np.int64), np.zeros(1), np.zeros(1))[0]
        found_L = later_NL.sum(axis=0) - len(started) * self.steps[0] * PRICES
        found, thought = (
            index(((PRIOR * thought_L + found_L) / (PRIOR + len(started)))[None])[0],
            index(thought_L[None])[0],
        )
        return float(np.clip(found / max(thought, 1e-12), 0.02, 5.0))

    def _show(self, started: Sequence[TrialId], moves_NK: Floats) -> None:
        """The moves of each trial."""
        self.shown = dict(zip(started, moves_NK, strict=True))

    def _aim(self, view: View, started: Sequence[TrialId]) -> tuple[float, Chain]:
        """The target; while nobody is expected to get there, what the best is expected to get to."""
        assert self.chain is not None
        best = max((self._level(view.trials[n].best_value) for n in started), default=LOWEST) + STEP
        alive = [view.trials[n] for n in started if view.trials[n].ended is None]
        if alive:
            best = max(best, float(read(self.chain.tables.end, *self._states(alive)).max()))
        aim = min(0.0, best)
        return aim, self.chain.aimed(aim)

    def _compare(self, view: View, started: Sequence[TrialId]) -> None:
        """Fit the Gaussian process to what each started trial's own moves say of its gift."""
        assert self.chain is not None
        self.known, self.neighbours = len(view.trials), None
        if len(started) < 3:
            return
        rho = self.chain.rho
        mean, noise = np.zeros(len(view.trials)), np.full(len(view.trials), 10.0 * USELESS)
        for number in started:
            moves = self.shown[number][np.isfinite(self.shown[number])]
            if not len(moves):
                continue
            mean[number], count = float(moves.mean()) / math.sqrt(rho) / SCALE, len(moves)
            noise[number] = (1.0 - rho) / rho / count / SCALE**2
        self.neighbours = fit_neighbours(np.array(self.units), mean, noise)

    def _levels(self, trials: Sequence[Trial]) -> tuple[Floats, Floats]:
        """What the others say of each trial's gift: mean and variance, as it shows in moves."""
        assert self.chain is not None
        rho, at = self.chain.rho, np.array([t.id for t in trials])
        if self.neighbours is None:
            return np.zeros(len(at)), np.full(len(at), rho)
        level, sd = np.empty(len(at)), np.empty(len(at))
        old = at < self.known
        level[old], sd[old] = self.neighbours.level[at[old]], self.neighbours.level_sd[at[old]]
        if not old.all():
            level[~old], sd[~old] = self.neighbours.predict(np.array([self.units[n] for n in at[~old]]))
        return SCALE * math.sqrt(rho) * level, rho * np.clip(SCALE * sd, 0.3, 1.0) ** 2

    def _states(self, trials: Sequence[Trial]) -> tuple[np.ndarray, Floats, Floats]:
        """Look, value and gift of trials that have started; the gift by their own moves and by what others say."""
        assert self.chain is not None
        look_N = np.array([len(self.seen.get(t.id, ())) for t in trials], dtype=np.int64)
        value_N = np.array([min(self._level(t.best_value), NEAREST) for t in trials])
        level_N, variance_N = self._levels(trials)
        nothing = np.full(len(self.steps), np.nan)
        moves_NK = np.array([self.shown.get(t.id, nothing) for t in trials])
        return look_N, value_N, self.chain.gifts(moves_NK, level_N, variance_N)

    # --- looking ---------------------------------------------------------------------------------------------

    def _see(self, trials: Sequence[Trial]) -> None:
        if self.chain is None or self.aimed is None or not trials:
            return
        self._update(trials)
        look_N, value_N, gift_N = self._states(trials)
        final_N = read(self.chain.tables.end, look_N, value_N, gift_N)
        state, tables = (look_N, np.minimum(value_N - self.aim, NEAREST), gift_N), self.aimed.tables
        going_NL = read(tables.going, *state)
        self._keep(trials, going_NL, read(tables.reach, *state), final_N, np.where(look_N > 0, 1.0, self.yields))

    def _update(self, trials: Sequence[Trial]) -> None:
        """Moves that have come since the last fit."""
        assert self.chain is not None
        assert self.focus is not None
        for trial in trials:
            looked, known = self.seen.get(trial.id, []), self.shown.get(trial.id)
            if looked and (known is None or not np.isfinite(known[len(looked) - 1])):
                values = np.full((1, len(self.steps)), np.nan)
                values[0, : len(looked)] = looked
                self.shown[trial.id] = self.chain.moves(np.clip(self.sign * self.focus.of(values), LOWEST, 0.0))[0]

    def _keep(
        self, trials: Sequence[Trial], going_NL: Floats, reach_NK: Floats, mean_N: Floats, yields_N: Floats
    ) -> None:
        assert self.focus is not None
        step_s_N = np.array([self.costs.step_s(t, self.units[t.id]) for t in trials])
        start_N = np.array([self.costs.start_s(t) for t in trials]) / step_s_N
        held_N = yields_N * index(going_NL) / step_s_N
        rate_N = yields_N * index(going_NL, start_N) / step_s_N if start_N.any() else held_N
        final_N = self.focus.back(self.sign * mean_N)
        for row, trial in enumerate(trials):
            seen = self.of[trial.id] = Prospect(
                p=float(reach_NK[row, -1]),
                rate=float(rate_N[row]),
                held=float(held_N[row]),
                final=float(final_N[row]),
                ahead=np.maximum(np.array(self.steps) - trial.last_step, 0),
                reach=reach_NK[row],
                step_s=float(step_s_N[row]),
            )
            self.table[:, trial.id] = seen.rate, seen.held, seen.longest_s, seen.p if trial.values else -1.0
