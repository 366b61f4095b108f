"""Results as plain data, for `--json`: mappings, lists, text, numbers. The keys are documented and do not change."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from foresail.api.result import Best, Result, TrialRow
from foresail.core import codec
from foresail.core.events import Event
from foresail.core.view import View


def result_data(result: Result, *, trials: int | None = None) -> dict[str, Any]:
    """A result; `trials`: how many of them, best first, all if not given."""
    view = result.view
    return {
        "name": result.name,
        "storage": str(result.storage),
        "end": result.end,
        "why": result.why,
        "reached": result.reached,
        "goal": goal_data(view),
        "best": None if result.best is None else best_data(result.best),
        "seconds": result.seconds,
        "device_s": result.device_s,
        "points": result.points,
        "counts": counts_data(view),
        "trials": [trial_data(row) for row in result.trials[:trials]],
    }


def best_data(best: Best) -> dict[str, Any]:
    data = asdict(best)
    return data | {key: None if data[key] is None else str(data[key]) for key in ("checkpoint", "nearest")}


def trial_data(row: TrialRow) -> dict[str, Any]:
    return asdict(row)


def goal_data(view: View) -> dict[str, Any]:
    goal = view.spec.goal
    return {name: getattr(goal, name) for name in goal.__struct_fields__}


def counts_data(view: View) -> dict[str, int]:
    """Trials by status."""
    counts = {str(status): n for status, n in view.counts.items()}
    yielding = sum(attempt.ending for attempt in view.attempts.values())
    return counts | {
        "running": len(view.attempts) - yielding,
        "yielding": yielding,
        "suspended": len(view.suspended),
        "waiting": len(view.waiting),
    }


class JsonLines:
    """A watcher that writes each event as it is stored."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def __call__(self, view: View, events: Sequence[Event]) -> None:
        """Write what is new."""
        for event in events:
            self._write(codec.encode(event).decode())

    def trouble(self, text: str) -> None:
        """Not an event: told beside them."""
        print(f"trouble: {text}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Nothing to put away."""
