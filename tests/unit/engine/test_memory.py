"""A trial that runs out of memory is tried again with smaller micro-batches and fewer neighbours."""

from __future__ import annotations

from foresail.core import events as ev
from foresail.core.commands import Launch
from foresail.core.goal import Goal
from foresail.core.words import Outcome
from foresail.testing.byhand import ByHand


def study(cores: int = 3, trials: int = 20, **more):
    return ByHand(goal=Goal("score", "max", trials=trials), cores=cores, **more)


def grants(events):
    return [event.attempt for event in events if isinstance(event, ev.AttemptGranted)]


def complete(hand, attempt):
    hand.point(attempt, 1, 0.5)
    return hand.end(attempt)


def launch(hand, attempt):
    return next(c for c in hand.asked if isinstance(c, Launch) and c.attempt == attempt)


def test_each_shortage_halves_the_micro_batches():
    hand = study(cores=1, trials=1)
    hand.end("0-1", Outcome.OUT_OF_MEMORY)
    hand.end("0-2", Outcome.OUT_OF_MEMORY)
    assert [launch(hand, f"0-{n}").layout.halvings for n in (1, 2, 3)] == [0, 1, 2]
    assert hand.view.trials[0].failures == 2


def test_it_goes_on_beside_fewer_and_nobody_takes_its_place():
    hand = study(cores=3)
    assert grants(hand.end("0-1", Outcome.OUT_OF_MEMORY)) == [], "two are there, and three were too many"
    assert grants(complete(hand, "1-1")) == ["0-2"], (
        "it has the first place that there is, and keeps the third one free"
    )
    assert grants(complete(hand, "2-1")) == ["3-1"]
    assert grants(complete(hand, "0-2")) == ["4-1", "5-1"], "the others are as many as before"


def test_alone_it_is_tried_again_alone():
    hand = study(cores=2)
    complete(hand, "1-1")
    hand.end("2-1", Outcome.OUT_OF_MEMORY)
    complete(hand, "0-1")
    assert [a.id for a in hand.view.attempts.values()] == ["2-2"]
    assert grants(hand.end("2-2", Outcome.OUT_OF_MEMORY)) == ["2-3"]
    assert len(grants(complete(hand, "2-3"))) == 2


def test_elsewhere_is_a_machine_with_fewer_neighbours():
    hand = study(cores=0)
    hand._feed(ev.MachinesChanged(at_s=hand._s(), machines=((0, 1), (2, 3))))
    complete(hand, "3-1")
    complete(hand, "2-1")
    there = {a.trial: a.cores for a in hand.view.attempts.values()}
    assert sorted(there.values()) == [(0,), (1,), (2,), (3,)]
    first, second = (trial for trial, cores in there.items() if cores[0] < 2)
    hand.end(f"{first}-1", Outcome.OUT_OF_MEMORY)
    assert hand.view.trials[first].attempt is None, "each machine has one at least: one is all that it may be"
    third = next(trial for trial, cores in there.items() if cores[0] == 2)
    fourth = next(trial for trial, cores in there.items() if cores[0] == 3)
    complete(hand, f"{third}-1")
    assert grants(complete(hand, f"{fourth}-1"))[0] == f"{first}-2"
    assert hand.view.attempts[f"{first}-2"].cores[0] in (2, 3), "no neighbour is there"
    assert second in {a.trial for a in hand.view.attempts.values()}
