"""Laws of the fold: it may be cut anywhere, and what it keeps up to date equals what could be counted afresh."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.core import events as ev
from foresail.core.codec import decode, encode
from foresail.core.view import fold
from foresail.core.words import Status
from foresail.testing.digest import view_digest
from foresail.testing.strategies import logs


@given(logs(), st.data())
@settings(deadline=None)
def test_the_fold_may_be_cut_anywhere(log: list[ev.Event], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(log)))
    assert view_digest(fold(log[cut:], fold(log[:cut]))) == view_digest(fold(log))


@given(logs())
@settings(deadline=None)
def test_a_recorded_log_folds_to_the_same_view(log: list[ev.Event]) -> None:
    assert view_digest(fold(decode(encode(event)) for event in log)) == view_digest(fold(log))


@given(logs())
@settings(deadline=None)
def test_cores_are_free_or_held_once(log: list[ev.Event]) -> None:
    view = fold(log)
    held = [core for attempt in view.attempts.values() for core in attempt.cores]
    assert len(held) == len(set(held))
    assert set(view.free_cores) == set(view.cores) - set(held)
    assert view.free_cores == sorted(set(view.free_cores))


@given(logs())
@settings(deadline=None)
def test_the_best_is_the_best_value_on_a_curve_that_did_not_diverge(log: list[ev.Event]) -> None:
    view = fold(log)
    sign = 1 if view.spec.goal.mode == "max" else -1
    finite = [
        (sign * value, trial.id, step)
        for trial in view.trials
        if trial.ended is not Status.DIVERGED
        for step, value in zip(trial.steps, trial.values, strict=True)
        if math.isfinite(value)
    ]
    if not finite:
        assert view.best is None
        return
    assert view.best is not None
    trial, step, value = view.best
    assert sign * value == max(finite)[0]
    assert (sign * value, trial, step) in finite


@given(logs())
@settings(deadline=None)
def test_curves_rise_in_steps_and_hold_the_last_report_of_each(log: list[ev.Event]) -> None:
    view = fold(log)
    trial_of: dict[str, int] = {}
    curves: list[dict[int, float]] = [{} for _ in view.trials]
    for event in log:
        match event:
            case ev.AttemptGranted():
                trial_of[event.attempt] = event.trial
            case ev.PointReported(metrics={"m": value}):
                curves[trial_of[event.attempt]][event.step] = value
    for trial, curve in zip(view.trials, curves, strict=True):
        assert list(trial.steps) == sorted(curve)
        assert repr(list(trial.values)) == repr([curve[step] for step in sorted(curve)])


@given(logs())
@settings(deadline=None)
def test_a_trial_is_in_one_place(log: list[ev.Event]) -> None:
    view = fold(log)
    for trial in view.trials:
        status = view.status(trial)
        assert (trial.id in view.waiting) == (status is Status.WAITING)
        assert (trial.id in view.suspended) == (status is Status.SUSPENDED)
    for ended in (Status.COMPLETED, Status.ENDED, Status.DIVERGED, Status.FAILED):
        assert view.counts[ended] == sum(trial.ended is ended for trial in view.trials)


@given(logs(), st.integers(0, 25))
@settings(deadline=None)
def test_best_until_grows_with_the_step(log: list[ev.Event], step: int) -> None:
    view = fold(log)
    mode = view.spec.goal.mode
    for trial in view.trials:
        earlier, later = trial.best_until(step, mode), trial.best_until(step + 1, mode)
        if earlier is not None:
            assert later is not None
            assert later >= earlier if mode == "max" else later <= earlier
        assert trial.best_until(trial.last_step, mode) == trial.best_value
