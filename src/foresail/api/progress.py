"""What a display shows of a study beyond its view: kept up to date event by event, never by a walk over all trials."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence

from foresail.core import events as ev
from foresail.core.view import View
from foresail.core.words import Label, Status, TrialId


class Progress:
    """Counts by class, and study time between events.

    Args:
        now_s: seconds of a clock that never falls.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = now_s
        self._base_s: float | None = None
        self._labels: dict[TrialId, Label] = {}
        self.labels: Counter[Label] = Counter()

    def note(self, view: View, events: Sequence[ev.Event]) -> None:
        """Take what is new. The first call may come with a view that has a history."""
        if self._base_s is None:
            self._catch_up(view)
        if events:
            self._base_s = self._clock_s() - view.now_s
        for event in events:
            if isinstance(event, ev.Planned):
                for verdict in event.verdicts:
                    self._label(verdict.trial, verdict.label)

    def now_s(self, view: View) -> float:
        """Study time now: it goes on between events, and stands still when the study has ended."""
        if view.ended is not None or self._base_s is None:
            return view.now_s
        return max(view.now_s, self._clock_s() - self._base_s)

    def counts(self, view: View) -> dict[Status, int]:
        """Trials by status, the empty ones left out."""
        yielding = sum(attempt.ending for attempt in view.attempts.values())
        live = {
            Status.RUNNING: len(view.attempts) - yielding,
            Status.YIELDING: yielding,
            Status.SUSPENDED: len(view.suspended),
            Status.WAITING: len(view.waiting),
        }
        return {status: n for status in Status if (n := live.get(status, view.counts[status]))}

    def _catch_up(self, view: View) -> None:
        self._base_s = self._clock_s() - view.now_s
        for trial in view.trials:
            if trial.verdict is not None:
                self._label(trial.id, trial.verdict.label)

    def _label(self, trial: TrialId, label: Label | None) -> None:
        before = self._labels.get(trial)
        if before is label:
            return
        if before is not None:
            self.labels[before] -= 1
            del self._labels[trial]
        if label is not None:
            self.labels[label] += 1
            self._labels[trial] = label
