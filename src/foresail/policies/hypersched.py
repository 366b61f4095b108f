"""HyperSched (Liaw et al., SoCC 2019): ASHA under a deadline.

A new trial is admitted only while the time that is left exceeds min(eta * duration of the longest trial, R * usual
seconds of a step), R the steps of a whole trial; after that, slots go to the best of those that were paused, whatever
their rank, so that what is left of the time deepens the leaders. Without a deadline it is ASHA.

The paper also gives the leaders more devices near the end. That needs a curve of speeds and trials that may hold more
than `cores_per_trial`; here every trial holds the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from foresail.core import events as ev
from foresail.core.plan import Plan
from foresail.core.spec import StudySpec
from foresail.core.view import View
from foresail.policies.asha import Asha, idle_is_waste
from foresail.policies.horizon import UNKNOWN
from foresail.policies.ladder import Ladder
from foresail.policies.policy import Rng


@dataclass
class Paced:
    """Index: the ladder of ASHA, and how long training takes."""

    ladder: Ladder
    longest_s: float = 0.0
    steps: int = 0
    seconds: float = 0.0
    max_steps: int = 0


@dataclass(frozen=True)
class HyperSched:
    """`first_rung`, `eta` as in ASHA."""

    eta: int = 3
    first_rung: int = 1

    @property
    def _asha(self) -> Asha:
        return Asha(self.eta, self.first_rung)

    def begin(self, spec: StudySpec) -> Paced:
        return Paced(self._asha.begin(spec), max_steps=spec.max_steps or 0)

    def observe(self, index: Paced, view: View, event: ev.Event) -> bool:
        if isinstance(event, ev.PointReported):
            trial = view.trial_of(event.attempt)
            index.longest_s = max(index.longest_s, trial.seconds)
            index.steps, index.seconds = index.steps + 1, index.seconds + event.seconds
            index.max_steps = max(index.max_steps, trial.max_steps or UNKNOWN * trial.last_step)
        return self._asha.observe(index.ladder, view, event)

    def decide(self, index: Paced, view: View, rng: Rng) -> Plan:
        admit = self._admits(index, view)
        return self._asha.plan(index.ladder, view, everyone=not admit or idle_is_waste(view), admit=admit)

    def _admits(self, index: Paced, view: View) -> bool:
        if view.left_s is None or not index.steps:
            return True
        return view.left_s > self.needed_s(index)

    def needed_s(self, index: Paced) -> float:
        """Seconds that a new trial needs to be worth its start."""
        return min(self.eta * index.longest_s, index.max_steps * index.seconds / max(1, index.steps))
