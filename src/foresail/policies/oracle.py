"""The bound that nobody can beat: a policy that has seen the curves.

It opens every configuration that the search will give it, and trains those first that reach the target soonest; with no
target, those that get furthest in the time that is left. It cannot be asked for in a study: only a replay has curves to
show it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from foresail.core import events as ev
from foresail.core.goal import Goal
from foresail.core.plan import Plan, Verdict
from foresail.core.reason import Reason, Rule
from foresail.core.spec import StudySpec
from foresail.core.view import View
from foresail.core.words import Act, Config, TrialId
from foresail.policies.policy import Rng

MOST_OPEN = 100_000
"""Configurations that it asks for at once; the search has fewer."""


class Known(Protocol):
    """A curve: values and the seconds up to each."""

    @property
    def values(self) -> Sequence[float]: ...
    @property
    def seconds(self) -> Sequence[float]: ...


@dataclass
class Order:
    """Index: (seconds to the target or to the best value, how bad that value is) of each trial that has not ended."""

    worth: dict[TrialId, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Oracle:
    """`record`: the curve of a configuration."""

    record: Callable[[Config], Known]

    def begin(self, spec: StudySpec) -> Order:
        return Order()

    def observe(self, index: Order, view: View, event: ev.Event) -> bool:
        match event:
            case ev.TrialProposed(trial=trial, config=config):
                index.worth[trial] = _worth(self.record(config), view.spec.goal)
            case ev.TrialEnded(trial=trial):
                index.worth.pop(trial, None)
        return False

    def decide(self, index: Order, view: View, rng: Rng) -> Plan:
        if view.can_open:
            return Plan(tuple(self._run(index, view, a.trial) for a in view.attempts.values()), open=MOST_OPEN)
        first = sorted(index.worth, key=lambda t: (view.trials[t].attempt is None, *index.worth[t], t))
        return Plan(tuple(self._run(index, view, trial) for trial in first[: view.slots]))

    def _run(self, index: Order, view: View, trial: TrialId) -> Verdict:
        loss, needed_s = index.worth.get(trial, (0.0, 0.0))
        value = -loss if view.spec.goal.mode == "max" else loss
        done_s = view.trials[trial].seconds
        numbers = {"value": value if math.isfinite(value) else 0.0, "left_s": max(0.0, needed_s - done_s)}
        return Verdict(trial, Act.RUN, Reason(Rule.ORACLE_KNOWS, numbers), view.spec.resources.cores_per_trial)


def _worth(curve: Known, goal: Goal) -> tuple[float, float]:
    """(loss, seconds): of the target where it is reached, else of the best value that there is time for."""
    best, best_s = None, 0.0
    for value, seconds in zip(curve.values, curve.seconds, strict=True):
        if goal.within_s is not None and seconds > goal.within_s:
            break
        if goal.better(value, best):
            best, best_s = value, seconds
        if goal.reached(value):
            assert goal.target is not None
            best = goal.target
            break
    if best is None:
        return math.inf, math.inf
    return (-best if goal.mode == "max" else best), best_s
