from __future__ import annotations

import pytest

from foresail.core import events as ev
from foresail.core.commands import Kill, Launch, Yield
from foresail.core.goal import Goal
from foresail.core.plan import Plan, Verdict
from foresail.core.reason import Reason, Rule
from foresail.core.view import apply
from foresail.core.words import Act, Outcome, Status, TrialId
from foresail.engine.reconcile import reconcile
from foresail.errors import InternalError
from foresail.testing.byhand import METRIC, ByHand

GOAL = Goal(METRIC, "max", within_s=1e6)


def wish(trial: int, act: Act, cores: int = 1) -> Verdict:
    return Verdict(TrialId(trial), act, Reason(Rule.FIRST_IN, {"order": trial}), cores)


def commands(study: ByHand, *wishes: Verdict) -> list[object]:
    return [move.command for move in reconcile(study.view, Plan(wishes))]


def test_silence_on_who_holds_cores_is_an_error_of_the_policy() -> None:
    study = ByHand(goal=GOAL)
    with pytest.raises(InternalError, match="silent on trial 0"):
        commands(study)


def test_who_must_wait_is_asked_and_nothing_is_granted_before_it_is_gone() -> None:
    study = ByHand(goal=GOAL, cores=1)
    study.end("0-1", Outcome.LOST)
    assert commands(study, wish(0, Act.WAIT)) == [Yield("0-2", study.spec.grace_s)]
    assert commands(study, wish(0, Act.RUN)) == []


def test_who_must_end_is_killed() -> None:
    study = ByHand(goal=GOAL)
    moves = list(reconcile(study.view, Plan((wish(0, Act.END),))))
    assert [type(move.event) for move in moves] == [ev.TrialEnded, ev.AttemptEnding]
    assert moves[-1].command == Kill("0-1")


def test_workers_bound_what_runs_also_while_somebody_leaves() -> None:
    study = ByHand(goal=GOAL, cores=4, workers=2)
    assert len(study.view.attempts) == 2
    new = ev.TrialProposed(at_s=study.view.now_s, trial=TrialId(2), config={"lr": 0.5}, origin="random")
    apply(study.view, new)
    asked = commands(study, wish(0, Act.WAIT), wish(1, Act.RUN), wish(2, Act.RUN))
    assert [type(command) for command in asked] == [Yield]


def test_a_grant_resumes_from_the_latest_checkpoint() -> None:
    study = ByHand(goal=GOAL)
    for step in (1, 2, 3):
        study.point("0-1", step, 0.1 * step)
        if step < 3:
            study.saved("0-1", step)
    study.end("0-1", Outcome.LOST)
    launch = study.asked[-1]
    assert isinstance(launch, Launch)
    assert (launch.attempt, launch.resume_step, launch.checkpoint) == ("0-2", 2, "0-1/2")
    assert launch.best == pytest.approx(0.3)


@pytest.mark.parametrize("policy", ["fifo", "median", "asha", "pop"])
def test_a_machine_that_comes_back_smaller_is_no_accident(policy: str) -> None:
    study = ByHand(policy, goal=GOAL, cores=3)
    study.driver(1)
    assert len(study.view.attempts) == 3  # an executor may have kept them alive
    for attempt in tuple(study.view.attempts):
        study.end(attempt, Outcome.LOST)
        study.tick()
    held = [core for attempt in study.view.attempts.values() for core in attempt.cores]
    assert held == [0]


def test_what_was_asked_is_asked_again_by_the_next_driver() -> None:
    study = ByHand(goal=GOAL, cores=2)
    study.point("0-1", 1, float("nan"))
    study.stop()
    assert study.view.status(study.view.trials[1]) is Status.YIELDING
    assert study.controller.recover() == [Kill("0-1"), Yield("1-1", study.spec.grace_s)]
