"""Cores that no trial needs go to trials that run, as far as they make steps faster."""

from __future__ import annotations

import pytest

from foresail.core import events as ev
from foresail.core.commands import Yield
from foresail.core.goal import maximize
from foresail.core.layout import Parallel
from foresail.core.words import AttemptId, Outcome
from foresail.policies.elastic import Elastic, Widths
from foresail.policies.registry import make
from foresail.testing.byhand import METRIC, ByHand

ELASTIC = {"elastic": True}


def study(*, cores: int, trials: int, workers: int | None = None) -> ByHand:
    goal = maximize(METRIC, trials=trials)
    return ByHand(goal=goal, cores=cores, workers=workers, options=ELASTIC, max_steps=100)


def widths(by_hand: ByHand) -> dict[str, int]:
    return {str(a.id): len(a.cores) for a in by_hand.view.attempts.values()}


def index_of(by_hand: ByHand) -> Widths:
    found = by_hand.controller._index
    assert isinstance(found, Widths)
    return found


def play(by_hand: ByHand, attempt: str, seconds: float, steps: range) -> None:
    for step in steps:
        by_hand.point(attempt, step, 0.01 * step, seconds=seconds)


def test_the_option_belongs_to_every_policy() -> None:
    by_hand = study(cores=1, trials=1)
    assert isinstance(make(by_hand.spec.policy), Elastic)


def test_as_many_trials_as_cores_have_one_each() -> None:
    assert widths(study(cores=4, trials=10)) == {"0-1": 1, "1-1": 1, "2-1": 1, "3-1": 1}


def test_idle_cores_go_to_new_trials_and_every_other_starts_narrow() -> None:
    assert widths(study(cores=4, trials=10, workers=2)) == {"0-1": 2, "1-1": 1}


def test_a_narrow_trial_is_widened_between_steps_once_its_steps_have_told() -> None:
    by_hand = study(cores=4, trials=2)
    by_hand.saved("1-1", 1)
    play(by_hand, "1-1", 60.0, range(2, 4))
    by_hand.tick()
    assert not by_hand.view.attempts[AttemptId("1-1")].ending
    play(by_hand, "1-1", 60.0, range(4, 8))
    by_hand.saved("1-1", 7)
    by_hand.tick()
    assert by_hand.view.attempts[AttemptId("1-1")].ending
    assert isinstance(by_hand.asked[-1], Yield)
    by_hand.end("1-1", Outcome.YIELDED)
    assert widths(by_hand) == {"0-1": 2, "1-2": 2}
    assert by_hand.view.attempts[AttemptId("1-2")].resume_step == 7


def test_a_width_that_would_not_pay_its_restart_stays() -> None:
    by_hand = study(cores=4, trials=2)
    play(by_hand, "1-1", 60.0, range(1, 90))  # without a checkpoint all of it would have to be trained again
    by_hand.tick()
    assert widths(by_hand) == {"0-1": 2, "1-1": 1}
    assert not by_hand.view.attempts[AttemptId("1-1")].ending


def test_cores_that_make_nothing_faster_are_given_to_nobody() -> None:
    by_hand = study(cores=2, trials=20, workers=1)
    for number in range(8):
        play(by_hand, f"{number}-1", 1.0, range(1, 9))
        by_hand.end(f"{number}-1")
    exponent, sd = index_of(by_hand).costs.speeds.speedup
    assert abs(exponent) < 0.1
    assert sd < 0.15
    assert widths(by_hand) == {"8-1": 1}


def test_a_wide_trial_gives_way_when_another_is_to_run() -> None:
    by_hand = study(cores=2, trials=1)
    assert widths(by_hand) == {"0-1": 2}
    view, index = by_hand.view, index_of(by_hand)
    elastic = by_hand.controller.policy
    assert isinstance(elastic, Elastic)
    other = type(view.trials[0])(ev.TrialProposed(at_s=view.now_s, trial=1, config={"lr": 0.1}, origin="x"), 100)  # type: ignore[arg-type]
    assert elastic._widths(index, view, [view.trials[0], other], 0) == {0: 1, 1: 1}


@pytest.mark.parametrize("cores", [1, 2, 3, 7])
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_never_more_cores_than_there_are(cores: int, workers: int) -> None:
    by_hand = study(cores=cores, trials=30, workers=workers)
    assert 1 <= sum(widths(by_hand).values()) <= cores


def test_widths_are_multiples_of_what_a_trial_needs() -> None:
    goal = maximize(METRIC, trials=1)
    assert widths(ByHand(goal=goal, cores=5, cores_per_trial=2, options=ELASTIC)) == {"0-1": 4}


def test_replicas_share_the_batch_evenly_and_a_width_that_they_cannot_is_not_asked_for_again() -> None:
    goal = maximize(METRIC, trials=1)
    by_hand = ByHand(goal=goal, cores=3, options=ELASTIC, max_steps=100, parallel=Parallel(batch=32))
    assert widths(by_hand) == {"0-1": 2}
    by_hand.saved("0-1", 1)
    play(by_hand, "0-1", 60.0, range(2, 20))
    by_hand.tick()
    assert not by_hand.view.attempts[AttemptId("0-1")].ending
