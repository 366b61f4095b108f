"""A study at any event of its log, and what changed between two events.

The page asks "what changed since event n?" and merges the answer into what it has. Law: what it then has is what a
fresh page gets, `merge(changes(0, n), changes(n, m)) == changes(0, m)`, for the present and for any past moment.

Facts of a trial that seldom change (its status, its class, its chance) are kept once a change, with the number of the
event that changed them; points and attempts with the event that told of them. So a past moment is looked up by
bisection and nothing is folded again.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from foresail.api.story import trial_of_checkpoint
from foresail.core import events as ev
from foresail.core.view import Trial, View, apply
from foresail.core.words import Label, Status, TrialId, trial_of
from foresail.errors import CallerError
from foresail.space import Knob, Space

STATUSES, LABELS = tuple(Status), tuple(Label)
FIRST_STEPS = (1, 2, 4, 8, 16, 32)
"""Steps whose points are never left out where curves are thinned: curves bend early."""


class Facts(NamedTuple):
    """Of a trial, from one event on.

    `p`, `final`, `ert_s`: the chance, the expected last value and the expected seconds to the target that its latest
    recorded decision rested on. `granted_s`: since when it holds `cores` cores; None if it holds none.
    """

    status: int
    label: int | None
    p: float | None
    final: float | None
    ert_s: float | None
    max_steps: int | None
    attempts: int
    device_s: float
    cores: int
    granted_s: float | None


class Life(Struct):
    """An attempt: who held which cores, from when to when. `ended`: number of the event, 0 while it lives."""

    trial: int
    number: int
    cores: tuple[int, ...]
    label: int | None
    granted: int
    granted_s: float
    ended: int = 0
    ended_s: float = 0.0
    outcome: str = ""

    def told(self, since: int, until: int) -> list[Any] | None:
        """As it is sent; None if nothing about it happened in (since, until]."""
        over = 0 < self.ended <= until
        if self.granted > until or (self.granted <= since and not (over and self.ended > since)):
            return None
        end = [_short(self.ended_s), self.outcome] if over else [None, ""]
        return [self.trial, self.number, self.cores, self.label, _short(self.granted_s), *end]


class Track:
    """A trial through the log.

    `told`: numbers of the events with a point of the goal's metric; `step`, `value`, `best`, `best_step` and `step_s`
    are parallel to it: the point, and the trial's best and its seconds a step with it. `noted`: numbers of the other
    events that tell of the trial.
    """

    __slots__ = (
        "best",
        "best_step",
        "config",
        "facts",
        "facts_at",
        "noted",
        "origin",
        "step",
        "step_s",
        "told",
        "touched",
        "unit",
        "value",
    )

    def __init__(self, trial: Trial, knobs: Mapping[str, Knob]) -> None:
        self.config, self.origin = dict(trial.config), trial.origin
        placed = ((knob, trial.config.get(name)) for name, knob in knobs.items())
        self.unit = [None if value is None else _short(knob.unit(value)) for knob, value in placed]
        self.facts_at, self.facts = array("q"), list[Facts]()
        self.noted, self.told = array("q"), array("q")
        self.step, self.value = array("q"), array("d")
        self.best, self.best_step, self.step_s = array("d"), array("q"), array("d")
        self.touched = 0

    def note_facts(self, event: int, facts: Facts) -> None:
        if not self.facts or self.facts[-1] != facts:
            self.facts_at.append(event)
            self.facts.append(facts)
            self.touched = event

    def note_point(self, event: int, step: int, value: float, trial: Trial) -> None:
        self.told.append(event)
        self.step.append(step)
        self.value.append(value)
        self.best.append(math.nan if trial.best_value is None else trial.best_value)
        self.best_step.append(trial.best_step)
        self.step_s.append(trial.step_s or math.nan)
        self.touched = event

    def facts_until(self, event: int) -> Facts:
        if self.facts_at[-1] <= event:
            return self.facts[-1]
        return self.facts[bisect_right(self.facts_at, event) - 1]

    def events_until(self, event: int) -> list[int]:
        """Numbers of the events that tell of the trial."""
        return [*self.told[: self.points_until(event)], *self.noted[: bisect_right(self.noted, event)]]

    def points_until(self, event: int) -> int:
        return len(self.told) if self.touched <= event else bisect_right(self.told, event)


class Moment(NamedTuple):
    """Facts of the study from one event on."""

    cores: tuple[int, ...] = ()
    drivers: int = 0
    best: tuple[int, int, float] | None = None
    exhausted: str = ""
    is_stopping: bool = False
    end: str = ""
    why: str = ""
    is_over: bool = False


class Changes(Struct):
    """What changed in (since, event]; everything up to `event` where `since` is 0.

    `configs`: of new trials, number, origin, (name, value) pairs, and the place of each knob in 0 to 1 of its scale.
    `trials`: rows as `_row` makes them, of the trials that changed. `points`: trial, then step and value in turns.
    `lives`: attempts. `bests`: study seconds, trial, step and value of each change of the best; three None where it was
    taken back.
    """

    since: int
    event: int
    last: int
    now_s: float
    study: dict[str, Any]
    configs: list[list[Any]]
    trials: list[list[Any]]
    points: list[list[Any]]
    lives: list[list[Any]]
    bests: list[list[Any]]


class History:
    """Grows with the log: `note` takes the next event. `view` is the study now."""

    def __init__(self) -> None:
        self.view = View()
        self.tracks: list[Track] = []
        self.lives: list[Life] = []
        self._live: dict[str, Life] = {}
        self._proposed, self._times = array("q"), array("d")
        self._moments_at, self._moments = array("q", [0]), [Moment()]
        self._endings = list[int]()
        self._knobs: Mapping[str, Knob] | None = None

    @property
    def last(self) -> int:
        """Number of the latest event."""
        return self.view.events

    def note(self, event: ev.Event) -> None:
        """Take the next event of the log."""
        view = self.view
        apply(view, event)
        number = view.events
        self._times.append(event.at_s)
        handler = _NOTES.get(type(event))
        if handler is not None:
            handler(self, number, event)
        if type(event) is not ev.PointReported or view.best is not self._moments[-1].best:
            self._note_moment(number)

    def _note_moment(self, number: int) -> None:
        moment = _moment(self.view)
        if moment != self._moments[-1]:
            self._moments_at.append(number)
            self._moments.append(moment)

    def note_new(self, number: int, trial: TrialId) -> None:
        """Keep a new trial."""
        if self._knobs is None:
            space = self.view.spec.space
            self._knobs = Space.from_dict(space).knobs if space else {}
        self.tracks.append(Track(self.view.trials[trial], self._knobs))
        self._proposed.append(number)
        self.note_trial(number, trial)

    def note_trial(self, number: int, trial: TrialId) -> None:
        """Event `number` tells of a trial: keep what is known of it then, if that is new."""
        self.tracks[trial].noted.append(number)
        self.tracks[trial].note_facts(number, _facts(self.view, self.view.trials[trial]))

    # --- questions -------------------------------------------------------------------------------------------

    def time_of(self, event: int) -> float:
        """Study seconds of an event."""
        return self._times[event - 1] if event > 0 else 0.0

    def of_trial(self, trial: int, until: int | None = None) -> list[int]:
        """Numbers of the events that tell of a trial, up to `until`; rising. Those of the study's end are among them.

        Raises:
            CallerError: there was no such trial then.
        """
        until = self.last if until is None else min(until, self.last)
        known = bisect_right(self._proposed, until)
        if not 0 <= trial < known:
            raise CallerError(f"there is no trial {trial}", allowed=f"0 to {known - 1}" if known else "no trial yet")
        ends = (number for number in self._endings if number <= until)
        return sorted((*self.tracks[trial].events_until(until), *ends))

    def stride(self, budget: int) -> int:
        """Which steps to send so that no more than about `budget` points are sent: every n-th."""
        return max(1, -(-self.view.points // budget))

    def changes(self, since: int, until: int | None = None, every: int = 1) -> Changes:
        """What changed after event `since` up to event `until`, the latest if not given.

        Args:
            every: only points at multiples of so many steps (and at `FIRST_STEPS`).
        """
        until = self.last if until is None else max(0, min(until, self.last))
        since = since if 0 <= since <= until else 0
        known = bisect_right(self._proposed, until)
        started = bisect_right(self._proposed, since)
        touched = [(n, t) for n, t in enumerate(self.tracks[:known]) if t.touched > since]
        new = enumerate(self.tracks[started:known], started)
        lives = (life.told(since, until) for life in self.lives)
        return Changes(
            since=since,
            event=until,
            last=self.last,
            now_s=self.time_of(until),
            study=self._study(until, known),
            configs=[[n, t.origin, list(t.config.items()), t.unit] for n, t in new],
            trials=[_row(n, track, until) for n, track in touched],
            points=[told for n, track in touched if len(told := [n, *_points(track, since, until, every)]) > 1],
            lives=[life for life in lives if life is not None],
            bests=list(self._bests(since, until)),
        )

    def _bests(self, since: int, until: int) -> Iterator[list[Any]]:
        first, last = (bisect_right(self._moments_at, event) for event in (since, until))
        for at in range(max(1, first), last):
            best = self._moments[at].best
            if best != self._moments[at - 1].best:
                trial, step, value = best or (None, None, None)
                yield [
                    _short(self.time_of(self._moments_at[at])),
                    trial,
                    step,
                    None if value is None else _short(value),
                ]

    def _study(self, until: int, known: int) -> dict[str, Any]:
        moment = self._moments[bisect_right(self._moments_at, until) - 1]
        statuses, labels = [0] * len(STATUSES), [0] * len(LABELS)
        device_s, now_s, points = 0.0, self.time_of(until), 0
        for track in self.tracks[:known]:
            facts = track.facts_until(until)
            statuses[facts.status] += 1
            if facts.label is not None:
                labels[facts.label] += 1
            device_s += facts.device_s + (
                facts.cores * (now_s - facts.granted_s) if facts.granted_s is not None else 0.0
            )
            points += track.points_until(until)
        return moment._asdict() | {
            "trials": known,
            "points": points,
            "device_s": _short(device_s),
            "statuses": statuses,
            "labels": labels,
        }


# --- what an event tells -----------------------------------------------------------------------------------------


def _moment(view: View) -> Moment:
    end = view.ended or view.ending
    return Moment(
        view.cores,
        view.drivers,
        view.best,
        view.exhausted,
        view.stop_requested,
        end.end if end else "",
        end.why if end else "",
        view.ended is not None,
    )


def _facts(view: View, trial: Trial) -> Facts:
    verdict = trial.verdict
    numbers = verdict.reason.numbers if verdict else {}
    live = view.attempts.get(trial.attempt) if trial.attempt is not None else None
    return Facts(
        STATUSES.index(view.status(trial)),
        LABELS.index(verdict.label) if verdict and verdict.label else None,
        numbers.get("p"),
        numbers.get("final"),
        numbers.get("ert_s", numbers.get("expected_s")),
        trial.max_steps,
        trial.attempts,
        trial.device_s,
        len(live.cores) if live else 0,
        live.granted_s if live else None,
    )


def _proposed(history: History, number: int, event: ev.TrialProposed) -> None:
    history.note_new(number, event.trial)


def _planned(history: History, number: int, event: ev.Planned) -> None:
    for verdict in event.verdicts:
        history.note_trial(number, verdict.trial)


def _granted(history: History, number: int, event: ev.AttemptGranted) -> None:
    label = history.tracks[event.trial].facts[-1].label
    life = Life(event.trial, event.number, event.cores, label, number, event.at_s)
    history.lives.append(life)
    history._live[event.attempt] = life
    history.note_trial(number, event.trial)


def _ended(history: History, number: int, event: ev.AttemptEnded) -> None:
    life = history._live.pop(event.attempt)
    life.ended, life.ended_s, life.outcome = number, event.at_s, str(event.outcome)
    history.note_trial(number, TrialId(life.trial))


def _point(history: History, number: int, event: ev.PointReported) -> None:
    trial = history.view.trials[trial_of(event.attempt)]
    value = event.metrics.get(history.view.spec.goal.metric)
    if value is not None:
        history.tracks[trial.id].note_point(number, event.step, value, trial)


def _of_attempt(
    history: History,
    number: int,
    event: ev.AttemptStarted | ev.AttemptEnding | ev.AttemptSilent | ev.HorizonDeclared | ev.CheckpointSaved,
) -> None:
    history.note_trial(number, trial_of(event.attempt))


def _deleted(history: History, number: int, event: ev.CheckpointDeleted) -> None:
    trial = trial_of_checkpoint(event.path)
    if trial is not None and trial < len(history.tracks):
        history.note_trial(number, trial)


def _of_trial(history: History, number: int, event: ev.TrialEnded) -> None:
    history.note_trial(number, event.trial)


def _ending(history: History, number: int, event: ev.StudyEnding) -> None:
    history._endings.append(number)


_NOTES: dict[type, Callable[[History, int, Any], None]] = {
    ev.TrialProposed: _proposed,
    ev.Planned: _planned,
    ev.AttemptGranted: _granted,
    ev.AttemptEnded: _ended,
    ev.AttemptStarted: _of_attempt,
    ev.AttemptEnding: _of_attempt,
    ev.AttemptSilent: _of_attempt,
    ev.HorizonDeclared: _of_attempt,
    ev.CheckpointSaved: _of_attempt,
    ev.CheckpointDeleted: _deleted,
    ev.PointReported: _point,
    ev.TrialEnded: _of_trial,
    ev.StudyEnding: _ending,
}


# --- as it is sent -----------------------------------------------------------------------------------------------


def _row(number: int, track: Track, until: int) -> list[Any]:
    """number, the facts, then of its points so far: step, value, best, step of the best, seconds a step."""
    upto = track.points_until(until)
    facts = [_short(fact) if isinstance(fact, float) else fact for fact in track.facts_until(until)]
    if not upto:
        return [number, *facts, 0, None, None, 0, None]
    last = upto - 1
    values = (_short(track.value[last]), _short(track.best[last]))
    return [number, *facts, track.step[last], *values, track.best_step[last], _short(track.step_s[last])]


def _points(track: Track, since: int, until: int, every: int) -> Iterator[float | int | None]:
    for at in range(track.points_until(since), track.points_until(until)):
        step = track.step[at]
        if step % every == 0 or step in FIRST_STEPS:
            yield step
            yield _short(track.value[at])


def _short(value: float) -> float | None:
    """Six digits are enough for a picture; what is not finite is None."""
    return float(f"{value:.6g}") if math.isfinite(value) else None


def follow(history: History, events: Iterable[ev.Event]) -> History:
    """`history` after `events`."""
    for event in events:
        history.note(event)
    return history
