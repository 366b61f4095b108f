"""Evaluation boundaries: the steps at which a rule looks at a trial (HyperDrive, Middleware 2017, section 4)."""

from __future__ import annotations

from foresail.core.view import Trial
from foresail.policies.horizon import horizon_of

SHARE = 0.1
"""HyperDrive looks at CIFAR-10 runs of 120 epochs each 10 epochs."""


def boundary_steps(trial: Trial, every: int | None) -> int:
    """Steps between two looks."""
    return every if every is not None else max(1, round(SHARE * horizon_of(trial)))


def at_boundary(trial: Trial, every: int | None) -> bool:
    """Whether the trial's last step is one at which it is looked at; its very end is none."""
    step = trial.last_step
    return step > 0 and step != trial.max_steps and step % boundary_steps(trial, every) == 0
