"""Ids and closed lists of words. Every status here is derived from facts; nothing sets one."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NewType

TrialId = NewType("TrialId", int)
"""Number of a trial in its study, from 0, in the order of proposal."""

AttemptId = NewType("AttemptId", str)
"""`<trial>-<n>`: the n-th life of a trial's processes, from 1. Safe as a folder name."""

Scalar = str | int | float | bool
Config = Mapping[str, Scalar]
"""One point of the space: name of a knob to its value."""


def attempt_id(trial: TrialId, number: int) -> AttemptId:
    return AttemptId(f"{trial}-{number}")


def trial_of(attempt: AttemptId) -> TrialId:
    """The trial that an attempt belongs to, also when it is long over."""
    return TrialId(int(attempt.split("-", 1)[0]))


class Status(StrEnum):
    """Where a trial stands, derived by `Trial.status`."""

    WAITING = "waiting"  # proposed, never granted anything
    RUNNING = "running"
    YIELDING = "yielding"  # asked to leave, not gone yet
    SUSPENDED = "suspended"  # has run, holds nothing now, may continue
    COMPLETED = "completed"  # trained to its end
    ENDED = "ended"  # ended by the policy: it would not win
    DIVERGED = "diverged"  # reported a value that is not finite
    FAILED = "failed"  # its code failed, retries included


class Outcome(StrEnum):
    """How an attempt ended."""

    COMPLETED = "completed"  # the training function returned, or the command exited with 0
    YIELDED = "yielded"  # left at our wish, after a checkpoint
    KILLED = "killed"  # we ended it
    FAILED = "failed"  # raised, or exited with another code
    OUT_OF_MEMORY = "out_of_memory"
    LOST = "lost"  # vanished without a farewell: killed from outside, or the machine went


class Label(StrEnum):
    """POP's classes (Rasley et al., Middleware 2017)."""

    PROMISING = "promising"
    OPPORTUNISTIC = "opportunistic"
    POOR = "poor"


class Act(StrEnum):
    """What a plan wants of a trial."""

    RUN = "run"
    WAIT = "wait"
    END = "end"
