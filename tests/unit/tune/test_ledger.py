"""Decisions on trials that come from outside: the engine's, with no executor of ours behind them."""

from __future__ import annotations

import math

import pytest

from foresail.core import events as ev
from foresail.core.goal import maximize
from foresail.core.spec import Choice, StudySpec
from foresail.core.view import Trial, fold
from foresail.core.words import Outcome, Status
from foresail.space import Float, Space
from foresail.tune.ledger import Ledger

STEPS, SLOTS = 20, 3


def ledger_of(policy: str, *, target: float | None = None, within: float | None = None) -> Ledger:
    goal = maximize("accuracy", target=target, within=within, trials=12)
    space = Space(level=Float(0.0, 1.0)).to_dict()
    return Ledger(StudySpec(name="ray", space=space, goal=goal, policy=Choice(policy), max_steps=STEPS), SLOTS)


class World:
    """Trains what was granted, a step of each in turn, and leaves at a step's end when asked to."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger, self.now_s = ledger, 0.0

    def turn(self) -> None:
        for attempt in tuple(self.ledger.view.attempts.values()):
            trial = self.ledger.view.trials[attempt.trial]
            self.now_s += 1.0
            self._train(trial)
            self.ledger.decide()
            self._leave(trial)
            self.ledger.decide()
            assert len(self.ledger.view.attempts) <= SLOTS

    def _train(self, trial: Trial) -> None:
        assert trial.attempt is not None
        step = self.ledger.view.attempts[trial.attempt].step + 1
        level = float(trial.config["level"])
        value = level * (1.0 - 0.8**step) if level > 0.02 else math.nan
        self.ledger.record(
            ev.PointReported(at_s=self.now_s, attempt=trial.attempt, step=step, metrics={"accuracy": value}, seconds=1)
        )
        path = f"ray/{trial.id}/{trial.attempts}-{step}"
        self.ledger.record(ev.CheckpointSaved(at_s=self.now_s, attempt=trial.attempt, step=step, path=path))
        if step == STEPS:
            self.end(trial, Outcome.COMPLETED)

    def _leave(self, trial: Trial) -> None:
        if trial.attempt is None:
            return
        if trial.ended is not None:
            self.end(trial, Outcome.KILLED)
        elif self.ledger.view.attempts[trial.attempt].ending:
            self.end(trial, Outcome.YIELDED)

    def end(self, trial: Trial, outcome: Outcome) -> None:
        assert trial.attempt is not None
        self.ledger.record(ev.AttemptEnded(at_s=self.now_s, attempt=trial.attempt, outcome=outcome))


def proposed(ledger: Ledger, trials: int = 12) -> World:
    for number in range(trials):
        ledger.propose(0.0, {"level": (number * 5 % trials) / trials + 0.01}, "ray")
    ledger.decide()
    return World(ledger)


@pytest.mark.parametrize("policy", ["pop", "hybrid", "asha", "median", "fifo"])
def test_every_trial_comes_to_an_end_and_the_log_tells_all(policy: str) -> None:
    ledger = ledger_of(policy)
    world = proposed(ledger)
    for _ in range(12 * STEPS):
        world.turn()
    view = ledger.view
    assert not view.attempts
    assert view.ending is not None or all(trial.ended for trial in view.trials)
    assert [trial.ended for trial in view.trials].count(Status.DIVERGED) == 1
    assert view.best is not None
    assert view.trials[view.best[0]].config["level"] == max(float(t.config["level"]) for t in view.trials)
    again = fold(ledger.events)
    assert (again.best, again.counts, again.device_s) == (view.best, view.counts, view.device_s)


def test_pop_suspends_and_resumes_where_it_was() -> None:
    ledger = ledger_of("pop")
    world = proposed(ledger)
    for _ in range(12 * STEPS):
        world.turn()
    grants = [event for event in ledger.events if isinstance(event, ev.AttemptGranted)]
    assert any(grant.resume_step > 0 for grant in grants)
    assert sum(trial.last_step for trial in ledger.view.trials) < 12 * STEPS


@pytest.mark.parametrize(("target", "within", "end"), [(0.8, None, "target"), (None, 30.0, "deadline")])
def test_a_goal_that_is_met_ends_the_study(target: float | None, within: float | None, end: str) -> None:
    ledger = ledger_of("fifo", target=target, within=within)
    world = proposed(ledger)
    while ledger.view.attempts:
        world.turn()
        ledger.pass_time(world.now_s)
    assert ledger.view.ending is not None
    assert ledger.view.ending.end == end
    assert any(trial.ended is None for trial in ledger.view.trials)
