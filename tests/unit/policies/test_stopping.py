"""Median stopping, the bandit rule and predictive termination do what their papers say."""

from __future__ import annotations

import pytest
from made import played, random_trace, trace_of

from foresail.core import events as ev
from foresail.core.reason import Rule
from foresail.core.view import View, fold
from foresail.core.words import Status
from foresail.policies.registry import NAMES
from foresail.replay.session import Contender, Setting
from foresail.replay.trace import Trace

NEVER = {"top10pct": 9.0, "top1pct": 9.0, "best": 9.0}


def in_order(trace: Trace, policy: str, *, workers: int = 1, **options: object) -> tuple[View, list[ev.Event]]:
    who = Contender(policy, policy, dict(options), "recorded")
    log = played(trace, who, setting=Setting(workers=workers, budget_frac=2.0 * workers))
    return fold(log), log


def test_median_ends_who_is_behind_the_median_of_the_running_averages() -> None:
    """Five complete with averages .1 .2 .3 .4 .5 at every step: the median is .3, and a best of .3 is not behind it."""
    values = [[v] * 4 for v in (0.1, 0.2, 0.3, 0.4, 0.5, 0.29, 0.3)]
    view, log = in_order(trace_of(values, targets=NEVER), "median")
    assert [t.ended for t in view.trials[:5]] == [Status.COMPLETED] * 5
    assert view.trials[5].ended is Status.ENDED
    assert view.trials[5].last_step == 1
    assert view.trials[6].ended is Status.COMPLETED
    verdict = next(v for e in log if isinstance(e, ev.Planned) for v in e.verdicts if v.trial == 5 and v.act == "end")
    assert verdict.reason.rule is Rule.BELOW_MEDIAN
    assert verdict.reason.numbers == pytest.approx({"value": 0.29, "step": 1, "median": 0.3, "others": 5})


def test_median_compares_the_best_so_far_with_averages() -> None:
    """A trial that was good once is kept by its best, although its last value is poor."""
    values = [[0.0, 0.4]] * 5 + [[0.0, 0.1, 0.1, 0.1], [0.3, 0.0, 0.0, 0.0]]
    values = [[*v, *[v[-1]] * (4 - len(v))] for v in values]
    view, _ = in_order(trace_of(values, targets=NEVER), "median")
    assert view.trials[5].ended is Status.ENDED
    assert view.trials[5].last_step == 2, "its best, 0.1, is behind the average 0.2 of the others at step 2"
    assert view.trials[6].last_step == 4 or view.trials[6].last_step == 4


def test_median_of_a_loss_is_turned_round() -> None:
    values = [[v] * 3 for v in (0.1, 0.2, 0.3, 0.4, 0.5, 0.31, 0.3)]
    trace = trace_of(values, mode="min", targets={"top10pct": -1.0, "top1pct": -1.0, "best": -1.0})
    view, _ = in_order(trace, "median")
    assert view.trials[5].ended is Status.ENDED
    assert view.trials[6].ended is Status.COMPLETED


def test_the_bandit_ends_who_cannot_catch_up_with_half_of_itself() -> None:
    """epsilon = 0.5: 0.5 * 1.5 = 0.75 < 0.8 is ended at the first boundary; 0.54 * 1.5 = 0.81 goes on."""
    values = [[v] * 20 for v in (0.8, 0.5, 0.54)]
    view, _ = in_order(trace_of(values, targets=NEVER), "bandit")
    assert [t.ended for t in view.trials] == [Status.COMPLETED, Status.ENDED, Status.COMPLETED]
    assert view.trials[1].last_step == 2, "a tenth of 20 steps"
    view, _ = in_order(trace_of(values, targets=NEVER), "bandit", every=5)
    assert view.trials[1].last_step == 5


def test_the_bandit_reads_losses_and_negative_rewards() -> None:
    losses = [[v] * 10 for v in (0.1, 0.3, 0.15)]
    trace = trace_of(losses, mode="min", targets={"top10pct": -1.0, "top1pct": -1.0, "best": -1.0})
    assert [t.ended for t in in_order(trace, "bandit")[0].trials] == [
        Status.COMPLETED,
        Status.ENDED,
        Status.COMPLETED,
    ]
    rewards = [[v] * 10 for v in (-100.0, -300.0, -150.0)]
    assert [t.ended for t in in_order(trace_of(rewards, targets=NEVER), "bandit")[0].trials] == [
        Status.COMPLETED,
        Status.ENDED,
        Status.COMPLETED,
    ]


def rising(final: float, steps: int = 30) -> list[float]:
    return [final * (1.0 - 0.8**t) for t in range(1, steps + 1)]


def test_predictive_termination_ends_the_hopeless_and_never_the_best() -> None:
    values = [rising(f) for f in (0.9, 0.3, 0.2, 0.92)]
    view, log = in_order(trace_of(values, targets=NEVER), "earlyterm")
    assert view.trials[0].ended is Status.COMPLETED
    assert [view.trials[t].ended for t in (1, 2)] == [Status.ENDED] * 2
    assert all(view.trials[t].last_step < 30 for t in (1, 2))
    assert view.trials[3].ended is Status.COMPLETED
    ends = [v for e in log if isinstance(e, ev.Planned) for v in e.verdicts if v.act == "end"]
    assert {v.reason.rule for v in ends} == {Rule.UNBEATABLE}
    assert all(v.reason.numbers["p"] < 0.05 for v in ends)
    assert all(v.reason.numbers["step"] % 3 == 0 for v in ends), "only at boundaries"


def test_the_bound_decides_how_soon() -> None:
    values = [rising(f) for f in (0.9, 0.6, 0.5, 0.4, 0.3)]
    cautious, _ = in_order(trace_of(values, targets=NEVER), "earlyterm", bound=0.001)
    bold, _ = in_order(trace_of(values, targets=NEVER), "earlyterm", bound=0.4)
    assert bold.points <= cautious.points


@pytest.mark.parametrize("name", sorted({*NAMES} - {"pop"}))
def test_every_reason_makes_a_sentence(name: str) -> None:
    trace = random_trace(3, configs=20, steps=12, diverging=0.2)
    log = played(trace, Contender(name, name), setting=Setting(workers=3, budget_frac=0.5))
    verdicts = [v for event in log if isinstance(event, ev.Planned) for v in event.verdicts]
    assert verdicts
    for verdict in verdicts:
        sentence = verdict.reason.sentence()
        assert sentence
        assert "{" not in sentence
        assert "unknown" not in sentence
