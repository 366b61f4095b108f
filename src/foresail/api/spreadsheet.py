"""A study as rows: its points, or its trials, for CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from typing import TextIO

from foresail.api.result import rows
from foresail.core import events as ev
from foresail.core.view import View
from foresail.core.words import trial_of

Row = list[object]
_TRIAL = ("trial", "status", "class", "best", "best_step", "steps", "attempts", "seconds", "why")


def point_rows(events: Sequence[ev.Event]) -> Iterator[Row]:
    """Titles, then every point in the order of the log; metrics in the order in which they first came.

    A step that was trained again after a crash comes twice; its attempts differ.
    """
    points = [event for event in events if isinstance(event, ev.PointReported)]
    metrics = list(dict.fromkeys(name for point in points for name in point.metrics))
    yield ["trial", "step", "attempt", "at_s", "seconds", *metrics]
    for point in points:
        head: Row = [trial_of(point.attempt), point.step, point.attempt, point.at_s, point.seconds]
        yield head + [point.metrics.get(name) for name in metrics]


def trial_rows(view: View) -> Iterator[Row]:
    """Titles, then every trial in its order, with a column `config.<knob>` for each knob."""
    knobs = list(dict.fromkeys(name for trial in view.trials for name in trial.config))
    yield [*_TRIAL, *(f"config.{name}" for name in knobs)]
    for row in rows(view):
        cells: Row = [row.trial, row.status, row.label, row.best, row.best_step, row.steps, row.attempts, row.seconds]
        yield [*cells, row.why, *(row.config.get(name) for name in knobs)]


def write_csv(table: Iterator[Row], stream: TextIO) -> None:
    """RFC 4180, with line feeds; what is not known is empty."""
    csv.writer(stream, lineterminator="\n").writerows(table)
