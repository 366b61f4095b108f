"""Why a trial has what it has: a rule and the numbers that it rested on. A decision without one does not construct.

The sentence that a person reads is made from the numbers by `SENTENCES`, one template a rule, so the log holds
facts and not prose. A rule that is not in the table cannot be recorded.
"""

from __future__ import annotations

from enum import StrEnum
from math import isfinite

from msgspec import Struct
from msgspec.structs import force_setattr


class Rule(StrEnum):
    FIRST_IN = "first_in"
    GRID_ORDER = "grid_order"
    ABOVE_MEDIAN = "above_median"
    BELOW_MEDIAN = "below_median"
    RUNG_CLIMBING = "rung_climbing"
    RUNG_PROMOTED = "rung_promoted"
    RUNG_PAUSED = "rung_paused"
    RUNG_STOPPED = "rung_stopped"
    RUNG_FILLING = "rung_filling"
    BANDIT_BEHIND = "bandit_behind"
    IMPROVES_FASTEST = "improves_fastest"
    IMPROVES_SLOWER = "improves_slower"
    WORTH_MOST = "worth_most"
    WORTH_A_LOOK = "worth_a_look"
    WORTH_LESS = "worth_less"
    WORTH_NOTHING = "worth_nothing"
    GOES_AHEAD = "goes_ahead"
    RANK_FLOOR = "rank_floor"
    ORACLE_KNOWS = "oracle_knows"
    POP_PROMISING = "pop_promising"
    POP_OPPORTUNISTIC = "pop_opportunistic"
    POP_TURN_OVER = "pop_turn_over"
    POP_POOR = "pop_poor"
    POP_UNSEEN = "pop_unseen"
    NOT_LEARNING = "not_learning"
    UNBEATABLE = "unbeatable"
    STUDY_STOPS = "study_stops"


SENTENCES: dict[Rule, str] = {
    Rule.FIRST_IN: "number {order:.0f} in line; first in, first out",
    Rule.GRID_ORDER: "point {order:.0f} of the grid",
    Rule.ABOVE_MEDIAN: "best {value:.6g} at step {step:.0f} not behind the median {median:.6g} of {others:.0f}",
    Rule.BELOW_MEDIAN: "best {value:.6g} at step {step:.0f} behind the median {median:.6g} of {others:.0f}",
    Rule.RUNG_CLIMBING: "on the way to the rung at step {rung_step:.0f}",
    Rule.RUNG_PROMOTED: "rank {rank:.0f} of {of:.0f} at the rung of step {rung_step:.0f}; the best {keep:.0f} go on",
    Rule.RUNG_PAUSED: "rank {rank:.0f} of {of:.0f} at the rung of step {rung_step:.0f}; the best {keep:.0f} go on now",
    Rule.RUNG_STOPPED: "rank {rank:.0f} of {of:.0f} at the rung of step {rung_step:.0f}; not in the best {keep:.0f}",
    Rule.RUNG_FILLING: "at the rung of step {rung_step:.0f}, which {arrived:.0f} of {of:.0f} have reached; it "
    "waits for the rest",
    Rule.BANDIT_BEHIND: "best {value:.6g} at step {step:.0f} is behind the study's best {best:.6g} by more than "
    "{slack:.0%} of itself",
    Rule.IMPROVES_FASTEST: "expected gain {gain:.3g} in {cost_s:.3g} s of training; among the {slots:.0f} fastest",
    Rule.IMPROVES_SLOWER: "expected gain {gain:.3g} in {cost_s:.3g} s of training; {slots:.0f} others are faster",
    Rule.WORTH_MOST: "P = {p:.3f} to get to {aim:.6g}, in {expected_s:.3g} s if it does, {final:.6g} expected; worth "
    "{rate:.3g} an hour on {cores:.0f} cores, the best of those without a slot {other:.3g}",
    Rule.WORTH_A_LOOK: "new; configurations like it make P = {p:.3f} to get to {aim:.6g}, {final:.6g} expected; worth "
    "{rate:.3g} an hour on {cores:.0f} cores, the best of those without a slot {other:.3g}",
    Rule.WORTH_LESS: "P = {p:.3f} to get to {aim:.6g}, {final:.6g} expected; worth {rate:.3g} an hour, the best "
    "{other:.3g}",
    Rule.WORTH_NOTHING: "P = {p:.2g} to get to {aim:.6g}, under {hopeless:.2g}; {final:.6g} expected",
    Rule.GOES_AHEAD: "most likely to get to {aim:.6g}, P = {p:.3f}, {final:.6g} expected; it goes ahead, so that the "
    "study learns how curves end",
    Rule.RANK_FLOOR: "by its rank and not by its index: a share of the slots does not rest on the forecasts; "
    "P = {p:.3f} to get to {aim:.6g}, worth {rate:.3g} an hour",
    Rule.ORACLE_KNOWS: "knows that the trial gets to {value:.6g} in {left_s:.3g} s",
    Rule.POP_PROMISING: "P(target in time) = {p:.3f} >= {threshold:.3f}; expected value at the end {final:.4g}, "
    "expected time to the target {ert_s:.1f} s",
    Rule.POP_OPPORTUNISTIC: "P(target in time) = {p:.3f}, no slot of its own (threshold {threshold:.3f}); it has its "
    "turn; expected value at the end {final:.4g}",
    Rule.POP_TURN_OVER: "P(target in time) = {p:.3f}, no slot of its own (threshold {threshold:.3f}); its turn is "
    "over, others wait; expected value at the end {final:.4g}",
    Rule.POP_POOR: "P(target in time) = {p:.4f} < {poor:.3f} after {seen_frac:.0%} of its steps; expected value at the "
    "end {final:.6g}",
    Rule.POP_UNSEEN: "not enough of its curve has been seen; it has its first turn",
    Rule.NOT_LEARNING: "best {value:.6g} after {step:.0f} steps is where trials start ({start:.6g}); it does not learn",
    Rule.UNBEATABLE: "P(to beat the best) = {p:.4f} < {bound:.3f} at step {step:.0f}",
    Rule.STUDY_STOPS: "the study stops",
}


class Unknown:
    """A number that is not known, in a sentence."""

    def __format__(self, spec: str) -> str:
        return "unknown"


class Numbers(dict[str, float]):
    def __missing__(self, name: str) -> Unknown:
        return Unknown()


class Reason(Struct, frozen=True):
    """A rule and its numbers, which are finite: one that is not known is left out.

    A whole number is a float too, so that a reason is the same before it was written and after it was read.
    """

    rule: Rule
    numbers: dict[str, float] = {}

    def __post_init__(self) -> None:
        if not all(type(number) is float and isfinite(number) for number in self.numbers.values()):
            finite = {name: float(number) for name, number in self.numbers.items() if isfinite(number)}
            force_setattr(self, "numbers", finite)

    def sentence(self) -> str:
        """What a person reads.

        >>> Reason(Rule.FIRST_IN, {"order": 3}).sentence()
        'number 3 in line; first in, first out'
        """
        return SENTENCES[self.rule].format_map(Numbers(self.numbers))
