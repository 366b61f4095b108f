"""From a command to what the process is told."""

from __future__ import annotations

from pathlib import Path

from foresail.core.commands import Launch
from foresail.core.goal import Goal
from foresail.core.spec import Entry
from foresail.worker.grant import Grant


def grant_of(launch: Launch, *, root: Path, goal: Goal, entry: Entry | None = None) -> Grant:
    """What the attempt is told: the command's words, and those that are the same for the whole study."""
    return Grant(
        root=str(root),
        attempt=launch.attempt,
        trial=launch.trial,
        number=launch.number,
        config=launch.config,
        goal=goal,
        entry=entry or Entry(),
        cores=launch.cores,
        devices=launch.devices,
        resume_step=launch.resume_step,
        checkpoint=launch.checkpoint,
        seed=launch.seed,
        best=launch.best,
        layout=launch.layout,
    )
