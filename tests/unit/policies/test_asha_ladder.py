"""What asynchrony does to ASHA: late points, lost attempts, stops, and slots that are not free yet."""

from __future__ import annotations

import math

from foresail.core.goal import Goal
from foresail.core.words import Act, Outcome, Status
from foresail.policies.ladder import Ladder
from foresail.testing.byhand import METRIC, ByHand


def asha(policy: str = "asha", trials: int = 12, cores: int = 1) -> ByHand:
    return ByHand(policy, goal=Goal(METRIC, "max", trials=trials), cores=cores, max_steps=9)


def ladder(study: ByHand) -> Ladder:
    index = study.controller._index
    assert isinstance(index, Ladder)
    return index


def test_a_trial_climbs_to_the_rung_and_waits_there() -> None:
    study = asha()
    study.point("0-1", 1, 0.5)
    assert study.view.trials[0].verdict is not None
    assert study.view.trials[0].verdict.act is Act.WAIT
    study.end("0-1", Outcome.YIELDED)
    assert [a.trial for a in study.view.attempts.values()] == [1]


def test_who_was_promoted_to_a_slot_that_is_not_free_yet_gets_it() -> None:
    study = asha()
    for trial, value in enumerate((0.5, 0.9)):
        study.point(f"{trial}-1", 1, value)
        study.end(f"{trial}-1", Outcome.YIELDED)
    study.point("2-1", 1, 0.1)  # now one in three goes on: trial 1, whose slot is trial 2's until it has left
    assert study.view.trials[1].verdict is not None
    assert study.view.trials[1].verdict.act is Act.RUN
    study.end("2-1", Outcome.YIELDED)
    assert [(a.trial, a.number) for a in study.view.attempts.values()] == [(1, 2)]


def test_points_of_a_trial_that_is_over_do_not_enter_the_rungs_again() -> None:
    study = asha()
    study.point("0-1", 1, math.nan)
    assert study.view.trials[0].ended is Status.DIVERGED
    arrived = [list(rung.arrived) for rung in ladder(study).rungs]
    study.point("0-1", 2, 0.99)
    study.point("0-1", 3, 0.99)
    assert [list(rung.arrived) for rung in ladder(study).rungs][: len(arrived)] == arrived
    assert study.view.trials[0].verdict is not None
    study.end("0-1", Outcome.KILLED)
    assert [a.trial for a in study.view.attempts.values()] == [1]


def test_who_is_lost_on_the_way_goes_on_before_anyone_new() -> None:
    study = asha()
    study.end("0-1", Outcome.LOST)
    assert [(a.trial, a.number) for a in study.view.attempts.values()] == [(0, 2)]


def test_the_stopping_kind_judges_who_reached_its_rung_during_a_stop() -> None:
    """No decision is taken while a study stops; afterwards the trial is judged, not forgotten."""
    study = asha("asha-stop", trials=2)
    study.stop()
    study.point("0-1", 1, 0.5)
    study.end("0-1", Outcome.YIELDED)
    assert study.view.ended is not None
    study.driver(1)
    assert [(a.trial, a.number) for a in study.view.attempts.values()] == [(0, 2)]
    assert study.view.trials[0].verdict is not None
    assert study.view.trials[0].verdict.stage == 1


def test_a_step_trained_again_does_not_arrive_twice() -> None:
    study = asha()
    study.point("0-1", 1, 0.5)
    study.end("0-1", Outcome.LOST)
    arrived = len(ladder(study).rungs[0].arrived)
    for _ in range(3):
        ((attempt, live),) = study.view.attempts.items()
        study.point(attempt, 1, 0.4)
        study.end(attempt, Outcome.LOST)
        arrived += live.trial != 0
    trials = [trial for _, trial in ladder(study).rungs[0].arrived]
    assert len(trials) == len(set(trials))
