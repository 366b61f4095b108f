from __future__ import annotations

import math

import pytest

from foresail.core import events as ev
from foresail.core.goal import Goal, Mode
from foresail.core.spec import StudySpec
from foresail.core.view import View, apply, fold
from foresail.core.words import AttemptId, Outcome, Status, TrialId
from foresail.errors import InternalError

A, B = AttemptId("0-1"), AttemptId("0-2")


def begun(*, mode: Mode = "max", cores: tuple[int, ...] = (0, 1), trials: int = 1) -> View:
    """A study with waiting trials."""
    view = fold(
        [
            ev.StudyCreated(at_s=0.0, spec=StudySpec("s", {}, Goal("acc", mode, trials=100))),
            ev.DriverStarted(at_s=0.0, cores=cores),
        ]
    )
    for n in range(trials):
        apply(view, ev.TrialProposed(at_s=0.0, trial=TrialId(n), config={"lr": n}, origin="random"))
    return view


def grant(view: View, attempt: AttemptId = A, *, trial: int = 0, cores: tuple[int, ...] = (0,), step: int = 0) -> None:
    number = int(attempt.split("-")[1])
    apply(
        view,
        ev.AttemptGranted(
            at_s=view.now_s, attempt=attempt, trial=TrialId(trial), number=number, cores=cores, resume_step=step
        ),
    )


def point(step: int, value: float | None, attempt: AttemptId = A, *, seconds: float = 1.0) -> ev.PointReported:
    metrics = {"other": 0.0} if value is None else {"acc": value}
    return ev.PointReported(at_s=1.0, attempt=attempt, step=step, metrics=metrics, seconds=seconds)


def end(attempt: AttemptId = A, outcome: Outcome = Outcome.YIELDED, *, at_s: float = 10.0) -> ev.AttemptEnded:
    return ev.AttemptEnded(at_s=at_s, attempt=attempt, outcome=outcome, detail="boom")


@pytest.mark.parametrize(
    ("steps", "kind"),
    [([1, 2, 3], range), ([5, 6, 7], range), ([2], range), ([1, 3, 4], None), ([10, 20, 30], None)],
)
def test_a_curve_grows_with_and_without_gaps(steps: list[int], kind: type | None) -> None:
    view = begun()
    grant(view)
    fold((point(step, step / 100) for step in steps), view)
    trial = view.trial(TrialId(0))
    assert list(trial.steps) == steps
    assert list(trial.values) == [step / 100 for step in steps]
    assert (trial.last_step, trial.last_value) == (steps[-1], steps[-1] / 100)
    assert isinstance(trial.steps, range) == (kind is range)  # a curve without gaps stores no steps


def test_a_step_trained_again_after_a_crash_replaces_its_point() -> None:
    view = begun()
    grant(view)
    fold([point(1, 0.1), point(2, 0.9), point(3, 0.3), end(outcome=Outcome.LOST)], view)
    assert view.best == (0, 2, 0.9)
    grant(view, B, step=1)
    apply(view, ev.PointReported(at_s=11.0, attempt=B, step=2, metrics={"acc": 0.2}, seconds=5.0))
    trial = view.trial(TrialId(0))
    assert list(trial.values) == [0.1, 0.2, 0.3]
    assert (trial.best_value, trial.best_step) == (0.3, 3)
    assert view.best == (0, 3, 0.3)
    assert trial.seconds == 3.0  # what was trained twice counts once


def test_a_new_step_between_old_ones_is_inserted() -> None:
    view = begun()
    grant(view)
    fold([point(2, 0.2), point(4, 0.4), end()], view)
    grant(view, B, step=2)
    apply(view, ev.PointReported(at_s=11.0, attempt=B, step=3, metrics={"acc": 0.3}))
    assert list(view.trial(TrialId(0)).steps) == [2, 3, 4]


def test_seconds_of_points_without_the_metric_count() -> None:
    view = begun()
    grant(view)
    fold([point(step, 0.5 if step % 5 == 0 else None) for step in range(1, 11)], view)
    trial = view.trial(TrialId(0))
    assert list(trial.steps) == [5, 10]
    assert trial.seconds == 10.0
    assert trial.step_s == 1.0


def test_news_from_the_past_is_stale() -> None:
    view = begun()
    grant(view)
    fold([point(1, 0.1), point(2, 0.2)], view)
    saved = ev.CheckpointSaved(at_s=1.0, attempt=A, step=2, path="c")
    assert view.is_stale(point(2, 0.5))
    assert view.is_stale(point(1, 0.5))
    assert not view.is_stale(point(3, 0.5))
    assert not view.is_stale(saved)
    apply(view, saved)
    assert view.is_stale(saved)
    apply(view, end())
    late = [
        point(3, 0.5),
        end(),
        ev.AttemptStarted(at_s=1.0, attempt=A),
        ev.HorizonDeclared(at_s=1.0, attempt=A, max_steps=3),
        ev.CheckpointDeleted(at_s=1.0, path="unknown"),
        ev.CheckpointSaved(at_s=1.0, attempt=A, step=3, path="d"),
    ]
    assert all(view.is_stale(event) for event in late)
    assert not view.is_stale(ev.Ticked(at_s=1.0))


