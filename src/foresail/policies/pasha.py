"""PASHA (Bohdal et al., ICLR 2023): ASHA whose highest rung rises only while the ranking there is not yet settled.

It begins with two rungs. When a trial arrives at the highest one, the trials there are ranked by their values there and
by their values a rung below; if the two rankings disagree, trials may be promoted one rung further. The comparison is
soft: at each place of the ranking a trial counts as right if its value is within epsilon of who stands there (section
4.1). Epsilon is the noise of the curves: the 90 % point of the distances, at the last common step, of pairs of curves
that cross back and forth (section 4.2, `percentile`).

Once nothing is left to be started, slots that would be idle train the best to their ends, the paper's last phase.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from foresail.core import events as ev
from foresail.core.plan import Plan
from foresail.core.spec import StudySpec
from foresail.core.view import Trial, View
from foresail.policies.asha import Asha
from foresail.policies.ladder import Ladder
from foresail.policies.policy import Rng

MOST_CURVES = 30
"""Trials at the top rung that are compared pair by pair, best first: the ranking that matters is among them."""


@dataclass(frozen=True)
class Pasha:
    """`percentile`: of the distances that count as noise."""

    eta: int = 3
    first_rung: int = 1
    percentile: float = 0.9

    def begin(self, spec: StudySpec) -> Ladder:
        return Ladder(self.first_rung, self.eta, top=1)

    def observe(self, index: Ladder, view: View, event: ev.Event) -> bool:
        due = self._asha.observe(index, view, event)
        if isinstance(event, ev.PointReported) and index.top is not None:
            entries = index.reached.get(view.attempts[event.attempt].trial, ())
            arrived = len(entries) == index.top + 1 and view.trial_of(event.attempt).last_step == event.step
            if arrived and due and not self._is_settled(index, view, index.top):
                index.top += 1
        return due

    def decide(self, index: Ladder, view: View, rng: Rng) -> Plan:
        return self._asha.decide(index, view, rng)

    @property
    def _asha(self) -> Asha:
        return Asha(self.eta, self.first_rung)

    def _is_settled(self, index: Ladder, view: View, top: int) -> bool:
        """Whether the ranking at the rung below foretells the one at the top."""
        trials = [view.trials[trial] for loss, trial in index.rungs[top].arrived if loss < math.inf][:MOST_CURVES]
        if len(trials) < 2:
            return True
        below = index.rungs[top - 1].step
        sign = -1.0 if view.spec.goal.mode == "max" else 1.0
        early = [sign * trial.value_at(below) for trial in trials]
        return softly_equal(early, noise(trials, index.rungs[top].step, self.percentile))


def softly_equal(losses: Sequence[float], epsilon: float) -> bool:
    """Whether trials, given in the order of one ranking, rank the same by `losses`, up to `epsilon` at each place.

    >>> softly_equal([0.1, 0.3, 0.29], 0.0), softly_equal([0.1, 0.3, 0.29], 0.02)
    (False, True)
    """
    return all(abs(own - there) <= epsilon for own, there in zip(losses, sorted(losses), strict=True))


def noise(trials: Sequence[Trial], upto: int, percentile: float) -> float:
    """The distance below which an order of two curves means nothing; 0 where no two cross back and forth."""
    found = sorted(d for a, b in combinations(trials, 2) for d in _distance_if_crossing(a, b, upto))
    return found[min(len(found) - 1, math.ceil(percentile * len(found)) - 1)] if found else 0.0


def _distance_if_crossing(a: Trial, b: Trial, upto: int) -> Iterator[float]:
    gaps = [v - b.value_at(s) for s, v in zip(a.steps, a.values, strict=False) if s <= min(upto, b.last_step)]
    signs = [gap > 0 for gap in gaps if gap != 0 and math.isfinite(gap)]
    turns = sum(one != other for one, other in pairwise(signs))
    if turns >= 2:
        yield abs(gaps[-1])
