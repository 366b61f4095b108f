"""POP: promising, opportunistic, poor (Rasley et al., HyperDrive, Middleware 2017).

For each trial, p = P(it reaches the target in the time that is left), by first passage, as far as the study has borne
such chances out (`Turns.trust`). With S slots and one slot a
trial, S_desired(p) counts the trials with at least p, S_deserved(p) = S p is the share of the machine that such a
confidence is entitled to, and the threshold is p* = argmax min(S_desired, S_deserved).

* Promising, p >= p*: dedicated slots, highest p first, as many as min(S_desired, S_deserved) allows.
* Opportunistic: the rest share the slots that are left in turns of a twentieth of a training. A turn goes to who has
  the highest chance per second that going on is expected to take, or to a new configuration where a first look is
  worth more (`_rate_of_new`). Of these looks a share `deep` goes on with who is best of the begun all the same: chances
  after a first look are the least reliable, and with nothing but first looks nothing is learnt of ends.
* Poor, foreseen to fail (chance < `poor`): ended when `poor_after` of its steps have been seen, unless it is the
  study's best; until then its turns are few, since its chance is small. Before that a small chance proves little:
  forecasts from short curves are too sure of their lower tail (docs/curves-model.md), so it is suspended, and comes
  back if its chance rises.

Without a target, p is the chance to beat the best value seen so far.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from foresail.core import events as ev
from foresail.core.plan import Plan, Verdict
from foresail.core.reason import Reason, Rule
from foresail.core.spec import StudySpec
from foresail.core.view import Attempt, Trial, View
from foresail.core.words import Act, Label, TrialId, trial_of
from foresail.policies.horizon import horizon_of
from foresail.policies.policy import Rng
from foresail.policies.potential import Foresight, Potential


def threshold(p: Sequence[float], slots: int) -> tuple[float, int]:
    """(p*, slots for the promising).

    >>> p = [.95, .90, .82, .70, .66, .55, .50, .42, .33, .30, .28, .20, .15, .12, .08, .06, .05, .03, .02, .01]
    >>> threshold(p, 15)
    (0.5, 7)
    """
    best, at = 0.0, 1.0
    for desired, confidence in enumerate(sorted(p, reverse=True), start=1):
        effective = min(float(desired), slots * confidence)
        if effective > best:
            best, at = effective, confidence
    return at, int(best + 1e-9)


MOST_WAITING = 16
"""So many suspended trials are looked at anew in each decision."""
PRIOR_CLAIMS = 1.0
"""Claims that must have failed before chances are believed half."""
LEAST_TRUST = 0.2
"""However many have failed: a target may be hard, and chances still tell trials apart."""


@dataclass(frozen=True)
class Look:
    """What the first decision on a trial was made on, and the seconds from there to the trial's end."""

    foreseen: float
    left_s: float

    def __lt__(self, other: Look) -> bool:
        """The best first: by chance per second of going on."""
        return self.foreseen * other.left_s > other.foreseen * self.left_s


