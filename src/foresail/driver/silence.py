"""Trials that say nothing: a hang looks like a long step, so a person is told and decides.

`Study(silence=...)` ends them by itself; that limit is the engine's (`engine/ends.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from foresail.core.view import Attempt, View
from foresail.core.words import AttemptId

LEAST_S: Final = 600.0
"""Nobody is called silent before that."""
STEPS: Final = 10.0
"""Nor before so many of the trial's own steps could have been done."""


class Silence:
    """Tells of each silence once."""

    def __init__(self) -> None:
        self._told: dict[AttemptId, float] = {}

    def new(self, view: View, now_s: float) -> Iterator[str]:
        """A sentence for each attempt that has been silent for too long, and was not told of since it last spoke."""
        self._told = {attempt: heard_s for attempt, heard_s in self._told.items() if attempt in view.attempts}
        for attempt in view.attempts.values():
            silent_s = now_s - attempt.heard_s
            is_known = self._told.get(attempt.id) == attempt.heard_s
            if not is_known and not attempt.ending and silent_s >= patience_s(view, attempt):
                self._told[attempt.id] = attempt.heard_s
                yield (
                    f"trial {attempt.trial} has said nothing for {silent_s / 60:.0f} min and holds "
                    f'{len(attempt.cores)} core(s); it may hang: silence = "30 min" in the study would end it'
                )


def patience_s(view: View, attempt: Attempt) -> float:
    """Seconds of silence that are not remarkable."""
    step_s = view.trials[attempt.trial].step_s
    return max(LEAST_S, STEPS * step_s) if step_s is not None else LEAST_S
