"""A running study as plain lines, for logs and pipes: one a state change, and never more than a log can bear."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence

from foresail.api import wording
from foresail.core import events as ev
from foresail.core.view import Trial, View
from foresail.core.words import Outcome, Status, trial_of

BURST_LINES = 20
"""Lines that may come at once."""
LINE_EVERY_S = 2.0
"""Beyond the burst, one line in so many seconds; what is left out is counted and told in a line of its own."""
BEST_EVERY_S = 5.0
"""Least time between two lines about the best; the last of those in between is told."""

Write = Callable[[str], None]


class Lines:
    """A watcher that writes lines, by `write`."""

    def __init__(self, write: Write, now_s: Callable[[], float] = time.monotonic) -> None:
        self._paced, self._clock_s = Paced(write, now_s), now_s
        self._best: tuple[int, int, float] | None = None
        self._best_told_s = float("-inf")
        self._new = True

    def __call__(self, view: View, events: Sequence[ev.Event]) -> None:
        """Tell what is new."""
        if self._new:
            self._new, self._best = False, None if view.points <= len(events) else view.best
            self._paced.write(view, "", beginning(view))
        for event in events:
            told = sentence(view, event)
            if told is not None:
                self._paced.write(view, *told)
        self._tell_best(view)
        if view.ended is not None and events:
            self._paced.settle(view)
            self._paced.write(view, "", f"ended: {_found(view)}")

    def _tell_best(self, view: View) -> None:
        now_s = self._clock_s()
        if view.best is None or view.best == self._best or now_s - self._best_told_s < BEST_EVERY_S:
            return
        self._best, self._best_told_s = view.best, now_s
        self._paced.write(view, "", f"best {wording.best(view)}")

    def trouble(self, text: str) -> None:
        """The host refuses something, or a trial is silent."""
        self._paced.trouble(text)

    def close(self) -> None:
        """Nothing to put away."""


class Paced:
    """Writes lines while there is room for them, and counts the others. A line of kind "" is always written."""

    def __init__(self, write: Write, now_s: Callable[[], float]) -> None:
        self._write, self._clock_s = write, now_s
        self._room = float(BURST_LINES)
        self._at_s = now_s()
        self._left_out: Counter[str] = Counter()

    def write(self, view: View, kind: str, text: str) -> None:
        if kind and not self._has_room():
            self._left_out[kind] += 1
            return
        self.settle(view)
        self._write(f"{wording.duration(view.now_s):>12}  {text}")

    def settle(self, view: View) -> None:
        """Tell what was left out."""
        if self._left_out:
            told = ", ".join(f"{n} {kind}" for kind, n in sorted(self._left_out.items()))
            self._left_out.clear()
            self._write(f"{wording.duration(view.now_s):>12}  ... and not shown: {told}")

    def trouble(self, text: str) -> None:
        self._write(f"trouble: {text}")

    def _has_room(self) -> bool:
        now_s = self._clock_s()
        self._room = min(BURST_LINES, self._room + (now_s - self._at_s) / LINE_EVERY_S)
        self._at_s = now_s
        if self._room < 1.0:
            return False
        self._room -= 1.0
        return True


def sentence(view: View, event: ev.Event) -> tuple[str, str] | None:
    """A state change as its kind and a sentence; None for all else. The kind is "" where it must be told."""
    match event:
        case ev.TrialEnded(trial=trial, status=status):
            return str(status), _ended(view.trials[trial], status)
        case ev.AttemptEnded(outcome=Outcome.FAILED | Outcome.OUT_OF_MEMORY | Outcome.LOST as outcome):
            if view.trials[trial_of(event.attempt)].ended is not None:
                return None
            word = str(outcome).replace("_", " ")
            return f"attempts {word}", f"attempt {event.attempt} {word}: {event.detail or 'without a word'}"
        case ev.StopRequested():
            return "", "stopping: no new starts; what runs saves its state; Ctrl-C again ends it at once"
        case ev.StudyEnding(end=end, why=why):
            return "", f"ending ({end}): {why}"
        case _:
            return None


def beginning(view: View) -> str:
    """Which study this is, and whether it starts, goes on or has ended."""
    spec = view.spec
    if view.ended is not None:
        return f"study {spec.name!r} has ended ({view.ended.end}): {view.ended.why}"
    doing = f"goes on after {wording.count(len(view.trials), 'trial')}" if view.points else "starts"
    places = f"{wording.count(view.slots, 'slot')}, {spec.policy.name}"
    return f"study {spec.name!r} {doing}: {wording.goal(spec.goal)}; {places}"


def _found(view: View) -> str:
    return (
        f"{wording.count(len(view.trials), 'trial')}, {wording.count(view.points, 'point')}, best {wording.best(view)}"
    )


def _ended(trial: Trial, status: Status) -> str:
    text = f"trial {trial.id} {status} at step {trial.last_step}"
    if trial.best_value is not None:
        text += f", best {wording.number(trial.best_value)}"
    if trial.detail:
        text += f": {trial.detail}"
    if status in (Status.DIVERGED, Status.FAILED):
        text += f" [{wording.config(trial.config)}]"
    return text