@dataclass
class Turns:
    """Index of POP: what is foreseen, how many trials are over, and how right their chances were.

    `said`: of trials that may go on, the sum and the number of the chances that decisions were made on. `claimed`: of
    trials that are over without having reached the target, the sum of their mean chances. Were the forecasts
    calibrated, about that many of them would have reached it. `line`: suspended trials as (-chance, trial), by the
    chance that the last decision on them was made on; `place`: that of each. `looks`: what first looks have shown, the
    best first; `looked`: whose; `look_s`: what these took in all.
    """

    potential: Potential
    ended: int = 0
    said: dict[TrialId, tuple[float, int]] = field(default_factory=dict)
    claimed: float = 0.0
    line: list[tuple[float, TrialId]] = field(default_factory=list)
    place: dict[TrialId, float] = field(default_factory=dict)
    looks: list[Look] = field(default_factory=list)
    looked: set[TrialId] = field(default_factory=set)
    look_s: float = 0.0

    def hear(self, verdict: Verdict, trial: Trial) -> None:
        foreseen = verdict.reason.numbers.get("foreseen")
        if foreseen is None:
            return
        total, count = self.said.get(trial.id, (0.0, 0))
        self.said[trial.id] = (total + foreseen, count + 1)
        if trial.id not in self.looked and trial.step_s:
            self.looked.add(trial.id)
            self.look_s += trial.step_s * trial.last_step
            insort(self.looks, Look(foreseen, trial.step_s * max(1, horizon_of(trial) - trial.last_step)))

    def queue(self, trial: Trial) -> None:
        """The trial is suspended."""
        numbers = trial.verdict.reason.numbers if trial.verdict else {}
        self.place[trial.id] = -numbers.get("p", 1.0)
        insort(self.line, (self.place[trial.id], trial.id))

    def leave(self, trial: TrialId) -> None:
        """It is suspended no more."""
        if trial in self.place:
            del self.line[bisect_left(self.line, (self.place.pop(trial), trial))]

    def close(self, trial: TrialId) -> None:
        self.ended += 1
        total, count = self.said.pop(trial, (0.0, 1))
        self.claimed += total / count

    @property
    def trust(self) -> float:
        """By which a chance is multiplied: posterior mean of its true size, after so many claims that failed."""
        return max(LEAST_TRUST, PRIOR_CLAIMS / (PRIOR_CLAIMS + self.claimed))


@dataclass
class Turn:
    """Who has the slots that the promising leave: trials in order, and how many new ones are wanted."""

    given: dict[TrialId, None]
    chances: dict[TrialId, Chance]
    new: int = 0


@dataclass(frozen=True)
class Chance:
    """A trial's p, with what it follows from."""

    trial: Trial
    p: float
    foreseen: float
    ert_s: float
    left_s: float
    foresight: Foresight
    leads: bool

    @property
    def spent_s(self) -> float:
        """Expected seconds of going on, to the target or to the end."""
        return (self.p * self.ert_s if self.p > 0.0 else 0.0) + (1.0 - self.p) * self.left_s

    @property
    def rate(self) -> float:
        """Chance per second of going on."""
        return self.p / self.spent_s if self.spent_s > 0.0 else self.p


