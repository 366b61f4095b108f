from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.core import events as ev
from foresail.core.goal import Goal
from foresail.core.plan import Verdict
from foresail.core.reason import Rule
from foresail.core.words import Act, Label, Outcome, TrialId
from foresail.policies.pop import threshold
from foresail.policies.potential import Potential
from foresail.testing.byhand import METRIC, ByHand
from foresail.testing.foresight import PlainForesight

EXAMPLE = [
    *(0.95, 0.90, 0.82, 0.70, 0.66, 0.55, 0.50, 0.42, 0.33, 0.30),
    *(0.28, 0.20, 0.15, 0.12, 0.08, 0.06, 0.05, 0.03, 0.02, 0.01),
]


def test_the_threshold_of_the_worked_example() -> None:
    """S_desired(.50) = 7 meets S_deserved(.50) = 7.5."""
    assert threshold(EXAMPLE, 15) == (0.5, 7)


@given(st.lists(st.floats(0, 1), max_size=40), st.integers(1, 30))
def test_the_threshold_maximises_what_is_both_desired_and_deserved(p: list[float], slots: int) -> None:
    at, dedicated = threshold(p, slots)
    by_hand = max((min(sum(q >= x for q in p), slots * x) for x in p), default=0.0)
    assert min(sum(q >= at for q in p), slots * at) >= by_hand - 1e-9 or not p
    assert dedicated <= slots
    assert dedicated <= by_hand + 1e-6


@given(st.permutations(EXAMPLE))
def test_the_threshold_does_not_hang_on_the_order(p: list[float]) -> None:
    assert threshold(p, 15) == (0.5, 7)


@dataclass
class Seer:
    """Foresees what it is told, whatever the curve."""

    odds: dict[int, float]

    def foresee(self, trials: list, target: float) -> dict[TrialId, PlainForesight]:  # type: ignore[type-arg]
        return {
            t.id: PlainForesight(
                ahead=max(0, 20 - t.last_step),
                odds=self.odds.get(t.id, 0.5),
                final=0.5,
                gain=0.1,
                seen_frac=t.last_step / 20,
            )
            for t in trials
        }


@pytest.fixture
def seer(monkeypatch: pytest.MonkeyPatch) -> Seer:
    seer = Seer({})
    monkeypatch.setattr(Potential, "observe", lambda self, view, event: None)
    monkeypatch.setattr(Potential, "foresee", lambda self, trials, target: seer.foresee(trials, target))
    return seer


def pop(cores: int = 2, trials: int = 4, **options: float) -> ByHand:
    goal = Goal(METRIC, "max", target=0.9, trials=trials)
    return ByHand("pop", goal=goal, cores=cores, max_steps=20, options={"turn_frac": 0.1, **options})


def verdicts(events: list[ev.Event]) -> dict[int, Verdict]:
    return {v.trial: v for e in events if isinstance(e, ev.Planned) for v in e.verdicts}


def test_who_has_shown_nothing_has_its_turn() -> None:
    study = pop()
    assert {t: v.reason.rule for t, v in verdicts(study.log).items()} == {0: Rule.POP_UNSEEN, 1: Rule.POP_UNSEEN}


def test_the_promising_keep_their_slots(seer: Seer) -> None:
    study = pop()
    seer.odds = {0: 0.9}
    study.point("0-1", 1, 0.3)
    made = verdicts(study.point("0-1", 2, 0.4))
    assert made[0].label is Label.PROMISING
    assert made[0].act is Act.RUN
    assert not study.view.attempts["0-1"].ending  # type: ignore[index]


def test_the_opportunistic_give_way_when_their_turn_is_over(seer: Seer) -> None:
    study = pop(cores=1, deep=0.0)
    seer.odds = {0: 0.01}
    study.point("0-1", 1, 0.3)
    assert not study.view.attempts["0-1"].ending  # type: ignore[index]  # inside its turn of two steps
    study.point("0-1", 2, 0.3)
    study.end("0-1", Outcome.YIELDED)
    assert [a.trial for a in study.view.attempts.values()] == [1]
    seer.odds = {0: 0.3, 1: 0.06}
    study.point("1-1", 1, 0.3)
    made = verdicts(study.point("1-1", 2, 0.3))
    assert made[1].reason.rule is Rule.POP_TURN_OVER
    assert (made[1].act, made[1].label) == (Act.WAIT, Label.OPPORTUNISTIC)
    study.end("1-1", Outcome.YIELDED)
    assert [a.trial for a in study.view.attempts.values()] == [0]


@pytest.mark.parametrize(("deep", "next_trial"), [(0.0, 1), (1.0, 0)])
def test_a_share_of_the_turns_goes_on_with_the_best_of_the_begun(seer: Seer, deep: float, next_trial: int) -> None:
    study = pop(cores=1, deep=deep)
    seer.odds = {0: 0.01}
    study.point("0-1", 1, 0.3)
    study.point("0-1", 2, 0.3)
    if next_trial:
        study.end("0-1", Outcome.YIELDED)
    assert [a.trial for a in study.view.attempts.values()] == [next_trial]
    assert [a.ending for a in study.view.attempts.values()] == [False]


