"""Time and space together: what the next second on each trial is worth, and who gets it.

Each trial, started or not, has an index (`prospects.py`): the highest rate, in targets a second, that going on with it
can have, its start or restart paid. Slots go to the highest. Who runs is weighed again at its next look and not before;
who loses its slot is suspended, and comes back when its index is the highest again. New configurations wait in a pool,
and start in the order of what the study says of their hyperparameters.

* Near a deadline, an index counts by the share of its chance that is left in time.
* While less than three trials have come to their end, one slot follows the trial that is most likely to get there: how
  curves end is known from curves that ended.
* A free slot follows the ranks of asynchronous successive halving instead with probability `floor`, so that a wrong law
  of progress cannot keep a trial waiting for ever.
* A trial is ended only when the upper bound of its chance is under `hopeless`; the law has Student's tails.
* With `widest` above 1, cores go where the next unit is worth most (`widths.py`).

Classes are read off the plan: promising runs for its own curve, opportunistic is new or waits within a tenth of the
best index, poor is the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from foresail.core import events as ev
from foresail.core.plan import Plan, Verdict
from foresail.core.reason import Reason, Rule
from foresail.core.spec import StudySpec
from foresail.core.view import Trial, View
from foresail.core.words import Act, Label, TrialId
from foresail.policies.policy import Rng
from foresail.policies.prospects import Prospect, Prospects
from foresail.policies.ranks import promoted
from foresail.policies.widths import Scaling, pays, spread

MODEL_FREE = ("random", "sobol", "grid")
"""Searches whose proposals do not get better by waiting: many may wait in the pool."""
ENDED_ENOUGH = 3
"""Trials that have come to their end before nobody needs to go ahead."""
POOR = 0.1
"""Share of the best index under which a trial is poor."""
HALF_SEEN = 0.4
"""Share of its steps before which no trial is ended (docs/curves.md: early lower tails do not transfer)."""


@dataclass(frozen=True)
class Choice:
    """A trial that may have a slot, with its index, and `rule`, why."""

    trial: Trial
    rate: float
    rule: Rule


@dataclass(frozen=True)
class Hybrid:
    """`pool`: configurations that wait to be started; `floor`: share of grants that follow ranks; `stick`: by
    how much another index must be higher to take a slot; `hopeless`: chance under which a trial is ended; `widest`:
    units of `cores_per_trial` that a trial may have; `exponent`: of the speed-up, before it is known."""

    pool: int = 64
    floor: float = 0.05
    stick: float = 1.1
    hopeless: float = 1e-4
    widest: int = 1
    exponent: float = 0.8

    def begin(self, spec: StudySpec) -> Prospects:
        return Prospects.begin(spec, Scaling(self.exponent))

    def observe(self, index: Prospects, view: View, event: ev.Event) -> bool:
        return index.observe(view, event)

    def decide(self, index: Prospects, view: View, rng: Rng) -> Plan:
        held = [view.trials[a.trial] for a in view.attempts.values() if view.trials[a.trial].ended is None]
        leaving = [t for t in held if t.attempt is not None and view.attempts[t.attempt].ending]
        inside = [t for t in held if t not in leaving and not self._is_due(index, t)]
        missing = self._wanted(view) - len(view.waiting)
        if missing > 0 and view.can_open:
            return Plan(tuple(self._stay(index, view, t) for t in held if t not in leaving), open=missing)
        due = [t for t in held if t not in leaving and t not in inside]
        over = [t for t in due if self._is_hopeless(index, t)]
        due = [t for t in due if t not in over]
        free = view.slots - len(inside) - len(leaving) - len(over)
        ranked = self._ranked(index, view, [*due, *(view.trials[n] for n in (*view.suspended, *view.waiting))])
        chosen = self._chosen(index, view, ranked, inside, due, max(0, free), rng)
        best = max((c.rate for c in ranked), default=0.0)
        other = next((c.rate for c in ranked if all(c.trial is not o.trial for o in chosen)), 0.0)
        verdicts = [
            *(self._stay(index, view, t) for t in inside),
            *self._granted(index, view, chosen, inside, leaving, other),
            *self._others(index, view, [t for t in due if all(t is not c.trial for c in chosen)], best),
            *(self._end(index, t) for t in over),
        ]
        return Plan(tuple(verdicts))

    # --- who is weighed --------------------------------------------------------------------------------------

    def _wanted(self, view: View) -> int:
        return self.pool if view.spec.search.name in MODEL_FREE else view.slots

    def _is_due(self, index: Prospects, trial: Trial) -> bool:
        """Whether a running trial stands at a look."""
        if trial.max_steps is not None and trial.last_step >= trial.max_steps:
            return False  # it leaves by itself
        return index.at_look(trial)

    def _is_hopeless(self, index: Prospects, trial: Trial) -> bool:
        seen = index.of.get(trial.id)
        grown = trial.max_steps is not None and trial.last_step >= HALF_SEEN * trial.max_steps
        return seen is not None and grown and index.aim == 0.0 and seen.p < self.hopeless

    def _ranked(self, index: Prospects, view: View, trials: Sequence[Trial]) -> list[Choice]:
        """All that may have a slot, the highest index first; of equal ones who came first."""
        found = []
        for trial in trials:
            rule = Rule.WORTH_MOST if trial.values else Rule.WORTH_A_LOOK
            found.append(Choice(trial, self._rate(index, view, trial), rule))
        return sorted(found, key=lambda c: (-c.rate, c.trial.id))

    def _rate(self, index: Prospects, view: View, trial: Trial) -> float:
        seen = index.of.get(trial.id)
        if seen is None:
            return 0.0
        rate = self.stick * seen.held if trial.attempt is not None else seen.rate
        left_s = view.left_s
        if left_s is None or left_s >= seen.longest_s or seen.p <= 0.0:
            return rate
        return rate * seen.within(left_s) / seen.p

    # --- who is chosen ---------------------------------------------------------------------------------------

    def _chosen(
        self,
        index: Prospects,
        view: View,
        ranked: Sequence[Choice],
        inside: Sequence[Trial],
        due: Sequence[Trial],
        free: int,
        rng: Rng,
    ) -> list[Choice]:
        """The leader, who the ranks say, and the highest indices."""
        first = [*self._leader(index, ranked, inside), *self._by_rank(index, view, due, free, rng)]
        chosen: dict[TrialId, Choice] = {}
        for choice in (*first, *ranked):
            if len(chosen) == free:
                break
            chosen.setdefault(choice.trial.id, choice)
        return list(chosen.values())

    def _leader(self, index: Prospects, ranked: Sequence[Choice], inside: Sequence[Trial]) -> Iterator[Choice]:
        if index.ended >= ENDED_ENOUGH:
            return

        def chance(trial: Trial) -> float:
            return index.of[trial.id].p if trial.values and trial.id in index.of else -1.0

        best = max(ranked, key=lambda c: (chance(c.trial), -c.trial.id), default=None)
        if best is not None and chance(best.trial) > max((chance(t) for t in inside), default=0.0):
            yield Choice(best.trial, best.rate, Rule.GOES_AHEAD)

    def _by_rank(self, index: Prospects, view: View, due: Sequence[Trial], free: int, rng: Rng) -> Iterator[Choice]:
        """Each free slot with the floor's chance: promoted by rank, else the next configuration in line."""
        if not self.floor or free <= 0:
            return
        able = [t.id for t in due] + list(view.suspended)
        line = iter(view.waiting)
        for _ in range(int((rng().random(free) < self.floor).sum())):
            number = promoted(index.seen, index.steps, able, index.sign)
            if number is None:
                number = next(line, None)
            else:
                able.remove(number)
            if number is not None:
                trial = view.trials[number]
                yield Choice(trial, self._rate(index, view, trial), Rule.RANK_FLOOR)

    # --- verdicts --------------------------------------------------------------------------------------------

    def _stay(self, index: Prospects, view: View, trial: Trial) -> Verdict:
        """Inside a turn: what it has, for the reason for which it has it."""
        if trial.verdict is not None and trial.verdict.act is Act.RUN:
            return trial.verdict
        choice = Choice(trial, self._rate(index, view, trial), Rule.WORTH_A_LOOK)
        return self._run(index, view, choice, view.spec.resources.cores_per_trial, 0.0)

    def _granted(
        self,
        index: Prospects,
        view: View,
        chosen: Sequence[Choice],
        inside: Sequence[Trial],
        leaving: Sequence[Trial],
        other: float,
    ) -> Iterator[Verdict]:
        size = view.spec.resources.cores_per_trial
        taken = sum(len(view.attempts[t.attempt].cores) for t in (*inside, *leaving) if t.attempt is not None)
        units = min(len(view.cores) // size, view.slots * self.widest) - -(-taken // size)
        widths = spread([c.rate for c in chosen], max(units, len(chosen)), index.scaling, widest=self.widest)
        for choice, width in zip(chosen, widths, strict=True):
            yield self._run(index, view, choice, size * self._width(index, view, choice.trial, width, size), other)

    def _width(self, index: Prospects, view: View, trial: Trial, width: int, size: int) -> int:
        """A trial that runs keeps its width unless the change pays."""
        if trial.attempt is None:
            return width
        now = max(1, len(view.attempts[trial.attempt].cores) // size)
        seen = index.of.get(trial.id)
        dwell_s, restart_s = (seen.longest_s if seen else 0.0), index.costs.restart.mean_s
        if width > now and not pays(now, width, index.scaling, dwell_s=dwell_s, restart_s=restart_s):
            return now
        return width

    def _run(self, index: Prospects, view: View, choice: Choice, cores: int, other: float) -> Verdict:
        numbers = {**self._numbers(index, choice.trial, choice.rate), "other": 3600.0 * other, "cores": cores}
        label = Label.PROMISING if choice.trial.values else Label.OPPORTUNISTIC
        return Verdict(choice.trial.id, Act.RUN, Reason(choice.rule, numbers), cores, label)

    def _others(self, index: Prospects, view: View, trials: Sequence[Trial], best: float) -> Iterator[Verdict]:
        for trial in trials:
            rate = self._rate(index, view, trial)
            label = Label.POOR if rate < POOR * best else Label.OPPORTUNISTIC
            numbers = {**self._numbers(index, trial, rate), "other": 3600.0 * best}
            yield Verdict(trial.id, Act.WAIT, Reason(Rule.WORTH_LESS, numbers), label=label)

    def _end(self, index: Prospects, trial: Trial) -> Verdict:
        numbers = {**self._numbers(index, trial, 0.0), "hopeless": self.hopeless}
        return Verdict(trial.id, Act.END, Reason(Rule.WORTH_NOTHING, numbers), label=Label.POOR)

    def _numbers(self, index: Prospects, trial: Trial, rate: float) -> dict[str, float]:
        """What a decision on a trial rests on; rates by the hour."""
        seen: Prospect | None = index.of.get(trial.id)
        if seen is None:
            return {"p": 0.0, "final": 0.0, "aim": 0.0, "expected_s": 0.0, "rate": 0.0}
        aim = index.aim_value
        return {"p": seen.p, "final": seen.final, "aim": aim, "expected_s": seen.expected_s, "rate": 3600.0 * rate}