@dataclass(frozen=True)
class Pop:
    """`turn_frac`: length of a turn as a share of a trial's steps (at least `turn_steps` steps). `pause`: False for
    trainings that cannot save: nobody is asked to leave for another's sake, so who has started is trained until it is
    done or ended."""

    poor: float = 0.05
    poor_after: float = 0.4
    turn_frac: float = 0.05
    turn_steps: int = 1
    deep: float = 0.5
    pause: bool = True

    def begin(self, spec: StudySpec) -> Turns:
        return Turns(Potential.begin(spec))

    def observe(self, index: Turns, view: View, event: ev.Event) -> bool:
        index.potential.observe(view, event)
        match event:
            case ev.PointReported(attempt=attempt):
                return self._turn_is_over(view, view.attempts[attempt])
            case ev.Planned(verdicts=verdicts):
                for verdict in verdicts:
                    index.hear(verdict, view.trials[verdict.trial])
            case ev.AttemptEnded(attempt=attempt):
                if view.trials[trial_of(attempt)].ended is None:
                    index.queue(view.trials[trial_of(attempt)])
            case ev.AttemptGranted(trial=trial):
                index.leave(trial)
            case ev.TrialEnded(trial=trial):
                index.leave(trial)
                index.close(trial)
        return False

    def decide(self, index: Turns, view: View, rng: Rng) -> Plan:
        chances = self._chances(index, view)
        p_star, dedicated = threshold([c.p for c in chances], view.slots)
        ranked = sorted(chances, key=lambda c: (-c.p, c.trial.id))
        promising = [c for c in ranked if c.p >= p_star and (self.pause or c.trial.attempt is not None)][:dedicated]
        dedicated_to = {c.trial.id for c in promising}
        rest = [c for c in ranked if c.trial.id not in dedicated_to]
        turns = self._turns(index, view, rest, view.slots - len(promising), rng)
        verdicts = [
            *(self._promising(c, p_star, view) for c in promising),
            *(self._end(c) for c in rest if self._is_over(c)),
            *(self._turn_given(turns, trial, p_star, view) for trial in turns.given),
            *(self._turn_over(c, p_star) for c in rest if self._must_leave(c, turns)),
            *(self._unseen_must_leave(t) for t in self._unseen(view) if t not in turns.given),
        ]
        return Plan(tuple(verdicts), open=turns.new)

    # --- who has which chance --------------------------------------------------------------------------------

    def _chances(self, index: Turns, view: View) -> list[Chance]:
        """Of what runs, and of the best that wait: who was last in line stays there unless a place becomes free."""
        target = self._target(view)
        if target is None:
            return []
        running = (a.trial for a in view.attempts.values())
        waiting = (trial for _, trial in islice(index.line, MOST_WAITING))
        trials = [t for t in map(view.trial, chain(running, waiting)) if t.best_value is not None and t.ended is None]
        seen, trust = index.potential.foresee(trials, target), index.trust
        return [self._chance(view, t, seen[t.id], trust) for t in trials]

    def _target(self, view: View) -> float | None:
        target = view.spec.goal.target
        return target if target is not None else view.best and view.best[2]

    def _chance(self, view: View, trial: Trial, foresight: Foresight, trust: float) -> Chance:
        step_s = trial.step_s or 0.0
        steps = math.inf if view.left_s is None or step_s <= 0.0 else view.left_s // step_s
        foreseen = foresight.within(steps)
        ert_s = step_s * foresight.expected_steps(steps)
        left_s = step_s * max(0, horizon_of(trial) - trial.last_step)
        leads = view.best is not None and view.best[0] == trial.id
        return Chance(trial, trust * foreseen, foreseen, ert_s, left_s, foresight, leads)

    def _is_poor(self, chance: Chance) -> bool:
        return chance.foreseen < self.poor

    def _is_over(self, chance: Chance) -> bool:
        """To be ended. Never the study's best: if nothing better comes, it is what the user gets."""
        seen_frac = chance.foresight.seen_frac
        return self._is_poor(chance) and not chance.leads and self.poor_after <= seen_frac < 1.0

    # --- the turns -------------------------------------------------------------------------------------------

    def _turns(self, index: Turns, view: View, rest: list[Chance], shared: int, rng: Rng) -> Turn:
        """Who holds the slots that the promising leave."""
        rest = [c for c in rest if not self._is_over(c)]
        chances = {c.trial.id: c for c in rest}
        unseen, inside = self._still_in_turn(view, chances)
        room = max(0, shared - len(unseen))
        turn = Turn(given=dict.fromkeys([*unseen, *inside[:room]]), chances=chances)
        queue = [c for c in rest if c.trial.id not in turn.given]
        new = self._rate_of_new(index, view)
        waiting = (trial for _, trial in islice(index.line, MOST_WAITING))
        starts = [*(t for t in waiting if view.trials[t].best_value is None), *view.waiting]
        while len(turn.given) + turn.new < shared:
            resumed = max(queue, key=lambda c: (c.rate, c.trial.attempt is not None, -c.trial.id), default=None)
            can_start = bool(starts) or view.can_open
            if resumed is not None and (not can_start or resumed.rate >= new or rng().random() < self.deep):
                queue.remove(resumed)
                turn.given[resumed.trial.id] = None
            elif starts:
                turn.given[starts.pop(0)] = None
            elif can_start:
                turn.new += 1
            else:
                break
        return turn

    def _still_in_turn(self, view: View, chances: dict[TrialId, Chance]) -> tuple[list[TrialId], list[TrialId]]:
        """Running and of unknown promise: those of which nothing has been seen, which finish their first turn; and
        those that are inside a turn, the best first."""
        unseen, inside = [], []
        for attempt in view.attempts.values():
            trial = view.trials[attempt.trial]
            if trial.ended is not None:
                continue
            if trial.best_value is None:
                unseen.append(trial.id)
            elif trial.id in chances and not (self.pause and self._turn_is_over(view, attempt)):
                inside.append(trial.id)
        return unseen, sorted(inside, key=lambda t: -chances[t].p)

    def _turn_is_over(self, view: View, attempt: Attempt) -> bool:
        """At a step that completes a turn. Only new steps count: who has no checkpoint must get past where it was."""
        trial, turn = view.trials[attempt.trial], self._turn_steps(view.trials[attempt.trial])
        begun = max(attempt.resume_step, attempt.known)
        finishing = trial.max_steps is not None and trial.last_step >= trial.max_steps
        return not finishing and max(0, attempt.step - begun) // turn > max(0, attempt.previous - begun) // turn

    def _turn_steps(self, trial: Trial) -> int:
        return max(self.turn_steps, round(self.turn_frac * horizon_of(trial)))

    def _rate_of_new(self, index: Turns, view: View) -> float:
        """Chance per second of opening new configurations and going on with those that turn out to be worth it: the
        reservation price of a first look (Weitzman 1979), were they as those that have been opened so far.

        With price r, going on with i is worth p_i - r left_i if that is positive, and the look itself costs r turn.
        The price at which nothing is gained in the mean is the highest of the ratios below, over the best k. Chances
        are those of the first looks: what has been gone on with since is known better, and so foreseen to do worse.
        """
        if not index.looks:
            return math.inf
        opened = len(view.trials) - len(view.waiting)
        found, spent_s, trust = 0.5 * self.poor, (opened + 1) * index.look_s / len(index.looks), index.trust
        for look in index.looks:
            p = trust * look.foreseen
            if p * spent_s <= found * look.left_s:
                break
            found, spent_s = found + p, spent_s + look.left_s
        return found / spent_s

    # --- verdicts --------------------------------------------------------------------------------------------

    def _promising(self, chance: Chance, p_star: float, view: View) -> Verdict:
        numbers = {
            "p": chance.p,
            "threshold": p_star,
            "final": chance.foresight.final,
            "ert_s": chance.ert_s,
            **_foreseen(chance),
        }
        reason = Reason(Rule.POP_PROMISING, numbers)
        return Verdict(chance.trial.id, Act.RUN, reason, view.spec.resources.cores_per_trial, Label.PROMISING)

    def _turn_given(self, turn: Turn, trial: TrialId, p_star: float, view: View) -> Verdict:
        cores, chance = view.spec.resources.cores_per_trial, turn.chances.get(trial)
        if chance is None:
            return Verdict(trial, Act.RUN, Reason(Rule.POP_UNSEEN), cores, Label.OPPORTUNISTIC)
        numbers = {"p": chance.p, "threshold": p_star, "final": chance.foresight.final, **_foreseen(chance)}
        label = Label.POOR if self._is_poor(chance) else Label.OPPORTUNISTIC
        return Verdict(trial, Act.RUN, Reason(Rule.POP_OPPORTUNISTIC, numbers), cores, label)

    def _must_leave(self, chance: Chance, turn: Turn) -> bool:
        trial = chance.trial
        return trial.attempt is not None and trial.id not in turn.given and not self._is_over(chance)

    def _unseen(self, view: View) -> list[TrialId]:
        running = (view.trials[attempt.trial] for attempt in view.attempts.values())
        return [trial.id for trial in running if trial.best_value is None and trial.ended is None]

    def _unseen_must_leave(self, trial: TrialId) -> Verdict:
        return Verdict(trial, Act.WAIT, Reason(Rule.POP_UNSEEN), label=Label.OPPORTUNISTIC)

    def _turn_over(self, chance: Chance, p_star: float) -> Verdict:
        numbers = {"p": chance.p, "threshold": p_star, "final": chance.foresight.final, **_foreseen(chance)}
        label = Label.POOR if self._is_poor(chance) else Label.OPPORTUNISTIC
        return Verdict(chance.trial.id, Act.WAIT, Reason(Rule.POP_TURN_OVER, numbers), label=label)

    def _end(self, chance: Chance) -> Verdict:
        seen = chance.foresight
        numbers = {
            "p": chance.p,
            "poor": self.poor,
            "seen_frac": seen.seen_frac,
            "final": seen.final,
            **_foreseen(chance),
        }
        return Verdict(chance.trial.id, Act.END, Reason(Rule.POP_POOR, numbers), label=Label.POOR)


def _foreseen(chance: Chance) -> dict[str, float]:
    return {"foreseen": chance.foreseen}
