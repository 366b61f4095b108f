"""Machines that come and go while a study runs."""

from __future__ import annotations

from foresail.core import events as ev
from foresail.core.commands import Launch
from foresail.core.goal import Goal
from foresail.core.words import Outcome
from foresail.testing.byhand import ByHand


def study(**more):
    return ByHand(goal=Goal("score", "max", trials=20), cores=0, **more)


def machines(hand, *there):
    return hand._feed(ev.MachinesChanged(at_s=hand._s(), machines=there))


def grants(events):
    return [event.cores for event in events if isinstance(event, ev.AttemptGranted)]


def test_without_a_machine_nothing_is_decided_and_the_study_waits():
    hand = study()
    assert hand.view.ended is None
    assert grants(machines(hand, (0, 1))) == [(0,), (1,)]
    assert len([c for c in hand.asked if isinstance(c, Launch)]) == 2


def test_an_attempt_has_cores_of_one_machine():
    hand = study(cores_per_trial=2)
    granted = grants(machines(hand, (0, 1, 2), (3, 4), (5,)))
    assert granted == [(3, 4), (0, 1)], "the machine that is left least free comes first"
    assert hand.view.slots == 2
    assert hand.view.free_cores == [2, 5]


def test_a_machine_that_goes_takes_its_cores_and_its_attempts_go_on_elsewhere():
    hand = study()
    machines(hand, (0,), (1,))
    hand.point("0-1", 1, 0.5)
    hand.saved("0-1", 1)
    assert grants(machines(hand, (1,))) == []
    assert hand.view.cores == (1,)
    assert grants(hand.end("0-1", Outcome.LOST)) == [], "its core is gone"
    again = [e for e in machines(hand, (1,), (2,)) if isinstance(e, ev.AttemptGranted)]
    assert [(e.attempt, e.cores, e.resume_step) for e in again] == [("0-2", (2,), 1)]
    assert hand.view.trials[0].failures == 0
