"""Synchronous successive halving (Jamieson and Talwalkar, AISTATS 2016) and Hyperband (Li et al., JMLR 2018).

With K = floor(log_eta(R / r)), at most 4, bracket s of K..0 starts ceil((K + 1) / (s + 1) * eta**s) configurations,
which are compared at the levels r eta**(K - s), ..., r eta**(K - 1) and trained to R: at each level all are waited
for, and the best 1/eta go on. Hyperband opens brackets s = K, K-1, ..., 0 and around again; successive halving opens
s = K alone.

Slots serve the oldest bracket that has work; where all wait for stragglers, the next bracket is opened. The paper
leaves this to the implementation; it keeps the workers busy, as in Li et al., MLSys 2020, section 4.2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from foresail.core import events as ev
from foresail.core.plan import Plan, Verdict
from foresail.core.reason import Reason, Rule
from foresail.core.spec import StudySpec
from foresail.core.view import Trial, View
from foresail.core.words import Act, TrialId
from foresail.policies.policy import Rng

MOST_LEVELS = 4
"""At most so many comparisons in a bracket: with eta = 3 the first starts 81 configurations, as in the paper's
experiments (R = 81). Long runs would make it wait for hundreds."""
UNKNOWN_STEPS = 81
"""Steps of a trial where the study does not say."""


@dataclass
class Bracket:
    """One run of successive halving. `levels`: steps at which trials are compared, the last one is their end."""

    levels: tuple[int, ...]
    size: int
    eta: int
    level: int = 0
    wanted: dict[TrialId, None] = field(default_factory=dict)  # on the way to the level, or standing there
    arrived: dict[TrialId, float] = field(default_factory=dict)  # loss of those at the level
    known: int = 0  # trials that were given to it
    lost: dict[TrialId, int] = field(default_factory=dict)  # rank of those that do not go on, to be ended

    @property
    def step(self) -> int:
        return self.levels[self.level]

    def arrive(self, trial: TrialId, loss: float, *, closed: bool) -> bool:
        """The trial has done what it may. True if with it the level is complete, and the best have moved on."""
        self.arrived[trial] = loss
        return self.close(closed=closed)

    def close(self, *, closed: bool) -> bool:
        full = self.level > 0 or self.known >= self.size or closed
        if not full or not self.wanted or len(self.arrived) < len(self.wanted) or self.level + 1 >= len(self.levels):
            return False
        ranked = sorted(self.arrived, key=lambda trial: (self.arrived[trial], trial))
        keep = min(max(1, len(ranked) // self.eta), sum(loss < math.inf for loss in self.arrived.values()))
        self.lost.update({trial: rank for rank, trial in enumerate(ranked[keep:], start=keep + 1)})
        self.wanted = dict.fromkeys(ranked[:keep])
        self.arrived = {}
        self.level += 1
        return True


@dataclass
class Brackets:
    """Index: the brackets in the order of their opening, and of each trial its bracket."""

    plan: tuple[tuple[tuple[int, ...], int], ...]
    eta: int
    brackets: list[Bracket] = field(default_factory=list)
    of: dict[TrialId, Bracket] = field(default_factory=dict)
    closed: bool = False
    oldest: int = 0

    def give(self, trial: TrialId) -> None:
        """A new trial belongs to the first bracket that has room."""
        last = self.brackets[-1] if self.brackets else None
        if last is None or last.known >= last.size:
            levels, size = self.plan[len(self.brackets) % len(self.plan)]
            last = Bracket(levels, size, self.eta)
            self.brackets.append(last)
        last.known += 1
        last.wanted[trial] = None
        self.of[trial] = last

    def at_work(self) -> Iterator[Bracket]:
        for bracket in islice(self.brackets, self.oldest, None):
            if bracket.wanted or bracket.lost:
                yield bracket

    def forget(self, trial: TrialId) -> None:
        """The trial is over."""
        bracket = self.of.pop(trial)
        bracket.wanted.pop(trial, None)
        bracket.arrived.pop(trial, None)
        bracket.lost.pop(trial, None)
        while self.oldest < len(self.brackets) - 1 and not (
            self.brackets[self.oldest].wanted or self.brackets[self.oldest].lost
        ):
            self.oldest += 1


def brackets_of(max_steps: int, *, first: int, eta: int) -> tuple[tuple[tuple[int, ...], int], ...]:
    """(levels, configurations) of each bracket, the one with most configurations first.

    >>> brackets_of(81, first=1, eta=3)[0], brackets_of(81, first=1, eta=3)[-1]
    (((1, 3, 9, 27, 81), 81), ((81,), 5))
    """
    most = 0
    while most < MOST_LEVELS and first * eta ** (most + 1) <= max_steps:
        most += 1
    found = []
    for s in range(most, -1, -1):
        levels = tuple(first * eta**k for k in range(most - s, most))
        found.append(((*levels, max_steps), math.ceil((most + 1) / (s + 1) * eta**s)))
    return tuple(found)


@dataclass(frozen=True)
class Halving:
    """`first_rung`: steps to the first level; `eta`: one in so many goes on; `cycle`: all brackets, or the first."""

    eta: int = 3
    first_rung: int = 1
    cycle: bool = False

    def begin(self, spec: StudySpec) -> Brackets:
        plan = brackets_of(spec.max_steps or UNKNOWN_STEPS, first=self.first_rung, eta=self.eta)
        return Brackets(plan if self.cycle else plan[:1], self.eta)

    def observe(self, index: Brackets, view: View, event: ev.Event) -> bool:
        match event:
            case ev.PointReported(attempt=attempt):
                return self._reported(index, view, view.trial_of(attempt))
            case ev.TrialProposed(trial=trial):
                index.give(trial)
                index.closed |= view.spec.goal.trials == len(view.trials)  # no more will come
            case ev.SearchExhausted():
                index.closed = True
                return any(bracket.close(closed=True) for bracket in list(index.at_work()))
            case ev.TrialEnded(trial=trial) if trial in index.of:
                bracket = index.of[trial]
                index.forget(trial)
                return bracket.close(closed=index.closed)
        return False

    def _reported(self, index: Brackets, view: View, trial: Trial) -> bool:
        bracket = index.of.get(trial.id)
        if bracket is None or trial.id in bracket.arrived or trial.id not in bracket.wanted:
            return False
        if bracket.level + 1 == len(bracket.levels) or trial.last_step < bracket.step:
            return False  # trained to its end, or on its way
        value = trial.value_at(bracket.step)
        loss = math.inf if not math.isfinite(value) else -value if view.spec.goal.mode == "max" else value
        bracket.arrive(trial.id, loss, closed=index.closed)
        return True

    def decide(self, index: Brackets, view: View, rng: Rng) -> Plan:
        verdicts: list[Verdict] = []
        for bracket in index.at_work():
            verdicts += (self._end(trial, bracket) for trial in bracket.lost)
            verdicts += (self._wait(t, bracket) for t in bracket.arrived if view.trials[t].attempt is not None)
            verdicts += (self._run(view, t, bracket) for t in self._climbing(view, bracket, running=True))
        free = view.slots - sum(v.act is Act.RUN for v in verdicts)
        for bracket in index.at_work():
            starts = list(islice(self._climbing(view, bracket, running=False), max(0, free)))
            verdicts += (self._run(view, trial, bracket) for trial in starts)
            free -= len(starts)
        return Plan(tuple(verdicts), open=max(0, free))

    def _climbing(self, view: View, bracket: Bracket, *, running: bool) -> Iterator[TrialId]:
        for trial in bracket.wanted:
            if trial not in bracket.arrived and (view.trials[trial].attempt is not None) is running:
                yield trial

    def _run(self, view: View, trial: TrialId, bracket: Bracket) -> Verdict:
        reason = Reason(Rule.RUNG_CLIMBING, {"rung_step": bracket.step})
        return Verdict(trial, Act.RUN, reason, view.spec.resources.cores_per_trial, stage=bracket.level)

    def _wait(self, trial: TrialId, bracket: Bracket) -> Verdict:
        of = bracket.size if bracket.level == 0 else len(bracket.wanted)
        numbers: dict[str, float] = {"rung_step": bracket.step, "arrived": len(bracket.arrived), "of": of}
        return Verdict(trial, Act.WAIT, Reason(Rule.RUNG_FILLING, numbers), stage=bracket.level)

    def _end(self, trial: TrialId, bracket: Bracket) -> Verdict:
        numbers: dict[str, float] = {
            "rank": bracket.lost[trial],
            "of": len(bracket.lost) + len(bracket.wanted),
            "keep": len(bracket.wanted),
            "rung_step": bracket.levels[max(0, bracket.level - 1)],
        }
        return Verdict(trial, Act.END, Reason(Rule.RUNG_STOPPED, numbers))
