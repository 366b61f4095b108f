"""Cores that no trial needs go to trials that run: `cores_per_trial="auto"` around any policy.

The policy says which trials run; each has a core for that (or `cores_per_trial` of them). Cores that are left are
shared out as far as a further one makes steps faster, which the study's own steps tell (`perf/speeds.py`). Before that
is known, every other trial starts on one core, so that widths can be compared; all of these steps are training steps.
More trials than cores: each has one, which trains most in a second, since no speed-up is better than linear. A width
changes between two steps, by suspending and resuming: the global batch stays, and with it the learning curve. It is
changed only where that pays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from foresail.core import events as ev
from foresail.core.plan import Plan, Verdict
from foresail.core.spec import StudySpec
from foresail.core.view import Trial, View
from foresail.core.words import Act, TrialId
from foresail.policies.costs import Costs
from foresail.policies.horizon import horizon_of
from foresail.policies.policy import AnyPolicy, Rng
from foresail.policies.widths import MARGIN
from foresail.space import Space

LEAST_EXPONENT = 0.1
"""Of the speed-up, under which a further core is not worth having."""
KNOWN_SD = 0.15
"""Deviation of that exponent from which on it is known."""
TELLING_REPORTS = 4
"""Reports at one width before a trial is given another."""


@dataclass
class Widths:
    """The policy's own index, and what the study's steps cost."""

    inner: Any
    space: Space
    costs: Costs = field(default_factory=Costs)


@dataclass(frozen=True)
class Elastic:
    """`policy` with widths of its trials."""

    policy: AnyPolicy

    def begin(self, spec: StudySpec) -> Widths:
        return Widths(self.policy.begin(spec), Space.from_dict(spec.space))

    def observe(self, index: Widths, view: View, event: ev.Event) -> bool:
        if isinstance(event, ev.PointReported):
            index.costs.observe(view, event, index.space.to_unit(view.trial_of(event.attempt).config))
        return self.policy.observe(index.inner, view, event)

    def decide(self, index: Widths, view: View, rng: Rng) -> Plan:
        plan = self.policy.decide(index.inner, view, rng)
        runs = [verdict for verdict in plan.verdicts if verdict.act is Act.RUN]
        widths = self._widths(index, view, [view.trials[v.trial] for v in runs], plan.open if view.can_open else 0)
        size = view.spec.resources.cores_per_trial
        return Plan(tuple(_at(verdict, widths, size) for verdict in plan.verdicts), plan.open)

    def _widths(self, index: Widths, view: View, trials: Sequence[Trial], new: int) -> dict[TrialId, int]:
        """Units of `cores_per_trial` of each trial that is to run. What others hold that are leaving is not shared out
        before they left."""
        mine = {trial.id for trial in trials}
        size = view.spec.resources.cores_per_trial
        others = sum(-(-len(a.cores) // size) for a in view.attempts.values() if a.trial not in mine)
        free = len(view.cores) // size - others - new
        share, more = divmod(max(free, len(trials)), max(1, len(trials)))
        fair = {trial.id: share + (place < more) for place, trial in enumerate(trials)}
        wanted = {trial.id: self._wanted(index, view, trial, fair[trial.id]) for trial in trials}
        return wanted if sum(wanted.values()) <= free else {n: min(wanted[n], fair[n]) for n in wanted}

    def _wanted(self, index: Widths, view: View, trial: Trial, share: int) -> int:
        """What it would have if it need not give anything back."""
        exponent, sd = index.costs.speeds.speedup
        best = share if exponent > LEAST_EXPONENT else 1
        if trial.attempt is None:
            return 1 if sd > KNOWN_SD and trial.attempts == 0 and trial.id % 2 else best
        cores = len(view.attempts[trial.attempt].cores)
        now = max(1, cores // view.spec.resources.cores_per_trial)
        own = index.costs.speeds.own.get(trial.id, {}).get(cores)
        if own is None or own.reports < TELLING_REPORTS or not self._pays(index, trial, (now, best), exponent):
            return now
        return best

    def _pays(self, index: Widths, trial: Trial, widths: tuple[int, int], exponent: float) -> bool:
        """Whether another width saves more than its restart; without a checkpoint, all is to be trained again."""
        now, then = widths
        left_s = (trial.step_s or 0.0) * max(0, horizon_of(trial) - trial.last_step)
        saved_s = left_s * (1.0 - (now / then) ** exponent)
        restart_s = index.costs.start_s(trial) if trial.checkpoint else index.costs.start.mean_s + trial.seconds
        return bool(saved_s > MARGIN * restart_s)


def _at(verdict: Verdict, widths: dict[TrialId, int], size: int) -> Verdict:
    if verdict.trial not in widths:
        return verdict
    return msgspec.structs.replace(verdict, cores=size * widths[verdict.trial])