def test_a_first_look_is_worth_what_first_looks_have_shown(seer: Seer) -> None:
    """Nine of ten looks show nothing: to go on with the tenth, half as likely as it was, beats another look or not."""
    for now, resumed in ((0.3, True), (0.02, False)):
        study = pop(cores=1, trials=30, deep=0.0)
        for number in range(10):
            seer.odds[number] = 0.4 if number == 9 else 0.001
            study.point(f"{number}-1", 1, 0.3)
            if number == 9:
                seer.odds[number] = now
            study.point(f"{number}-1", 2, 0.3)
            if number < 9:
                study.end(f"{number}-1", Outcome.YIELDED)
        assert (study.view.trials[9].attempt is not None and not study.view.attempts["9-1"].ending) is resumed


def test_without_pausing_nobody_leaves_for_another(seer: Seer) -> None:
    study = pop(cores=1, pause=False)
    seer.odds = {0: 0.2}
    for step in range(1, 12):
        study.point("0-1", step, 0.3)
    assert [a.trial for a in study.view.attempts.values()] == [0]
    assert not study.view.attempts["0-1"].ending  # type: ignore[index]
    study.end("0-1")
    study.point("1-1", 1, 0.2)
    seer.odds = {1: 0.01}
    for step in range(2, 9):
        study.point("1-1", step, 0.2)
    assert study.view.trials[1].ended is not None, "the poor are ended as ever"
    made = [v.act for e in study.log if isinstance(e, ev.Planned) for v in e.verdicts]
    assert Act.WAIT not in made


@pytest.mark.parametrize(("step", "act"), [(2, Act.WAIT), (6, Act.WAIT), (8, Act.END), (10, Act.END)])
def test_the_poor_are_ended_only_when_two_fifths_were_seen(seer: Seer, step: int, act: Act) -> None:
    study = pop(deep=0.0)
    study.point("1-1", 1, 0.6)  # another leads
    seer.odds = {0: 0.5}
    for before in range(1, step):
        study.point("0-1", before, 0.3)
    seer.odds = {0: 0.01}
    made = verdicts(study.point("0-1", step, 0.3))
    assert (made[0].act, made[0].label) == (act, Label.POOR)


def test_at_its_end_nobody_is_ended(seer: Seer) -> None:
    study = pop(trials=2)
    study.point("1-1", 1, 0.6)  # another leads
    seer.odds = {0: 0.0}
    for step in range(1, 21):
        study.point("0-1", step, 0.3)
        if step >= 8 and study.view.trials[0].ended is not None:
            break
    assert study.view.trials[0].last_step == 8  # poor at 40 %
    late = pop(cores=1, trials=1)
    seer.odds = {0: 0.5}
    for step in range(1, 20):
        late.point("0-1", step, 0.3)
    seer.odds = {0: 0.0}
    late.point("0-1", 20, 0.3)
    assert late.view.trials[0].ended is None
    late.end("0-1")
    assert late.view.trials[0].ended == "completed"


def test_the_best_is_never_ended(seer: Seer) -> None:
    """If nothing better comes, it is what the user gets; it waits, with its state saved."""
    study = pop(cores=1)
    seer.odds = {0: 0.5}
    for step in range(1, 10):
        study.point("0-1", step, 0.3)
    seer.odds = {0: 0.0}
    made = verdicts(study.point("0-1", 10, 0.3))
    assert (made[0].act, made[0].label) == (Act.WAIT, Label.POOR)


def test_without_checkpoints_a_turn_still_brings_a_trial_further(seer: Seer) -> None:
    """A turn is counted in new steps: who starts afresh each time would be put aside for ever at the same step."""
    study = pop(cores=1, trials=2)
    seer.odds = {0: 0.06, 1: 0.06}
    for _ in range(8):
        ((attempt, live),) = study.view.attempts.items()
        before, step = study.view.trials[live.trial].last_step, 0
        while attempt in study.view.attempts and not study.view.attempts[attempt].ending and step < 20:
            step += 1
            study.point(attempt, step, 0.3)
        assert study.view.trials[live.trial].last_step > before
        study.end(attempt, Outcome.YIELDED if step < 20 else Outcome.COMPLETED)
        if study.view.ended is not None:
            break


def test_turns_end_also_where_reports_skip_steps(seer: Seer) -> None:
    study = pop(cores=1)
    seer.odds = {0: 0.01}
    study.point("0-1", 1, 0.3)
    made = verdicts(study.point("0-1", 3, 0.3))  # never at step 2 of a turn of 2
    assert made[0].act is Act.WAIT
