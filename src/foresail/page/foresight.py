"""What the page shows that has to be computed: forecasts, importance, predicted speeds, calibration (`foresail.plots`).

Made when a page asks, from a reading of the log of its own; never more often than `REST` allows, so that looking costs
the training little. An answer says on how many events it rests.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from foresail import plots
from foresail.core.words import TrialId
from foresail.errors import CallerError
from foresail.stores.sqlite import SqliteStore

REST = 10.0
"""After forecasts that took t seconds, none are made for so many t: a tenth of one core at most."""
MOST_BANDS = 12
"""Trials with a forecast band: those with the highest chance among those that may go on."""
BAND_STEPS = 24


class Moment:
    """The study after so many events, and what was computed of it."""

    def __init__(self) -> None:
        self.chronicle = plots.Chronicle()
        self.foreseen: plots.Foreseen | None = None
        self.made: dict[str, dict[str, Any]] = {}
        self.rests_until = 0.0

    def foresee(self) -> None:
        """Forecast anew if the study has gone on and it is time."""
        now, view = time.monotonic(), self.chronicle.view
        if now < self.rests_until or (self.foreseen is not None and self.foreseen.events == view.events):
            return
        self.foreseen = plots.foresee(view)
        self.made.clear()
        self.rests_until = time.monotonic() + REST * (time.monotonic() - now)


class Foresight:
    """Computes for the page. One request at a time; safe to call from any thread."""

    def __init__(self, storage: Path) -> None:
        self._store = SqliteStore.open(storage, write=False)
        self._lock = threading.Lock()
        self._now, self._then = Moment(), Moment()

    def axes(self) -> list[dict[str, Any]]:
        """The knobs: name, scale, and ticks as (place from 0 to 1, text)."""
        with self._lock:
            first = plots.Chronicle.of(event for _, event in islice(self._store.read(), 1))
        return [{"name": a.name, "scale": a.scale, "ticks": a.ticks} for a in plots.parallel_coordinates(first).axes]

    def panel(self, name: str, until: int | None, trial: int | None = None) -> dict[str, Any]:
        """The data of a panel after event `until`, or now; `trial`: one more trial with a band."""
        with self._lock:
            moment = self._moment(until)
            if moment.chronicle.view.events == 0:
                raise CallerError("there is no study yet", do="wait for its first event")
            moment.foresee()
            if name == "forecasts":
                return _forecasts(moment, trial)
            if name not in moment.made:
                moment.made[name] = _rounded(PANELS[name](moment))
            return moment.made[name]

    def _moment(self, until: int | None) -> Moment:
        if until is None:
            moment = self._now
        elif until < self._then.chronicle.view.events:
            moment = self._then = Moment()
        else:
            moment = self._then
        if until is None or moment.chronicle.view.events != until:
            after = moment.chronicle.view.events
            moment.chronicle.take(event for _, event in islice(self._store.read(after), until and until - after))
            moment.rests_until = moment.rests_until if until is None else 0.0
        return moment

    def close(self) -> None:
        self._store.close()


def _forecasts(moment: Moment, trial: int | None) -> dict[str, Any]:
    """Where each trial is expected to end, how fast it goes, its chance; and some bands."""
    foreseen = moment.foreseen
    if foreseen is None:
        return {"events": moment.chronicle.view.events, "spots": [], "bands": []}
    if "spots" not in moment.made:
        drawn = plots.potential_map(moment.chronicle, foreseen)
        spots = [[s.trial, s.final, s.low, s.high, s.steps_per_s, s.p, s.label] for s in drawn.spots]
        moment.made["spots"] = _rounded({"spots": spots, "classes_by": drawn.classes_by, "target": drawn.target})
    chosen = _hopefuls(moment, foreseen) | ({trial} if trial is not None and trial in foreseen.row else set())
    curves = plots.learning_curves(moment.chronicle, foreseen, trials=chosen).curves
    bands = [[c.trial, *_thinned(c.band)] for c in curves if c.band is not None]
    return moment.made["spots"] | {"events": foreseen.events, "bands": _rounded(bands)}


def _hopefuls(moment: Moment, foreseen: plots.Foreseen) -> set[int]:
    trials = moment.chronicle.view.trials
    going = [t for t in foreseen.row if trials[TrialId(t)].ended is None]
    return set(sorted(going, key=lambda t: -foreseen.chance[foreseen.row[t]])[:MOST_BANDS])


def _thinned(band: Any) -> list[tuple[float, ...]]:
    """Every n-th step of a band, the last one included."""
    every = -(-len(band.steps) // BAND_STEPS)
    kept = sorted({*range(0, len(band.steps), every), len(band.steps) - 1})
    return [tuple(line[i] for i in kept) for line in msgspec.structs.astuple(band)]


def _importance(moment: Moment) -> dict[str, Any]:
    value = plots.importance(moment.chronicle, moment.foreseen, of="value")
    speed = plots.importance(moment.chronicle, moment.foreseen, of="speed")
    return {"value": msgspec.to_builtins(value), "speed": msgspec.to_builtins(speed)}


def _speeds(moment: Moment) -> dict[str, Any]:
    drawn = plots.step_speeds(moment.chronicle)
    rows = [[s.trial, s.step_s, s.predicted_s, s.label] for s in drawn.speeds]
    return {"events": drawn.events, "factor": drawn.error, "speeds": rows}


def _calibration(moment: Moment) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(plots.calibration(moment.chronicle, moment.foreseen))
    return data


PANELS: dict[str, Callable[[Moment], dict[str, Any]]] = {
    "forecasts": lambda moment: _forecasts(moment, None),
    "importance": _importance,
    "speeds": _speeds,
    "calibration": _calibration,
}


def _rounded(value: Any) -> Any:
    """Four digits are enough for a picture."""
    match value:
        case float():
            return float(f"{value:.4g}")
        case dict():
            return {key: _rounded(part) for key, part in value.items()}
        case list() | tuple():
            return [_rounded(part) for part in value]
        case _:
            return value
