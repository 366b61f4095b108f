"""Effects asked of the world, in imperatives. Each answers with events; performing one twice is harmless."""

from __future__ import annotations

from msgspec import Struct

from foresail.core.layout import Layout
from foresail.core.words import AttemptId, Config, TrialId


class Launch(Struct, frozen=True, kw_only=True):
    """Start a fresh process for this attempt on these cores. Answers: AttemptStarted, or AttemptEnded.

    `checkpoint`: path relative to the study's folder, empty to start from nothing. `seed`: of the trial, the same
    in each of its attempts. `best`: the trial's best value so far of the goal's metric. `layout`: its ranks.
    """

    attempt: AttemptId
    trial: TrialId
    number: int
    config: Config
    cores: tuple[int, ...]
    devices: tuple[str, ...] = ()
    resume_step: int = 0
    checkpoint: str = ""
    seed: int = 0
    best: float | None = None
    layout: Layout = Layout()


class Yield(Struct, frozen=True):
    """Ask the attempt to save a checkpoint at its next step boundary and leave; kill it after `grace_s` seconds.

    Answers: CheckpointSaved, then AttemptEnded(YIELDED); or AttemptEnded(KILLED).
    """

    attempt: AttemptId
    grace_s: float = 30.0


class Kill(Struct, frozen=True):
    """End the attempt now (terminate, then kill after `grace_s`). Answers: AttemptEnded(KILLED)."""

    attempt: AttemptId
    grace_s: float = 5.0


class DeleteCheckpoint(Struct, frozen=True):
    """Remove a checkpoint. Answers: CheckpointDeleted."""

    path: str


Command = Launch | Yield | Kill | DeleteCheckpoint
