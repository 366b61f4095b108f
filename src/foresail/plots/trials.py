"""What several plots ask of a trial."""

from __future__ import annotations

from foresail.core.view import Trial


def label_of(trial: Trial) -> str | None:
    """Its class, by the last decision on it."""
    return trial.verdict.label.value if trial.verdict and trial.verdict.label else None
