"""A running study on a terminal, drawn again a few times a second."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from foresail.api import wording
from foresail.api.lines import Paced, beginning, sentence
from foresail.api.progress import Progress
from foresail.core import events as ev
from foresail.core.view import Attempt, View
from foresail.core.words import Label, Status

EVERY_S = 0.25
"""Least time between two drawings."""
MOST_SLOTS = 16
"""Slots that are shown; of the others, how many there are."""
STAY = (Status.DIVERGED, Status.FAILED, "attempts failed", "attempts lost", "attempts out of memory")
STYLES = {Label.PROMISING: "bold green", Label.OPPORTUNISTIC: "yellow", Label.POOR: "dim"}


class Screen:
    """A watcher that draws. Failures and the end are also written above the picture, where they stay."""

    def __init__(self, console: Console, now_s: Callable[[], float] = time.monotonic) -> None:
        self._console, self._clock_s = console, now_s
        self._progress = Progress(now_s)
        self._live: Live | None = None
        self._drawn_s = float("-inf")
        self._paced = Paced(self._print, now_s)

    def __call__(self, view: View, events: Sequence[ev.Event]) -> None:
        """Take what is new; draw if it is time."""
        self._progress.note(view, events)
        if self._live is None and view.ended is not None:
            return self._print(beginning(view))
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        now_s = self._clock_s()
        if now_s - self._drawn_s >= EVERY_S or view.ended is not None:
            self._drawn_s = now_s
            self._live.update(picture(view, self._progress), refresh=True)
        return self._keep(view, events)

    def trouble(self, text: str) -> None:
        """The store refuses to be written."""
        self._paced.trouble(text)

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _keep(self, view: View, events: Sequence[ev.Event]) -> None:
        """What should stay on the terminal when the picture is gone."""
        for event in events:
            told = sentence(view, event)
            if told is not None and (told[0] in STAY or not told[0]):
                self._paced.write(view, *told)

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False)


def picture(view: View, progress: Progress) -> Group:
    """The whole study at a glance."""
    return Group(_head(view, progress), _slots(view), _totals(view, progress))


def _head(view: View, progress: Progress) -> Table:
    now_s, wanted = progress.now_s(view), view.spec.goal
    table = Table(box=None, show_header=False, padding=(0, 1))
    table.add_column(style="dim")
    table.add_column()
    table.add_row("study", Text(f"{view.spec.name}: {wording.goal(wanted)}"))
    table.add_row("best", Text(wording.best(view), style="bold" if view.best else "dim"))
    table.add_row("time", Text(_time(view, now_s)))
    if view.stop_requested:
        table.add_row(
            "", Text("stopping: what runs saves its state; Ctrl-C again ends it at once", style="bold yellow")
        )
    return table


def _time(view: View, now_s: float) -> str:
    wanted, live_s = view.spec.goal, now_s - view.now_s
    used = view.device_s_used + live_s * sum(len(attempt.cores) for attempt in view.attempts.values())
    parts = [wording.duration(now_s)]
    if wanted.within_s is not None:
        parts[0] += (
            f" of {wording.duration(wanted.within_s)}, {wording.duration(max(0.0, wanted.within_s - now_s))} left"
        )
    of = f" of {wording.duration(wanted.device_s)}" if wanted.device_s is not None else ""
    parts.append(f"core time {wording.duration(used)}{of}")
    trials = f" of {wanted.trials}" if wanted.trials is not None else ""
    parts.append(f"{len(view.trials)}{trials} trials, {wording.count(view.points, 'point')}")
    return "; ".join(parts)


def _slots(view: View) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title, least in (("trial", 5), ("step", 9), ("last", 9), ("best", 9), ("chance", 6)):
        table.add_column(title, justify="right", min_width=least)
    table.add_column("class", min_width=13)
    table.add_column("configuration", overflow="ellipsis", no_wrap=True)
    attempts = sorted(view.attempts.values(), key=lambda attempt: attempt.trial)
    for attempt in attempts[:MOST_SLOTS]:
        table.add_row(*_slot(view, attempt))
    if len(attempts) > MOST_SLOTS:
        table.caption = f"and {len(attempts) - MOST_SLOTS} more"
    return table


def _slot(view: View, attempt: Attempt) -> list[Text]:
    trial = view.trials[attempt.trial]
    label = trial.verdict.label if trial.verdict else None
    chance = trial.verdict.reason.numbers.get("p") if trial.verdict else None
    steps = f"{attempt.step}/{trial.max_steps}" if trial.max_steps else str(attempt.step)
    word = "leaving" if attempt.ending else (str(label) if label else "-")
    return [
        Text(str(trial.id)),
        Text(steps),
        Text(wording.number(trial.last_value)),
        Text(wording.number(trial.best_value)),
        Text("-" if chance is None else f"{chance:.2f}"),
        Text(word, style=STYLES[label] if label else ""),
        Text(wording.config(trial.config), style="dim"),
    ]


def _totals(view: View, progress: Progress) -> Text:
    statuses = ", ".join(f"{n} {status}" for status, n in progress.counts(view).items())
    text = Text(f" {statuses or 'no trials yet'}")
    labels = [(label, progress.labels[label]) for label in Label if progress.labels[label]]
    if labels:
        text.append("\n ")
    for i, (label, n) in enumerate(labels):
        text.append(f"{', ' if i else ''}{n} {label}", style=STYLES[label])
    return text
