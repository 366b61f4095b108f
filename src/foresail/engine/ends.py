"""How trials and studies end by themselves: divergence, completion, failure, silence, targets, budgets, deadlines."""

from __future__ import annotations

import math
from collections.abc import Iterator

from foresail.core import events as ev
from foresail.core.commands import Kill
from foresail.core.view import View
from foresail.core.words import Outcome, Status, trial_of
from foresail.engine.reconcile import Move, end_trial

TARGET = "target"
NEARLY = 1.0 - 1e-9
"""Core-seconds are sums of differences: at the moment foreseen, rounding may leave the budget short of used up."""
FRUITLESS = 3
"""So many attempts of a trial in a row that vanish, or leave unasked, without a new step: the trial has failed."""
SAME_FAILURES = 3
"""So many trials that fail before their first point, and none that reports: the study stops and says so."""


def diverged(view: View, point: ev.PointReported) -> Iterator[Move]:
    """A value that is not finite ends its trial; not the one that has reached the target and is leaving."""
    metric = view.spec.goal.metric
    value = point.metrics.get(metric)
    trial = view.trial_of(point.attempt)
    won = view.ending is not None and view.ending.end == TARGET
    if value is not None and not math.isfinite(value) and trial.ended is None and not won:
        yield from end_trial(view, trial, Status.DIVERGED, f"{metric} = {value} at step {point.step}")


def after_attempt(view: View, fact: ev.AttemptEnded) -> Iterator[Move]:
    """The trial is done, or has failed too often, or waits."""
    trial = view.trials[trial_of(fact.attempt)]
    if trial.ended is not None:
        return
    if fact.outcome is Outcome.COMPLETED and trial.best_value is None:
        metric = view.spec.goal.metric
        yield from end_trial(view, trial, Status.FAILED, f"ended without a single report of {metric!r}")
    elif fact.outcome is Outcome.COMPLETED:
        yield from end_trial(view, trial, Status.COMPLETED, "")
    elif trial.failures > view.spec.retries or (trial.failures > trial.shortages and not trial.values):
        yield from end_trial(view, trial, Status.FAILED, trial.detail)
    elif trial.fruitless >= FRUITLESS:
        detail = (
            f"{trial.fruitless} attempts in a row were over without a new step; the last: {fact.detail or fact.outcome}"
        )
        yield from end_trial(view, trial, Status.FAILED, detail)


def silent(view: View) -> Iterator[Move]:
    """Attempts that have said nothing for as long as the study allows are killed: that is a failure."""
    limit_s = view.spec.silence_limit_s
    if limit_s is None:
        return
    for attempt in tuple(view.attempts.values()):
        if not attempt.ending and view.now_s >= attempt.heard_s + limit_s:
            yield Move(ev.AttemptSilent(at_s=view.now_s, attempt=attempt.id, silent_s=view.now_s - attempt.heard_s))
            yield Move(ev.AttemptEnding(at_s=view.now_s, attempt=attempt.id), Kill(attempt.id))


def due_end(view: View) -> ev.StudyEnding | None:
    """The first reason for which the study must end now."""
    goal, now_s = view.spec.goal, view.now_s
    if view.best is not None and goal.reached(view.best[2]):
        trial, step, value = view.best
        why = f"trial {trial} reached {goal.metric} = {value:.6g} at step {step}"
        return ev.StudyEnding(at_s=now_s, end=TARGET, why=why)
    if view.stop_requested:
        return ev.StudyEnding(at_s=now_s, end="stopped", why="a person asked to stop; resume it when you like")
    if goal.within_s is not None and now_s >= goal.within_s:
        return ev.StudyEnding(at_s=now_s, end="deadline", why=f"{goal.within_s:.6g} s have passed")
    if goal.device_s is not None and view.device_s_used >= goal.device_s * NEARLY:
        return ev.StudyEnding(at_s=now_s, end="device_time", why=f"{goal.device_s:.6g} core-seconds are used")
    return _all_fail(view)


def _all_fail(view: View) -> ev.StudyEnding | None:
    """Nobody has reported, and failures have come in such a number that those still running will not do better."""
    failed = view.counts[Status.FAILED]
    if view.points or failed < SAME_FAILURES or failed < SAME_FAILURES * len(view.attempts):
        return None
    details = (t.detail for t in reversed(view.trials) if t.ended is Status.FAILED)
    last = view.first_failures[-1] if view.first_failures else next(details)
    why = f"{failed} trials failed before their first report, and none has reported; the last: {last}"
    return ev.StudyEnding(at_s=view.now_s, end="failing", why=why)


def next_deadline_s(view: View) -> float | None:
    """Study time at which a limit will be reached if nothing happens before."""
    goal = view.spec.goal
    moments = []
    if view.ending is None and goal.within_s is not None:
        moments.append(goal.within_s)
    if view.ending is None and goal.device_s is not None and view.attempts:
        held = sum(len(attempt.cores) for attempt in view.attempts.values())
        moments.append(view.now_s + max(0.0, goal.device_s - view.device_s_used) / held)
    if view.spec.silence_limit_s is not None:
        heard = (attempt.heard_s for attempt in view.attempts.values() if not attempt.ending)
        moments += [heard_s + view.spec.silence_limit_s for heard_s in heard]
    return min(moments, default=None)
