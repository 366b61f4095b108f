"""The bandit rule of TuPAQ (Sparks et al., SoCC 2015, section 3.3): action elimination with a slack.

At every boundary of `every` steps a trial goes on only while its best value, better by the share `slack` of itself,
would be ahead of the best of the study; else it is ended. Trials start first in, first out. The paper states the rule
for accuracies; with a metric where lower is better, or that may be negative, the slack is a share of the magnitude.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from foresail.core import events as ev
from foresail.core.plan import Plan, Verdict
from foresail.core.reason import Reason, Rule
from foresail.core.spec import StudySpec
from foresail.core.view import Trial, View
from foresail.core.words import Act
from foresail.policies.boundary import at_boundary
from foresail.policies.fifo import in_order, unfilled
from foresail.policies.policy import Rng


@dataclass(frozen=True)
class Bandit:
    """`slack`: epsilon of the paper, which uses 0.5. `every`: steps between two looks; None: a tenth of a trial."""

    slack: float = 0.5
    every: int | None = None

    def begin(self, spec: StudySpec) -> None:
        return None

    def observe(self, index: None, view: View, event: ev.Event) -> bool:
        return isinstance(event, ev.PointReported) and self._is_behind(view, view.trial_of(event.attempt))

    def decide(self, index: None, view: View, rng: Rng) -> Plan:
        ends = tuple(self._ends(view))
        ended = {verdict.trial for verdict in ends}
        runs = in_order(view, lambda trial: Reason(Rule.FIRST_IN, {"order": trial}))
        return Plan((*ends, *(v for v in runs if v.trial not in ended)), open=unfilled(view))

    def _ends(self, view: View) -> Iterator[Verdict]:
        for attempt in view.attempts.values():
            trial = view.trials[attempt.trial]
            if trial.ended is None and self._is_behind(view, trial):
                numbers = {
                    "value": trial.best_value or 0.0,
                    "step": trial.last_step,
                    "best": view.best[2] if view.best else 0.0,
                    "slack": self.slack,
                }
                yield Verdict(trial.id, Act.END, Reason(Rule.BANDIT_BEHIND, numbers))

    def _is_behind(self, view: View, trial: Trial) -> bool:
        if trial.best_value is None or view.best is None or not at_boundary(trial, self.every):
            return False
        sign = 1.0 if view.spec.goal.mode == "max" else -1.0
        return sign * trial.best_value + self.slack * abs(trial.best_value) < sign * view.best[2]
