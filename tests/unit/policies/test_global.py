"""Policies that look ahead or at the clock: freeze-thaw, HyperSched, the oracle."""

from __future__ import annotations

import pytest
from made import played, random_trace, trace_of
from test_stopping import NEVER, in_order, rising

from foresail.core import events as ev
from foresail.core.reason import Rule
from foresail.core.view import fold
from foresail.policies.registry import NAMES
from foresail.replay.session import ORACLE, Contender, Setting, replay


def test_freeze_thaw_freezes_who_gains_less_and_thaws_it_later() -> None:
    values = [rising(f, 40) for f in (0.3, 0.9, 0.25, 0.2, 0.85, 0.1)]
    view, log = in_order(trace_of(values, targets=NEVER), "freezethaw", workers=2, fresh=2)
    rules = {v.reason.rule for e in log if isinstance(e, ev.Planned) for v in e.verdicts}
    assert Rule.IMPROVES_SLOWER in rules
    steps = {t.id: t.last_step for t in view.trials}
    assert not any(t.ended == "ended" for t in view.trials), "nobody is ended"
    done_first = [e.trial for e in log if isinstance(e, ev.TrialEnded)]
    assert done_first[0] in (1, 4), steps


def test_hypersched_is_asha_without_a_deadline_in_sight() -> None:
    """As long as admission is open, the two give the same orders."""
    trace = random_trace(21, configs=80)
    setting = Setting(budget_frac=0.9, target="top10pct")
    ours, asha = (replay(trace, Contender(name, name), 2, setting) for name in ("hypersched", "asha"))
    assert (ours.targets, ours.steps, ours.configs) == (asha.targets, asha.steps, asha.configs)


def test_hypersched_admits_nobody_near_the_deadline() -> None:
    trace = random_trace(22, configs=200)
    setting = Setting(budget_frac=0.12, target=None)
    starts = {}
    for name in ("hypersched", "asha"):
        log = played(trace, name, setting=setting)
        starts[name] = [e.at_s for e in log if isinstance(e, ev.AttemptGranted) and e.number == 1]
        end_s = log[-1].at_s
    assert max(starts["asha"]) > 0.97 * end_s
    assert max(starts["hypersched"]) < 0.9 * end_s


def test_the_oracle_trains_what_reaches_the_target_soonest() -> None:
    values = [[0.1, 0.2, 0.9], [0.9, 0.9, 0.9], [0.1, 0.9, 0.9]]
    seconds = [[1.0, 2.0, 3.0], [5.0, 6.0, 7.0], [0.4, 0.8, 1.2]]
    trace = trace_of(values, seconds=seconds, targets={"top10pct": 0.9, "top1pct": 0.9, "best": 0.9})
    record = replay(trace, Contender(ORACLE, ORACLE), 0, Setting(workers=1, budget_frac=1.0))
    assert record.targets["top1pct"] == 0.8
    assert record.configs == 1


def test_the_oracle_without_a_target_gets_the_best_that_there_is_time_for() -> None:
    values = [[0.1, 0.2, 0.99], [0.5, 0.6, 0.7], [0.1, 0.3, 0.4]]
    trace = trace_of(values, seconds=[[1.0, 2.0, 30.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    record = replay(trace, Contender(ORACLE, ORACLE), 0, Setting(workers=1, budget_frac=0.2, target=None))
    assert record.regret[-1][1] == 0.7


def test_no_study_can_ask_for_the_oracle() -> None:
    assert ORACLE not in NAMES


def test_a_policy_decides_the_same_for_a_loss_as_for_its_negative() -> None:
    trace = random_trace(31, configs=40)
    negative = trace_of(
        [[-v for v in curve.values] for curve in trace.curves],
        seconds=[curve.seconds for curve in trace.curves],
        mode="min",
        name=trace.name,
    )
    for name in ("median", "asha", "asha-stop", "sha", "hyperband", "pasha", "hypersched", ORACLE):
        one, other = (replay(t, Contender(name, name), 4, Setting(budget_frac=0.5)) for t in (trace, negative))
        assert one.targets == other.targets, name
        assert one.steps == other.steps, name


def test_freeze_thaw_takes_the_log_alone() -> None:
    trace = random_trace(32, configs=16, steps=12)
    logs = [played(trace, "freezethaw", setting=Setting(workers=2, budget_frac=0.4)) for _ in range(2)]
    assert logs[0] == logs[1]
    assert fold(logs[0]).points == pytest.approx(fold(logs[1]).points)
