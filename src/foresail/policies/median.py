"""The median stopping rule (Golovin et al., Google Vizier, KDD 2017, section 3.2.2).

A trial is ended at step s when the best value that it has reported by s is strictly worse than the median, over the
trials that are over (trained to their end, or ended by this rule, as in Vizier) and have reported at s, of the running
averages of their values up to s.
"""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections.abc import Iterable
from dataclasses import dataclass, field

from foresail.core import events as ev
from foresail.core.plan import Plan, Verdict
from foresail.core.reason import Reason, Rule
from foresail.core.spec import StudySpec
from foresail.core.view import Trial, View
from foresail.core.words import Act, Status
from foresail.policies.fifo import in_order, unfilled
from foresail.policies.policy import Rng


@dataclass
class Averages:
    """Running averages of the trials that are over, sorted, at each step at which one of them has a point."""

    at: dict[int, list[float]] = field(default_factory=dict)
    steps: list[int] = field(default_factory=list)

    def add(self, trial: Trial) -> None:
        total = 0.0
        for count, (step, value) in enumerate(zip(trial.steps, trial.values, strict=True), start=1):
            total += value if math.isfinite(value) else 0.0
            if step not in self.at:
                self.at[step] = []
                insort(self.steps, step)
            insort(self.at[step], total / count)

    def median(self, step: int) -> tuple[float, int] | None:
        """Median at the latest known step up to `step`, and of how many trials."""
        upto = bisect_right(self.steps, step)
        if not upto:
            return None
        values = self.at[self.steps[upto - 1]]
        half = len(values) // 2
        middle = values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2
        return middle, len(values)


@dataclass(frozen=True)
class MedianStopping:
    """`min_trials`: trials that are over before anyone is judged; `grace_steps`: steps before a trial is judged."""

    min_trials: int = 5
    grace_steps: int = 1

    def begin(self, spec: StudySpec) -> Averages:
        return Averages()

    def observe(self, index: Averages, view: View, event: ev.Event) -> bool:
        if isinstance(event, ev.TrialEnded) and event.status in (Status.COMPLETED, Status.ENDED):
            index.add(view.trials[event.trial])
        return isinstance(event, ev.PointReported) and self._verdict(index, view, event) is not None

    def decide(self, index: Averages, view: View, rng: Rng) -> Plan:
        ends = tuple(self._ends(index, view))
        ended = {verdict.trial for verdict in ends}
        runs = in_order(view, lambda trial: Reason(Rule.FIRST_IN, {"order": trial}))
        return Plan((*ends, *(v for v in runs if v.trial not in ended)), open=unfilled(view))

    def _ends(self, index: Averages, view: View) -> Iterable[Verdict]:
        for attempt in view.attempts.values():
            verdict = self._judge(index, view, view.trials[attempt.trial])
            if verdict is not None:
                yield verdict

    def _verdict(self, index: Averages, view: View, event: ev.PointReported) -> Verdict | None:
        return self._judge(index, view, view.trial_of(event.attempt))

    def _judge(self, index: Averages, view: View, trial: Trial) -> Verdict | None:
        """END, if the rule says so at the trial's last step."""
        step, best = trial.last_step, trial.best_value
        if trial.ended is not None or step < self.grace_steps or best is None:
            return None
        median = index.median(step)
        if median is None or median[1] < self.min_trials:
            return None
        behind = best < median[0] if view.spec.goal.mode == "max" else best > median[0]
        if not behind or trial.last_step == trial.max_steps:
            return None
        numbers = {"value": best, "step": step, "median": median[0], "others": median[1]}
        return Verdict(trial.id, Act.END, Reason(Rule.BELOW_MEDIAN, numbers))
