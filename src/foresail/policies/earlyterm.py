"""Predictive termination (Domhan, Springenberg and Hutter, IJCAI 2015, section 4).

At every boundary of `every` steps a trial is ended if P(its value at the end beats the best of the study) < `bound`,
unless it holds the best itself. Trials start first in, first out. The paper's forecasts are of its own curve families
by MCMC; ours are of `foresail.curves`.
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
from foresail.policies.potential import Potential


@dataclass(frozen=True)
class EarlyTerm:
    """`bound`: the paper's delta. `every`: steps between two looks; None: a tenth of a trial."""

    bound: float = 0.05
    every: int | None = None

    def begin(self, spec: StudySpec) -> Potential:
        return Potential.begin(spec)

    def observe(self, index: Potential, view: View, event: ev.Event) -> bool:
        index.observe(view, event)
        return isinstance(event, ev.PointReported) and self._is_looked_at(view, view.trial_of(event.attempt))

    def decide(self, index: Potential, view: View, rng: Rng) -> Plan:
        ends = tuple(self._ends(index, view))
        ended = {verdict.trial for verdict in ends}
        runs = in_order(view, lambda trial: Reason(Rule.FIRST_IN, {"order": trial}))
        return Plan((*ends, *(v for v in runs if v.trial not in ended)), open=unfilled(view))

    def _is_looked_at(self, view: View, trial: Trial) -> bool:
        ahead = view.best is not None and view.best[0] == trial.id
        return trial.ended is None and bool(trial.values) and not ahead and at_boundary(trial, self.every)

    def _ends(self, index: Potential, view: View) -> Iterator[Verdict]:
        if view.best is None:
            return
        looked_at = [t for t in map(view.trial_of, view.attempts) if self._is_looked_at(view, t)]
        for trial, seen in index.foresee(looked_at, view.best[2]).items():
            if seen.ends_beyond < self.bound:
                numbers = {"p": seen.ends_beyond, "bound": self.bound, "step": view.trials[trial].last_step}
                yield Verdict(trial, Act.END, Reason(Rule.UNBEATABLE, numbers))
