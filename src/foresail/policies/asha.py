"""Asynchronous successive halving: Li et al., A System for Massively Parallel Hyperparameter Tuning, MLSys 2020.

Rungs stand at `first_rung * eta**k` steps. A trial that reaches a rung is compared with all that have reached it.
In the pausing kind (the paper's, algorithm 2), a free slot goes to the best trial, from the highest rung down, that is
in the top 1/eta of its rung and has not gone on yet; else to a new configuration. Who is not promoted waits, suspended,
and may be promoted later, when more have arrived. In the stopping kind (as in Ray Tune and Syne Tune), a trial goes on
if it is at or above the quantile 1 - 1/eta of its rung when it arrives, itself included, and is ended otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from foresail.core import events as ev
from foresail.core.plan import Plan, Verdict
from foresail.core.reason import Reason, Rule
from foresail.core.spec import StudySpec
from foresail.core.view import Trial, View
from foresail.core.words import Act, TrialId, trial_of
from foresail.policies.ladder import Ladder
from foresail.policies.policy import Rng


@dataclass(frozen=True)
class Asha:
    """`first_rung`: steps to the first rung; `eta`: one in so many goes on; `pause`: pausing or stopping kind."""

    eta: int = 3
    first_rung: int = 1
    pause: bool = True

    def begin(self, spec: StudySpec) -> Ladder:
        return Ladder(self.first_rung, self.eta)

    def observe(self, index: Ladder, view: View, event: ev.Event) -> bool:
        match event:
            case ev.PointReported(attempt=attempt):
                trial = view.trial_of(attempt)
                return trial.ended is None and index.arrive(trial, view.spec.goal.mode)
            case ev.Planned(verdicts=verdicts):
                for verdict in verdicts:
                    if verdict.act is Act.RUN:
                        index.go_on(verdict.trial, verdict.stage)
                        if view.trials[verdict.trial].attempt is None:
                            index.interrupted[verdict.trial] = None
            case ev.AttemptEnded(attempt=attempt):
                trial = view.trials[trial_of(attempt)]
                if trial.ended is None and not (self.pause and self._at_rung(index, trial)):
                    index.interrupted[trial.id] = None
            case ev.AttemptGranted(trial=number):
                index.interrupted.pop(number, None)
            case ev.TrialEnded(trial=number):
                index.interrupted.pop(number, None)
                if number in index.stage:
                    index.leave(number)
        return False

    def decide(self, index: Ladder, view: View, rng: Rng) -> Plan:
        return self.plan(index, view, everyone=idle_is_waste(view))

    def plan(self, index: Ladder, view: View, *, everyone: bool, admit: bool = True) -> Plan:
        """`everyone`: free slots may go to who is not in the top 1/eta. `admit`: new trials may be started."""
        live = [view.trials[a.trial] for a in view.attempts.values()]
        running = [t for t in live if t.ended is None]
        slots = view.slots - (len(live) - len(running))  # the others are being killed
        climbing: list[Trial] = []
        standing: list[Trial] = []
        for trial in running:
            (standing if self._at_rung(index, trial) else climbing).append(trial)
        verdicts = [self._climb(index, view, t) for t in climbing]
        owed = [view.trials[trial] for trial in islice(index.interrupted, max(0, slots - len(climbing)))]
        standing += (t for t in owed if self._at_rung(index, t))  # the stopping kind: not judged there yet
        verdicts += (self._climb(index, view, t) for t in owed if not self._at_rung(index, t))
        free = slots - len(verdicts)
        if self.pause:
            verdicts += self._promote(index, view, free, standing, everyone)
            verdicts += self._pause(index, standing, {v.trial for v in verdicts})
        else:
            verdicts += (self._go_or_end(index, view, t) for t in standing)
        if not admit:
            return Plan(tuple(verdicts))
        free = slots - sum(v.act is Act.RUN for v in verdicts)
        for waits in islice((t for t in view.waiting if t not in index.interrupted), max(0, free)):
            verdicts.append(self._climb(index, view, view.trials[waits]))
            free -= 1
        return Plan(tuple(verdicts), open=max(0, free))

    def _at_rung(self, index: Ladder, trial: Trial) -> bool:
        if trial.max_steps is not None and trial.last_step >= trial.max_steps:
            return False  # at its end: it leaves by itself
        return len(index.reached.get(trial.id, ())) > index.stage.get(trial.id, 0)

    def _run(self, view: View, trial: TrialId, rule: Rule, numbers: dict[str, float], stage: int) -> Verdict:
        return Verdict(trial, Act.RUN, Reason(rule, numbers), view.spec.resources.cores_per_trial, stage=stage)

    def _climb(self, index: Ladder, view: View, trial: Trial) -> Verdict:
        stage, last = index.stage.get(trial.id, 0), trial.verdict
        if last is not None and last.act is Act.RUN and last.stage == stage:
            return last  # nothing new: the reason for which it runs is the one for which it was promoted
        return self._run(view, trial.id, Rule.RUNG_CLIMBING, {"rung_step": index.rung(stage).step}, stage)

    def _promote(
        self, index: Ladder, view: View, free: int, standing: list[Trial], everyone: bool
    ) -> Iterator[Verdict]:
        """Free slots to the promotable, best first."""
        here = {t.id for t in standing}
        chosen: set[TrialId] = set()
        for number, trial in index.promotable(everyone=everyone):
            if len(chosen) >= free:
                return
            if trial in index.interrupted:
                continue  # it has its slot already
            if trial not in chosen and (view.trials[trial].attempt is None or trial in here):
                chosen.add(trial)
                yield self._run(view, trial, Rule.RUNG_PROMOTED, index.standing(trial, number), number + 1)

    def _pause(self, index: Ladder, standing: list[Trial], chosen: set[TrialId]) -> Iterator[Verdict]:
        for trial in standing:
            if trial.id not in chosen:
                reason = Reason(Rule.RUNG_PAUSED, index.standing(trial.id, len(index.reached[trial.id]) - 1))
                yield Verdict(trial.id, Act.WAIT, reason, stage=index.stage.get(trial.id, 0))

    def _go_or_end(self, index: Ladder, view: View, trial: Trial) -> Verdict:
        number = len(index.reached[trial.id]) - 1
        numbers = index.standing(trial.id, number)
        if (numbers["rank"] - 1) * index.eta <= numbers["of"] - 1:  # at or above the quantile 1 - 1/eta
            return self._run(view, trial.id, Rule.RUNG_PROMOTED, numbers, number + 1)
        return Verdict(trial.id, Act.END, Reason(Rule.RUNG_STOPPED, numbers))


def idle_is_waste(view: View) -> bool:
    """No configuration is left to be started, and the study goes on until a target or a moment: train who waits."""
    goal = view.spec.goal
    ends_otherwise = goal.target is not None or goal.within_s is not None or goal.device_s is not None
    return ends_otherwise and not view.waiting and not view.can_open
