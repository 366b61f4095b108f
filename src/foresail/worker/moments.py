"""When a checkpoint is worth its cost."""

from __future__ import annotations

from typing import Final

EVERY_S: Final = 60.0
"""Seconds of training that a crash may cost, where saving is cheap."""

COST_RATIO: Final = 20.0
"""Saving takes at most about one part in twenty of the training time."""

FIRST_COST_S: Final = 0.05
"""What a save is taken to cost until one has been measured: a few small files, synced."""


class Moments:
    """Remembers the last save and what it cost. Times in seconds on any one clock."""

    __slots__ = ("_cost_s", "_saved_s")

    def __init__(self, now_s: float) -> None:
        self._saved_s = now_s
        self._cost_s = FIRST_COST_S

    def is_due(self, now_s: float, *, improved: bool) -> bool:
        """Whether to save at this boundary. `improved`: the trial's best value is the one just reported."""
        since_s = now_s - self._saved_s
        return since_s >= COST_RATIO * self._cost_s and (improved or since_s > EVERY_S)

    def note(self, now_s: float, cost_s: float) -> None:
        """A save ended at `now_s`."""
        self._saved_s, self._cost_s = now_s, cost_s