@pytest.mark.parametrize(("mode", "best"), [("max", (0, 2, 0.8)), ("min", (1, 1, 0.1))])
def test_best_follows_the_mode_and_skips_what_is_not_finite(mode: Mode, best: tuple[int, int, float]) -> None:
    view = begun(mode=mode, trials=2)
    grant(view)
    other = AttemptId("1-1")
    grant(view, other, trial=1, cores=(1,))
    fold([point(1, math.nan), point(2, 0.8), point(1, 0.1, other), point(2, math.inf, other)], view)
    fold([point(3, -math.inf, other)], view)
    assert view.best == best


def test_a_diverged_trial_is_never_the_best() -> None:
    view = begun(trials=2)
    grant(view)
    other = AttemptId("1-1")
    grant(view, other, trial=1, cores=(1,))
    fold([point(1, 0.9), point(1, 0.4, other), end()], view)
    apply(view, ev.TrialEnded(at_s=10.0, trial=TrialId(0), status=Status.DIVERGED))
    assert view.best == (1, 1, 0.4)


def test_cores_come_back_and_time_is_charged() -> None:
    view = begun()
    grant(view, cores=(0, 1))
    assert view.free_cores == []
    apply(view, ev.Ticked(at_s=4.0))
    assert view.device_s_used == 8.0
    apply(view, end(at_s=5.0))
    assert view.free_cores == [0, 1]
    assert view.device_s_used == view.device_s == view.trial(TrialId(0)).device_s == 10.0


def test_a_new_driver_with_other_cores_leaves_held_ones_held() -> None:
    view = begun(cores=(0, 1))
    grant(view, cores=(1,))
    apply(view, ev.DriverStarted(at_s=1.0, cores=(1, 2)))
    assert view.free_cores == [2]
    apply(view, end())
    assert view.free_cores == [1, 2]
    apply(view, ev.DriverStarted(at_s=11.0, cores=(0,)))
    assert view.free_cores == [0]


def test_the_last_checkpoint_that_is_left_counts() -> None:
    view = begun()
    grant(view)
    for step in (1, 2):
        fold([point(step, step / 10), ev.CheckpointSaved(at_s=1.0, attempt=A, step=step, path=f"c{step}")], view)
    trial = view.trial(TrialId(0))
    assert trial.checkpoint is not None
    assert (trial.checkpoint.step, trial.checkpoint.value) == (2, 0.2)
    apply(view, ev.CheckpointDeleted(at_s=2.0, path="c2"))
    assert trial.checkpoint.step == 1
    apply(view, ev.CheckpointDeleted(at_s=2.0, path="c1"))
    assert trial.checkpoint is None


def test_status_is_derived() -> None:
    view = begun()
    trial = view.trial(TrialId(0))
    seen = [view.status(trial)]
    grant(view)
    seen.append(view.status(trial))
    apply(view, ev.AttemptEnding(at_s=1.0, attempt=A))
    seen.append(view.status(trial))
    apply(view, end())
    seen.append(view.status(trial))
    apply(view, ev.TrialEnded(at_s=10.0, trial=TrialId(0), status=Status.ENDED, detail="weak"))
    seen.append(view.status(trial))
    assert seen == [Status.WAITING, Status.RUNNING, Status.YIELDING, Status.SUSPENDED, Status.ENDED]


def test_failures_are_counted_but_not_losses() -> None:
    view = begun()
    trial = view.trial(TrialId(0))
    for n, outcome in enumerate([Outcome.LOST, Outcome.FAILED, Outcome.OUT_OF_MEMORY, Outcome.YIELDED], start=1):
        attempt = AttemptId(f"0-{n}")
        grant(view, attempt)
        apply(view, end(attempt, outcome))
    assert trial.failures == 2
    assert trial.detail == "boom"
    assert view.first_failures == ["boom"]


def test_a_stopped_study_goes_on_with_a_new_driver() -> None:
    view = begun()
    fold([ev.StopRequested(at_s=1.0), ev.StudyEnding(at_s=1.0, end="stopped", why="Ctrl-C")], view)
    assert not view.can_open
    apply(view, ev.DriverStarted(at_s=2.0, cores=(0,)))
    assert view.can_open
    assert not view.stop_requested


@pytest.mark.parametrize(
    "event",
    [
        ev.TrialProposed(at_s=1.0, trial=TrialId(5), config={}, origin="random"),
        ev.AttemptGranted(at_s=1.0, attempt=B, trial=TrialId(0), number=2, cores=(1,)),
        ev.AttemptGranted(at_s=1.0, attempt=AttemptId("1-1"), trial=TrialId(1), number=1, cores=(0,)),
        ev.AttemptGranted(at_s=1.0, attempt=AttemptId("9-1"), trial=TrialId(9), number=1, cores=(1,)),
        ev.AttemptStarted(at_s=1.0, attempt=B),
        ev.CheckpointDeleted(at_s=1.0, path="unknown"),
        ev.TrialEnded(at_s=1.0, trial=TrialId(2), status=Status.ENDED),
        ev.Ticked(at_s=0.5),
    ],
    ids=repr,
)
def test_what_cannot_follow_is_an_error_of_ours(event: ev.Event) -> None:
    view = begun(trials=3)
    grant(view)
    apply(view, ev.TrialEnded(at_s=1.0, trial=TrialId(2), status=Status.ENDED))
    with pytest.raises(InternalError):
        apply(view, event)
