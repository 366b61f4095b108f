from __future__ import annotations

import math

import pytest

from foresail.core import events as ev
from foresail.core.commands import Kill, Yield
from foresail.core.goal import Goal
from foresail.core.words import Outcome, Status
from foresail.engine.ends import FRUITLESS, SAME_FAILURES, due_end, next_deadline_s
from foresail.testing.byhand import METRIC, ByHand

LONG = Goal(METRIC, "max", within_s=1e6)


def statuses(study: ByHand) -> list[Status]:
    return [study.view.status(trial) for trial in study.view.trials]


def end_of(study: ByHand) -> str:
    assert study.view.ending is not None
    return study.view.ending.end


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_ends_its_trial_at_once(value: float) -> None:
    study = ByHand(goal=LONG)
    study.point("0-1", 1, 0.9)
    study.point("0-1", 2, value)
    assert study.view.trials[0].ended is Status.DIVERGED
    assert f"{METRIC} = {value} at step 2" in study.view.trials[0].detail
    assert study.asked[-1] == Kill("0-1")
    assert study.view.best is None
    study.end("0-1", Outcome.KILLED)
    assert statuses(study) == [Status.DIVERGED, Status.RUNNING]


def test_who_reached_the_target_stays_the_winner() -> None:
    """What a trial reports while it leaves does not take back what it has reached."""
    study = ByHand(goal=Goal(METRIC, "max", target=0.8))
    study.point("0-1", 1, 0.9)
    assert end_of(study) == "target"
    study.point("0-1", 2, math.nan)
    study.end("0-1", Outcome.YIELDED)
    assert study.view.best == (0, 1, 0.9)
    assert study.view.ended is not None


def test_a_trial_that_reports_nothing_has_failed() -> None:
    study = ByHand(goal=LONG)
    study.end("0-1")
    assert study.view.trials[0].ended is Status.FAILED
    assert "without a single report" in study.view.trials[0].detail


@pytest.mark.parametrize("retries", [0, 1, 2])
def test_a_trial_that_has_shown_something_is_tried_again_so_many_times(retries: int) -> None:
    study = ByHand(goal=LONG, retries=retries)
    study.point("0-1", 1, 0.5)
    for n in range(retries + 1):
        assert study.view.trials[0].ended is None
        study.end(f"0-{n + 1}", Outcome.FAILED, "boom")
    assert study.view.trials[0].ended is Status.FAILED
    assert study.view.trials[0].detail == "boom"


def test_a_failure_before_the_first_point_is_not_tried_again() -> None:
    study = ByHand(goal=LONG, retries=5)
    study.end("0-1", Outcome.FAILED, "no such file")
    assert study.view.trials[0].ended is Status.FAILED


@pytest.mark.parametrize("outcome", [Outcome.LOST, Outcome.KILLED, Outcome.YIELDED])
def test_attempts_that_bring_nothing_come_to_an_end(outcome: Outcome) -> None:
    """A trial whose process is killed from outside each time must not be started for ever."""
    study = ByHand(goal=LONG)
    for n in range(FRUITLESS):
        assert study.view.trials[0].ended is None
        study.end(f"0-{n + 1}", outcome, "gone")
    assert study.view.trials[0].ended is Status.FAILED
    assert "without a new step; the last: gone" in study.view.trials[0].detail


def test_a_new_step_makes_up_for_losses() -> None:
    study = ByHand(goal=LONG)
    for n in range(4 * FRUITLESS):
        study.point(f"0-{n + 1}", n + 1, 0.5)
        study.end(f"0-{n + 1}", Outcome.LOST)
    assert statuses(study) == [Status.RUNNING]


def test_what_dies_with_its_driver_is_not_to_blame() -> None:
    study = ByHand(goal=LONG)
    for n in range(3 * FRUITLESS):
        study.controller.feed(ev.DriverStarted(at_s=study.view.now_s, cores=(0,)))
        study.end(f"0-{n + 1}", Outcome.LOST, "it vanished with the driver")
    assert statuses(study) == [Status.RUNNING]


def test_trials_that_all_fail_alike_stop_the_study() -> None:
    study = ByHand(goal=LONG)
    for n in range(SAME_FAILURES):
        assert study.view.ending is None
        study.end(f"{n}-1", Outcome.FAILED, "No module named 'torch'")
    assert end_of(study) == "failing"
    assert "No module named 'torch'" in study.view.ending.why  # type: ignore[union-attr]


def test_one_report_proves_that_the_code_can_work() -> None:
    study = ByHand(goal=LONG)
    study.point("0-1", 1, 0.1)
    study.end("0-1")
    for n in range(2 * SAME_FAILURES):
        study.end(f"{n + 1}-1", Outcome.FAILED, "boom")
    assert study.view.ending is None


def test_the_deadline_is_known_and_held() -> None:
    study = ByHand(goal=Goal(METRIC, "max", within_s=10.0), cores=2, grace_s=3.0)
    assert next_deadline_s(study.view) == 10.0
    study.tick(9.0)
    assert study.view.ending is None
    study.tick(1.0)
    assert end_of(study) == "deadline"
    assert study.asked[-2:] == [Yield("0-1", 3.0), Yield("1-1", 3.0)]
    assert next_deadline_s(study.view) is None
    study.end("0-1", Outcome.KILLED)
    assert study.view.ended is None
    study.end("1-1", Outcome.KILLED)
    assert study.view.ended is not None


@pytest.mark.parametrize("budget", [100.0 / 7.0, 7.7, 1e5 / 3.0])
def test_the_moment_at_which_core_seconds_run_out_is_the_moment_at_which_they_do(budget: float) -> None:
    """Also where sums of floats fall short of it: a driver that is woken for nothing is woken for ever."""
    study = ByHand(goal=Goal(METRIC, "max", device_s=budget), cores=3)
    study.tick(0.05)
    study.end("1-1", Outcome.LOST)
    study.tick(1.0 / 70.0)
    wake_s = next_deadline_s(study.view)
    assert wake_s is not None
    study.tick(wake_s - study.view.now_s)
    assert end_of(study) == "device_time"


def test_a_stop_is_for_now_and_a_deadline_for_good() -> None:
    study = ByHand(goal=Goal(METRIC, "max", within_s=100.0))
    study.stop()
    study.end("0-1", Outcome.YIELDED)
    assert study.view.ended is not None
    study.driver(1)
    assert study.view.ended is None
    assert statuses(study) == [Status.RUNNING]
    study.tick(200.0)
    study.end("0-2", Outcome.YIELDED)
    study.driver(1)
    assert study.view.ended is not None
    assert due_end(study.view) is not None
