"""Asynchronous successive halving: Li et al., A System for Massively Parallel Hyperparameter Tuning, MLSys 2020.

Rungs stand at `first_rung * eta**k` steps. A trial that reaches a rung is compared with all that have reached it.
In the pausing kind (the paper's, algorithm 2), a free slot goes to the best trial, from the highest rung down, that is
in the top 1/eta of its rung and has not gone on yet; else to a new configuration. Who is not promoted waits, suspended,
and may be promoted later, when more have arrived. In the stopping kind (as in Ray Tune), a trial goes on if it is in
the top 1/eta when it arrives, and is ended otherwise.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from foresail.core import events as ev
from foresail.core.goal import Mode
from foresail.core.plan import Plan, Verdict
from foresail.core.reason import Reason, Rule
from foresail.core.spec import StudySpec
from foresail.core.view import Trial, View
from foresail.core.words import Act, TrialId, trial_of
from foresail.policies.policy import Rng


@dataclass
class Rung:
    """All that have arrived, and those of them that have not gone on, as (loss, trial): smaller is better."""

    step: int
    arrived: list[tuple[float, TrialId]] = field(default_factory=list)
    stay: list[tuple[float, TrialId]] = field(default_factory=list)

    def rank(self, entry: tuple[float, TrialId]) -> int:
        """From 1."""
        return bisect_left(self.arrived, entry) + 1


@dataclass
class Ladder:
    """Index of ASHA: the rungs, and for each trial that has not ended the rung up to which it may run (`stage`).

    `interrupted`: trials that may run on and hold nothing: their attempt was lost, or the slot that they were promoted
    to is not free yet. They come before anyone else.
    """

    first: int
    eta: int
    rungs: list[Rung] = field(default_factory=list)
    stage: dict[TrialId, int] = field(default_factory=dict)
    reached: dict[TrialId, list[tuple[float, TrialId]]] = field(default_factory=dict)
    interrupted: dict[TrialId, None] = field(default_factory=dict)

    def rung(self, number: int) -> Rung:
        while len(self.rungs) <= number:
            self.rungs.append(Rung(self.first * self.eta ** len(self.rungs)))
        return self.rungs[number]

    def arrive(self, trial: Trial, mode: Mode) -> bool:
        """Enter the trial at every rung that it has reached. True if it stands at the rung that it may run to."""
        entries = self.reached.setdefault(trial.id, [])
        while trial.last_step >= self.rung(len(entries)).step:
            rung = self.rung(len(entries))
            value = trial.best_until(rung.step, mode)
            loss = math.inf if value is None else -value if mode == "max" else value
            entry = (loss, trial.id)
            entries.append(entry)
            insort(rung.arrived, entry)
            if len(entries) > self.stage.get(trial.id, 0):
                insort(rung.stay, entry)
        return len(entries) > self.stage.get(trial.id, 0)

    def go_on(self, trial: TrialId, stage: int) -> None:
        """The trial may run to rung `stage`: it has left those below."""
        entries = self.reached.get(trial, [])
        for number in range(self.stage.get(trial, 0), min(stage, len(entries))):
            stay = self.rungs[number].stay
            at = bisect_left(stay, entries[number])
            if at < len(stay) and stay[at] == entries[number]:
                del stay[at]
        self.stage[trial] = stage

    def leave(self, trial: TrialId) -> None:
        """The trial has ended: it can go no further, but still counts where it arrived."""
        self.go_on(trial, len(self.reached.get(trial, [])))
        del self.stage[trial]
        self.reached.pop(trial, None)

    def promotable(self, *, everyone: bool = False) -> Iterator[tuple[int, TrialId]]:
        """(rung, trial) in the order of promotion; `everyone`: after them, also who is not in the top 1/eta."""
        for top in (True, False)[: 1 + everyone]:
            for number in range(len(self.rungs) - 1, -1, -1):
                keep = len(self.rungs[number].arrived) // self.eta
                for entry in self.rungs[number].stay:
                    if top and self.rungs[number].rank(entry) > keep:
                        break
                    if len(self.reached[entry[1]]) == number + 1:  # else it has passed this rung without a halt
                        yield number, entry[1]

    def standing(self, trial: TrialId, number: int) -> dict[str, float]:
        """Numbers of a reason."""
        rung, entry = self.rungs[number], self.reached[trial][number]
        of = len(rung.arrived)
        return {"rank": rung.rank(entry), "of": of, "keep": of // self.eta, "rung_step": rung.step}


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
                        if verdict.trial in view.suspended:
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
        live = [view.trials[a.trial] for a in view.attempts.values()]
        running = [t for t in live if t.ended is None]
        slots = view.slots - (len(live) - len(running))  # the others are being killed
        own = [*running, *map(view.trial, index.interrupted)]
        climbing = [t for t in own if not self._at_rung(index, t)]
        standing = [t for t in own if self._at_rung(index, t)]
        verdicts = [self._climb(index, view, t) for t in climbing if t.attempt is not None]
        verdicts += islice(
            (self._climb(index, view, t) for t in climbing if t.attempt is None), max(0, slots - len(verdicts))
        )
        if self.pause:
            verdicts += self._promote(index, view, slots - len(climbing), standing)
            verdicts += self._pause(index, standing, {v.trial for v in verdicts})
        else:
            verdicts += (self._go_or_end(index, view, t) for t in standing)
        free = max(0, slots - sum(v.act is Act.RUN for v in verdicts))
        starts = [self._climb(index, view, view.trials[t]) for t in islice(view.waiting, free)]
        return Plan((*verdicts, *starts), open=free - len(starts))

    def _at_rung(self, index: Ladder, trial: Trial) -> bool:
        if trial.max_steps is not None and trial.last_step >= trial.max_steps:
            return False  # at its end: it leaves by itself
        return len(index.reached.get(trial.id, ())) > index.stage.get(trial.id, 0)

    def _run(self, view: View, trial: TrialId, rule: Rule, numbers: dict[str, float], stage: int) -> Verdict:
        return Verdict(trial, Act.RUN, Reason(rule, numbers), view.spec.resources.cores_per_trial, stage=stage)

    def _climb(self, index: Ladder, view: View, trial: Trial) -> Verdict:
        stage = index.stage.get(trial.id, 0)
        return self._run(view, trial.id, Rule.RUNG_CLIMBING, {"rung_step": index.rung(stage).step}, stage)

    def _promote(self, index: Ladder, view: View, free: int, standing: list[Trial]) -> Iterator[Verdict]:
        """Free slots to the promotable; where no configuration is left to be started, to the best of all that wait."""
        here = {t.id for t in standing}
        chosen = 0
        for number, trial in index.promotable(everyone=_idle_is_waste(view)):
            if chosen >= free:
                return
            if trial not in index.interrupted and (view.trials[trial].attempt is None or trial in here):
                chosen += 1
                yield self._run(view, trial, Rule.RUNG_PROMOTED, index.standing(trial, number), number + 1)

    def _pause(self, index: Ladder, standing: list[Trial], chosen: set[TrialId]) -> Iterator[Verdict]:
        for trial in standing:
            if trial.id not in chosen:
                reason = Reason(Rule.RUNG_PAUSED, index.standing(trial.id, len(index.reached[trial.id]) - 1))
                yield Verdict(trial.id, Act.WAIT, reason, stage=index.stage.get(trial.id, 0))

    def _go_or_end(self, index: Ladder, view: View, trial: Trial) -> Verdict:
        number = len(index.reached[trial.id]) - 1
        numbers = index.standing(trial.id, number)
        if numbers["rank"] <= max(1, numbers["keep"]):
            return self._run(view, trial.id, Rule.RUNG_PROMOTED, numbers, number + 1)
        return Verdict(trial.id, Act.END, Reason(Rule.RUNG_STOPPED, numbers))


def _idle_is_waste(view: View) -> bool:
    """No configuration is left to be started, and the study goes on until a target or a moment: train who waits."""
    goal = view.spec.goal
    ends_otherwise = goal.target is not None or goal.within_s is not None or goal.device_s is not None
    return ends_otherwise and not view.waiting and not view.can_open
