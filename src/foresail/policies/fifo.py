"""First in, first out: every trial is trained to its end. The floor that every other policy is measured from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice

from foresail.core.events import Event
from foresail.core.plan import Plan, Verdict
from foresail.core.reason import Reason, Rule
from foresail.core.spec import StudySpec
from foresail.core.view import View
from foresail.core.words import Act, TrialId
from foresail.policies.policy import Rng


@dataclass(frozen=True)
class Fifo:
    """Random search, or grid search, depending on who proposes; `rule` says which order it is."""

    rule: Rule = Rule.FIRST_IN

    def begin(self, spec: StudySpec) -> None:
        return None

    def observe(self, index: None, view: View, event: Event) -> bool:
        return False

    def decide(self, index: None, view: View, rng: Rng) -> Plan:
        return Plan(tuple(in_order(view, lambda trial: Reason(self.rule, {"order": trial}))), open=unfilled(view))


def in_order(view: View, reason: Callable[[TrialId], Reason]) -> Iterator[Verdict]:
    """RUN verdicts for all that runs, then for what was interrupted, then for what waits, as far as slots are free."""
    cores = view.spec.resources.cores_per_trial
    running = [a.trial for a in view.attempts.values()]
    idle = islice(chain(view.suspended, view.waiting), max(0, view.slots - len(running)))
    for trial in chain(running, idle):
        if view.trials[trial].ended is None:
            yield Verdict(trial, Act.RUN, reason(trial), cores)


def unfilled(view: View) -> int:
    """Slots for which there is no trial yet."""
    return max(0, view.slots - len(view.attempts) - len(view.suspended) - len(view.waiting))
