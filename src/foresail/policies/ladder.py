"""The ladder of asynchronous successive halving: who has reached which rung, and how they rank there.

An index, folded from the log; each question costs the logarithm of the number of trials, or the number of its answers.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field

from foresail.core.goal import Mode
from foresail.core.view import Trial
from foresail.core.words import TrialId


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
    """The rungs, and for each trial that has not ended the rung up to which it may run.

    `top`: nobody is promoted beyond this rung, unless slots would be idle; None: no bound.
    """

    first: int
    eta: int
    top: int | None = None
    rungs: list[Rung] = field(default_factory=list)
    stage: dict[TrialId, int] = field(default_factory=dict)
    reached: dict[TrialId, list[tuple[float, TrialId]]] = field(default_factory=dict)
    interrupted: dict[TrialId, None] = field(default_factory=dict)  # may go on to their rung, and hold nothing

    def rung(self, number: int) -> Rung:
        while len(self.rungs) <= number:
            self.rungs.append(Rung(self.first * self.eta ** len(self.rungs)))
        return self.rungs[number]

    def arrive(self, trial: Trial, mode: Mode) -> bool:
        """Enter the trial at every rung that it has reached. True if it stands at the rung that it may run to."""
        entries = self.reached.setdefault(trial.id, [])
        while trial.last_step >= self.rung(len(entries)).step:
            rung = self.rung(len(entries))
            value = trial.value_at(rung.step)
            loss = math.inf if not math.isfinite(value) else -value if mode == "max" else value
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
        highest = len(self.rungs) if self.top is None else min(len(self.rungs), self.top)
        for top in (True, False)[: 1 + everyone]:
            for number in range((highest if top else len(self.rungs)) - 1, -1, -1):
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
