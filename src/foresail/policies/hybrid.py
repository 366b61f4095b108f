"""Time and space together: what the next second on each trial is worth, and who gets it.

Each trial, started or not, has an index (`prospects.py`): the highest rate, in targets a second, that going on with it
can have, its start or restart paid. Slots go to the highest. Who runs is weighed again at its next look and not before;
who loses its slot is suspended, and comes back when its index is the highest again. New configurations wait in a pool,
and start in the order of what the study says of their hyperparameters.

* Near a deadline, an index counts by the share of its chance that is left in time.
* While less than three trials have come to their end, one slot follows the trial that is most likely to get there: how
  curves end is known from curves that ended.
* A free slot follows the ranks of asynchronous successive halving instead with probability `floor`, which moves to
  what has been right in this study (`hedge.py`), so that a wrong law of progress cannot keep a trial waiting for ever.
* A trial is ended only when the upper bound of its chance is under `hopeless`; the law has Student's tails.
* With `widest` above 1, cores go where the next unit is worth most (`widths.py`).

Classes are read off the plan: promising runs for its own curve, opportunistic is new or waits within a tenth of the
best index, poor is the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from foresail.core import events as ev
from foresail.core.plan import Plan, Verdict
from foresail.core.reason import Reason, Rule
from foresail.core.spec import StudySpec
from foresail.core.view import Trial, View
from foresail.core.words import Act, Label, TrialId
from foresail.policies.policy import Rng
from foresail.policies.prospects import Prospect, Prospects
from foresail.policies.ranks import promoted
from foresail.policies.widths import Scaling, Seat, spread

MODEL_FREE = ("random", "sobol", "grid")
"""Searches whose proposals do not get better by waiting: many may wait in the pool."""
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
    """`pool`: configurations that wait to be started; `floor`: share of grants that follow ranks to begin with
    (`hedge.py`); `stick`: by how much another index must be higher to take a slot; `hopeless`: chance under which a
    trial is ended; `widest`: units of `cores_per_trial` that a trial may have; `exponent`: of the speed-up, before it
    is known."""

    pool: int = 64
    floor: float = 0.25
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
            stay = [self._stay(index, view, t, self._units(view, t)) for t in held if t not in leaving]
            return Plan(tuple(stay), open=missing)
        due = [t for t in held if t not in leaving and t not in inside]
        over = [t for t in due if self._is_hopeless(index, t)]
        due = [t for t in due if t not in over]
        free = max(0, view.slots - len(inside) - len(leaving) - len(over))
        ranked = self._ranked(index, view, due)
        first = self._first(index, view, due, inside, free, rng)
        runs = self._shared_out(index, view, inside, leaving, first, ranked)
        best = max((c.rate for c in ranked), default=0.0)
        other = next((c.rate for c in ranked if c.trial.id not in runs), 0.0)
        verdicts = [
            *(self._stay(index, view, t, runs[t.id][1]) for t in inside),
            *(self._run(index, view, c, width, other) for c, width in runs.values() if c.trial not in inside),
            *self._others(index, view, [t for t in due if t.id not in runs], best),
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

    def _ranked(self, index: Prospects, view: View, due: Sequence[Trial]) -> list[Choice]:
        """Those of the highest index that may have a slot, of equal ones who came first: as many as could matter."""
        number_N = np.array([*(t.id for t in due), *view.suspended, *view.waiting], dtype=np.int64)
        rate_N = index.rates(number_N, held=len(due), stick=self.stick, left_s=view.left_s)
        first = np.lexsort((number_N, -rate_N))[: view.slots + 1]
        return [self._choice(view.trials[number_N[n]], float(rate_N[n])) for n in first]

    def _choice(self, trial: Trial, rate: float) -> Choice:
        return Choice(trial, rate, Rule.WORTH_MOST if trial.values else Rule.WORTH_A_LOOK)

    def _rate(self, index: Prospects, view: View, trial: Trial) -> float:
        held = trial.attempt is not None
        return float(index.rates(np.array([trial.id]), held=int(held), stick=self.stick, left_s=view.left_s)[0])

    # --- who is chosen ---------------------------------------------------------------------------------------

    def _first(
        self, index: Prospects, view: View, due: Sequence[Trial], inside: Sequence[Trial], free: int, rng: Rng
    ) -> list[Choice]:
        """Who gets a free slot whatever its index: who is owed one, who goes ahead, who the ranks say."""
        owed = self._owed(index, view) if self.widest > 1 else ()
        ahead, by_rank = self._leader(index, view, due, inside), self._by_rank(index, view, due, free, rng)
        return list({c.trial.id: c for c in (*owed, *ahead, *by_rank)}.values())[:free]

    def _owed(self, index: Prospects, view: View) -> Iterator[Choice]:
        """Trials that have left to come back at another width."""
        for trial in (view.trials[n] for n in view.suspended):
            if trial.verdict is not None and trial.verdict.act is Act.RUN:
                yield Choice(trial, self._rate(index, view, trial), trial.verdict.reason.rule)

    def _leader(self, index: Prospects, view: View, due: Sequence[Trial], inside: Sequence[Trial]) -> Iterator[Choice]:
        """The likeliest goes where hardly anybody has been: how curves go on there is known from those that went."""
        able = [*(t.id for t in inside), *(t.id for t in due), *view.suspended]
        best = able[int(np.argmax(index.table[3, able]))] if able else None
        if best is not None and index.is_ahead(best) and all(best != t.id for t in inside):
            trial = view.trials[best]
            yield Choice(trial, self._rate(index, view, trial), Rule.GOES_AHEAD)

    def _by_rank(self, index: Prospects, view: View, due: Sequence[Trial], free: int, rng: Rng) -> Iterator[Choice]:
        """Each free slot with the chance of the floor: promoted by rank, else the next configuration in line, else who
        has come farthest."""
        if not self.floor or free <= 0:
            return
        able = [t.id for t in due] + list(view.suspended)
        line = iter(view.waiting)
        for _ in range(int((rng().random(free) < index.hedge.share(self.floor)).sum())):
            number = promoted(index.seen, index.steps, able, index.sign)
            if number is None:
                number = next(line, None)
            if number is None:
                number = promoted(index.seen, index.steps, able, index.sign, everyone=True)
            if number in able:
                able.remove(number)
            if number is not None:
                trial = view.trials[number]
                yield Choice(trial, self._rate(index, view, trial), Rule.RANK_FLOOR)

    def _shared_out(
        self,
        index: Prospects,
        view: View,
        inside: Sequence[Trial],
        leaving: Sequence[Trial],
        first: Sequence[Choice],
        ranked: Sequence[Choice],
    ) -> dict[TrialId, tuple[Choice, int]]:
        """Units of everybody who runs: who is inside a turn keeps what it has and may get more."""
        size = view.spec.resources.cores_per_trial
        units = min(len(view.cores) // size, view.slots * self.widest)
        units -= sum(max(self._units(view, t), self._planned(view, t)) for t in leaving)
        choices = {t.id: self._choice(t, self._rate(index, view, t)) for t in inside}
        taken = {*choices, *(c.trial.id for c in first)}
        choices |= {c.trial.id: c for c in (*first, *(c for c in ranked if c.trial.id not in taken))}
        firm = len(inside) + len(first)
        seats = [
            self._seat(index, view, c, int(place < firm), place < len(inside))
            for place, c in enumerate(choices.values())
        ]
        restart_s, most = index.costs.restart.mean_s, view.slots - len(leaving)
        given = spread(seats, units, index.scaling, widest=self.widest, most=most, restart_s=restart_s)
        return {n: (c, width) for (n, c), width in zip(choices.items(), given, strict=True) if width}

    def _seat(self, index: Prospects, view: View, choice: Choice, least: int, inside: bool) -> Seat:
        seen = index.of.get(choice.trial.id)
        now = self._units(view, choice.trial)
        least = now if inside else least
        if self.widest == 1 or seen is None:
            return Seat(choice.rate, 0.0, now, least)
        p = seen.p if index.aim == 0.0 else 0.0  # of a nearer aim it says nothing of what is needed
        return Seat(choice.rate, p, now, least, seen.turn_s)

    def _units(self, view: View, trial: Trial) -> int:
        """What it holds."""
        size = view.spec.resources.cores_per_trial
        return 0 if trial.attempt is None else -(-len(view.attempts[trial.attempt].cores) // size)

    def _planned(self, view: View, trial: Trial) -> int:
        """What it comes back for, if it leaves for that."""
        run = trial.ended is None and trial.verdict is not None and trial.verdict.act is Act.RUN
        return trial.verdict.cores // view.spec.resources.cores_per_trial if run and trial.verdict else 0

    # --- verdicts --------------------------------------------------------------------------------------------

    def _stay(self, index: Prospects, view: View, trial: Trial, width: int) -> Verdict:
        """Inside a turn: what it has, for the reason for which it has it, or more."""
        last = trial.verdict
        cores = view.spec.resources.cores_per_trial * width
        if last is not None and last.act is Act.RUN and last.cores == cores:
            return last
        return self._run(index, view, self._choice(trial, self._rate(index, view, trial)), width, 0.0)

    def _run(self, index: Prospects, view: View, choice: Choice, width: int, other: float) -> Verdict:
        cores = view.spec.resources.cores_per_trial * width
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
