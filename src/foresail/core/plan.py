"""A policy's wish for the whole cluster. It states every trial that holds something, and why."""

from __future__ import annotations

from msgspec import Struct

from foresail.core.reason import Reason
from foresail.core.words import Act, Label, TrialId


class Verdict(Struct, frozen=True):
    """What is wanted of one trial, with its class and its reason.

    `cores` counts only where `act` is RUN. `stage`: for policies that train in stages (rungs, brackets, turns), the
    one that the trial is allowed to finish.
    """

    trial: TrialId
    act: Act
    reason: Reason
    cores: int = 1
    label: Label | None = None
    stage: int = 0

    def same_wish(self, other: Verdict | None) -> bool:
        """Whether the two want the same thing, whatever their numbers."""
        return (
            other is not None
            and self.act is other.act
            and self.label is other.label
            and self.cores == other.cores
            and self.stage == other.stage
            and self.reason.rule is other.reason.rule
        )


class Plan(Struct, frozen=True):
    """The whole wanted allocation.

    `verdicts`: in order of preference; earlier RUN verdicts are served first. A trial that runs and is not named
    is an error: to take something away needs a reason. `open`: how many new configurations the policy would
    start now if the search proposed them.
    """

    verdicts: tuple[Verdict, ...] = ()
    open: int = 0
