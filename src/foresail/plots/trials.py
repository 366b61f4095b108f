"""What several plots ask of a trial."""

from __future__ import annotations

from foresail.core.view import Trial, View
from foresail.core.words import Label


def label_of(view: View, trial: Trial) -> str | None:
    """Its class, by the last decision on it; one that has reached the target since is promising, its chance is one."""
    if trial.verdict and trial.verdict.label and view.spec.goal.reached(trial.best_value):
        return Label.PROMISING.value
    return trial.verdict.label.value if trial.verdict and trial.verdict.label else None
