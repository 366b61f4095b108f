"""How long a trial is."""

from __future__ import annotations

from foresail.core.view import Trial

UNKNOWN = 3
"""Where nobody said how long a trial is, so many times what it has done."""


def horizon_of(trial: Trial) -> int:
    """The step at which the trial will end."""
    return max(trial.max_steps or UNKNOWN * max(trial.last_step, 4), trial.last_step)
