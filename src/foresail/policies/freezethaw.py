"""Freeze-thaw (Swersky, Snoek and Adams, arXiv 1406.3896, 2014), with expected improvement per second.

Slots go to the trials with the highest expected improvement over the study's best for each second that they still
need. Who is not among them is frozen: suspended, with its curve in the model, and thawed when its turn comes. New
configurations compete by what the model expects of their hyperparameters. The paper picks by entropy search and charges
every epoch alike; the gain here is that of the trial's whole remaining run, its cost the seconds of that run.

A trial is looked at again every `every` steps: what it has done by then counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from foresail.core import events as ev
from foresail.core.plan import Plan, Verdict
from foresail.core.reason import Reason, Rule
from foresail.core.spec import StudySpec
from foresail.core.view import Trial, View
from foresail.core.words import Act
from foresail.policies.boundary import at_boundary
from foresail.policies.fifo import in_order, unfilled
from foresail.policies.horizon import horizon_of
from foresail.policies.policy import Rng
from foresail.policies.potential import Potential


@dataclass(frozen=True)
class Offer:
    """What a trial would gain, and in how many seconds."""

    trial: Trial
    gain: float
    cost_s: float

    @property
    def rate(self) -> tuple[float, bool, int]:
        """Best first; of equal ones who runs, then who came first."""
        return (-self.gain / max(self.cost_s, 1e-9), self.trial.attempt is None, self.trial.id)


@dataclass(frozen=True)
class FreezeThaw:
    """`fresh`: new configurations that are weighed at a time; `every`: steps of a turn, None: a tenth of a trial."""

    fresh: int = 3
    every: int | None = None

    def begin(self, spec: StudySpec) -> Potential:
        return Potential.begin(spec)

    def observe(self, index: Potential, view: View, event: ev.Event) -> bool:
        index.observe(view, event)
        return isinstance(event, ev.PointReported) and at_boundary(view.trial_of(event.attempt), self.every)

    def decide(self, index: Potential, view: View, rng: Rng) -> Plan:
        if view.best is None:
            return Plan(tuple(in_order(view, lambda t: Reason(Rule.FIRST_IN, {"order": t}))), open=unfilled(view))
        missing = max(0, self.fresh - len(view.waiting))
        held = [view.trials[a.trial] for a in view.attempts.values() if view.trials[a.trial].ended is None]
        inside = [t for t in held if not at_boundary(t, self.every)]  # a turn is not cut
        others = [t for t in held if at_boundary(t, self.every)]
        others += (view.trials[t] for t in (*view.suspended, *view.waiting))
        offers = sorted(self._offers(index, view, [*inside, *others]), key=lambda offer: offer.rate)
        first = [o for o in offers if o.trial in inside]
        chosen = [*first, *(o for o in offers if o.trial not in inside)][: view.slots]
        verdicts = [*self._chosen(view, chosen), *self._frozen(view, [o for o in offers if o not in chosen])]
        return Plan(tuple(verdicts), open=missing)

    def _offers(self, index: Potential, view: View, trials: Sequence[Trial]) -> Iterator[Offer]:
        assert view.best is not None
        usual_s = _usual_step_s(view)
        for number, seen in index.foresee(trials, view.best[2]).items():
            trial = view.trials[number]
            left = max(0, horizon_of(trial) - trial.last_step)
            yield Offer(trial, seen.gain, left * (trial.step_s or usual_s))

    def _chosen(self, view: View, offers: Sequence[Offer]) -> Iterator[Verdict]:
        cores = view.spec.resources.cores_per_trial
        for offer in offers:
            yield Verdict(offer.trial.id, Act.RUN, _reason(Rule.IMPROVES_FASTEST, offer, view), cores)

    def _frozen(self, view: View, offers: Sequence[Offer]) -> Iterator[Verdict]:
        for offer in offers:
            if offer.trial.attempt is not None:
                yield Verdict(offer.trial.id, Act.WAIT, _reason(Rule.IMPROVES_SLOWER, offer, view))


def _reason(rule: Rule, offer: Offer, view: View) -> Reason:
    return Reason(rule, {"gain": offer.gain, "cost_s": offer.cost_s, "slots": view.slots})


def _usual_step_s(view: View) -> float:
    """Seconds of a step of the trials that run: what a new one is thought to need."""
    known = [s for s in (view.trials[a.trial].step_s for a in view.attempts.values()) if s is not None]
    return sum(known) / len(known) if known else 1.0
