"""Hypothesis strategies: any event (`events`), and logs that could have happened (`logs`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Any, get_args

from hypothesis import strategies as st

from foresail.core import events as ev
from foresail.core.goal import Goal, Mode
from foresail.core.plan import Verdict
from foresail.core.reason import Reason, Rule
from foresail.core.spec import Choice, Entry, Resources, StudySpec
from foresail.core.view import View, apply
from foresail.core.words import Act, AttemptId, Label, Outcome, Status, TrialId, attempt_id

_names = st.text(max_size=12)
_numbers = st.floats()
_finite = st.floats(allow_nan=False, allow_infinity=False)
_counts = st.integers(0, 2**63 - 1)
_scalars = st.booleans() | st.integers(-(2**63), 2**63 - 1) | _numbers | _names
_json = st.recursive(
    st.none() | _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=3)
)
_attempt_ids = st.builds(attempt_id, st.integers(0, 999).map(TrialId), st.integers(1, 99))
_trials = st.integers(0, 10**6).map(TrialId)
_cores = st.lists(st.integers(0, 255), max_size=4, unique=True).map(tuple)
_ENDED = (Status.COMPLETED, Status.ENDED, Status.DIVERGED, Status.FAILED)
_reasons = st.builds(Reason, st.sampled_from(Rule), st.dictionaries(_names, _numbers, max_size=3))
_verdicts = st.builds(
    Verdict, _trials, st.sampled_from(Act), _reasons, cores=_counts, label=st.none() | st.sampled_from(Label)
)


def specs() -> st.SearchStrategy[StudySpec]:
    """Any specification, sensible or not."""
    seconds = st.none() | st.floats(1e-9, 1e9)
    goals = st.builds(
        Goal,
        st.from_regex(r"[a-z_][a-z0-9_./@-]{0,9}", fullmatch=True),
        st.sampled_from(get_args(Mode)),
        target=st.none() | st.floats(allow_nan=False, allow_infinity=False),
        within_s=seconds,
        trials=st.integers(1, 2**40),
        device_s=seconds,
    )
    choices = st.builds(Choice, _names, st.dictionaries(_names, _json, max_size=3))
    entries = st.builds(
        Entry,
        function=_names,
        command=st.lists(_names, max_size=3).map(tuple),
        cwd=_names,
        env=st.dictionaries(_names, _names, max_size=2),
    )
    return st.builds(
        StudySpec,
        name=_names,
        space=st.dictionaries(_names, _json, max_size=3),
        goal=goals,
        seed=_counts,
        policy=choices,
        search=choices,
        resources=st.builds(Resources, workers=st.none() | _counts, cores_per_trial=_counts),
        entry=entries,
        max_steps=st.none() | _counts,
        grace_s=_numbers,
    )


def _fields() -> dict[type[Any], dict[str, st.SearchStrategy[Any]]]:
    attempt, text, number = _attempt_ids, st.text(max_size=40), _numbers
    return {
        ev.StudyCreated: {"spec": specs()},
        ev.DriverStarted: {
            "cores": _cores,
            "devices": st.lists(_names, max_size=2).map(tuple),
            "host": text,
            "wall_time": text,
        },
        ev.MachinesChanged: {"machines": st.lists(_cores, max_size=3).map(tuple)},
        ev.DriverStopped: {"why": text},
        ev.Ticked: {},
        ev.StopRequested: {"by": text},
        ev.AttemptStarted: {"attempt": attempt, "pid": st.none() | _counts},
        ev.HorizonDeclared: {"attempt": attempt, "max_steps": _counts},
        ev.PointReported: {
            "attempt": attempt,
            "step": _counts,
            "metrics": st.dictionaries(_names, number, max_size=4),
            "seconds": number,
        },
        ev.Noted: {"attempt": attempt, "notes": st.dictionaries(_names, _json, max_size=3)},
        ev.CheckpointSaved: {
            "attempt": attempt,
            "step": _counts,
            "path": text,
            "bytes": _counts,
            "digest": text,
            "seconds": number,
        },
        ev.CheckpointDeleted: {"path": text},
        ev.AttemptEnded: {
            "attempt": attempt,
            "outcome": st.sampled_from(Outcome),
            "detail": text,
            "exit_code": st.none() | st.integers(-255, 255),
        },
        ev.TrialProposed: {
            "trial": _trials,
            "config": st.dictionaries(_names, _scalars, max_size=4),
            "origin": text,
        },
        ev.SearchExhausted: {"why": text},
        ev.Planned: {"decision": _counts, "verdicts": st.lists(_verdicts, max_size=3).map(tuple)},
        ev.AttemptGranted: {
            "attempt": attempt,
            "trial": _trials,
            "number": _counts,
            "cores": _cores,
            "resume_step": _counts,
            "checkpoint": text,
        },
        ev.AttemptEnding: {"attempt": attempt},
        ev.AttemptSilent: {"attempt": attempt, "silent_s": number},
        ev.TrialEnded: {"trial": _trials, "status": st.sampled_from(_ENDED), "detail": text},
        ev.StudyEnding: {"end": text, "why": text},
        ev.StudyEnded: {"end": text, "why": text, "summary": st.dictionaries(_names, number, max_size=3)},
    }


def events(kind: type[Any] | None = None) -> st.SearchStrategy[ev.Event]:
    """Any event of one `kind`, or of every kind; each alone, with any values in it."""
    kinds = _fields() if kind is None else {kind: _fields()[kind]}
    return st.one_of(*(st.builds(k, at_s=_finite, **fields) for k, fields in kinds.items()))


def event_kinds() -> list[type[Any]]:
    """Every kind of event that `events` makes."""
    return list(_fields())


def logs(max_events: int = 120) -> st.SearchStrategy[list[ev.Event]]:
    """A log that could have happened, of `max_events` at most.

    One study, its trials, attempts, points, crashes and ends, in a possible order. Steps may have gaps, may be
    trained again after a crash, and metrics may lack the goal's or be NaN. Hypothesis chooses a length and a seed
    (and finds the shortest log of a seed that breaks a law); the seed chooses the rest, which gives richer logs than
    thousands of single choices do.
    """
    return st.builds(_log, st.integers(0, max_events - 2), st.integers(0, 2**32 - 1))


def _log(moves: int, seed: int) -> list[ev.Event]:
    rng = Random(seed)
    view = View()
    log: list[ev.Event] = []

    def happen(event: ev.Event) -> None:
        apply(view, event)
        log.append(event)

    spec = StudySpec("log", {}, Goal("m", rng.choice(get_args(Mode)), trials=1000), max_steps=rng.choice([None, 20]))
    happen(ev.StudyCreated(at_s=0.0, spec=spec))
    happen(ev.DriverStarted(at_s=0.0, cores=tuple(range(rng.randint(1, 3)))))
    for _ in range(moves):
        at_s = view.now_s + rng.choice([0.0, 0.5, 1.0])
        move = rng.choice(_MOVES)
        event = move(rng, view, at_s)
        if event is not None and not view.is_stale(event):
            happen(event)
    return log


_Move = Callable[[Random, View, float], ev.Event | None]


def _propose(rng: Random, view: View, at_s: float) -> ev.Event | None:
    if len(view.trials) >= 3:  # few trials with much history say more than many with little
        return None
    return ev.TrialProposed(at_s=at_s, trial=TrialId(len(view.trials)), config={"lr": 0.1}, origin="random")


def _grant(rng: Random, view: View, at_s: float) -> ev.Event | None:
    ready = [*view.waiting, *view.suspended]
    if not ready or not view.free_cores:
        return None
    trial = view.trial(rng.choice(ready))
    number, saved = trial.attempts + 1, trial.checkpoint
    return ev.AttemptGranted(
        at_s=at_s,
        attempt=attempt_id(trial.id, number),
        trial=trial.id,
        number=number,
        cores=tuple(view.free_cores[: rng.randint(1, len(view.free_cores))]),
        resume_step=saved.step if saved else 0,
        checkpoint=saved.path if saved else "",
    )


def _live(rng: Random, view: View) -> AttemptId | None:
    return rng.choice(list(view.attempts)) if view.attempts else None


def _start(rng: Random, view: View, at_s: float) -> ev.Event | None:
    attempt = _live(rng, view)
    return None if attempt is None else ev.AttemptStarted(at_s=at_s, attempt=attempt, pid=1)


def _point(rng: Random, view: View, at_s: float) -> ev.Event | None:
    attempt = _live(rng, view)
    if attempt is None:
        return None
    metrics = {"other": 1.0}
    if rng.randint(0, 4):
        metrics["m"] = rng.choice([0.1, 0.2, 0.3, 0.5, rng.random(), rng.random(), math.nan, math.inf])
    step = view.attempts[attempt].step + rng.choice([1, 1, 1, 2, 5, 0])
    return ev.PointReported(at_s=at_s, attempt=attempt, step=step, metrics=metrics, seconds=0.5)


def _save(rng: Random, view: View, at_s: float) -> ev.Event | None:
    attempt = _live(rng, view)
    if attempt is None:
        return None
    step = view.attempts[attempt].step
    return ev.CheckpointSaved(at_s=at_s, attempt=attempt, step=step, path=f"{attempt}/{step}", bytes=10, seconds=0.1)


def _delete(rng: Random, view: View, at_s: float) -> ev.Event | None:
    if not view.checkpoints:
        return None
    return ev.CheckpointDeleted(at_s=at_s, path=rng.choice(list(view.checkpoints)))


def _leave(rng: Random, view: View, at_s: float) -> ev.Event | None:
    attempt = _live(rng, view)
    return None if attempt is None else ev.AttemptEnding(at_s=at_s, attempt=attempt)


def _end_attempt(rng: Random, view: View, at_s: float) -> ev.Event | None:
    attempt = _live(rng, view)
    if attempt is None:
        return None
    return ev.AttemptEnded(at_s=at_s, attempt=attempt, outcome=rng.choice(list(Outcome)), detail="why")


def _end_trial(rng: Random, view: View, at_s: float) -> ev.Event | None:
    open_trials = [t.id for t in view.trials if t.ended is None]
    if not open_trials:
        return None
    return ev.TrialEnded(at_s=at_s, trial=rng.choice(open_trials), status=rng.choice(_ENDED))


def _plan(rng: Random, view: View, at_s: float) -> ev.Event | None:
    if not view.trials:
        return None
    trial = rng.choice(view.trials).id
    verdict = Verdict(trial, rng.choice(list(Act)), Reason(Rule.FIRST_IN, {"order": 0.0}))
    return ev.Planned(at_s=at_s, decision=view.decisions, verdicts=(verdict,))


def _drive_again(rng: Random, view: View, at_s: float) -> ev.Event | None:
    return ev.DriverStarted(at_s=at_s, cores=tuple(range(rng.randint(1, 3))))


_MOVES: tuple[_Move, ...] = (
    *(_propose, _grant, _grant, _grant, _start),
    *(_point, _point, _point, _point, _point, _point),
    *(_save, _delete, _leave, _end_attempt, _end_attempt, _end_trial, _plan, _drive_again),
)
