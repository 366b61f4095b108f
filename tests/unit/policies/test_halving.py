"""ASHA, successive halving, Hyperband and PASHA do what their papers say."""

from __future__ import annotations

import heapq
from collections import Counter
from itertools import pairwise

import pytest
from made import played, random_trace, trace_of

from foresail.core import events as ev
from foresail.core.view import fold
from foresail.core.words import Act, Status
from foresail.policies.brackets import brackets_of
from foresail.policies.pasha import softly_equal
from foresail.replay.session import Contender, Setting, replay
from foresail.replay.table import random_order
from foresail.replay.trace import Trace

WHOLE = Setting(workers=4, budget_frac=0.35, target=None)


def literal_asha(trace: Trace, seed: int, *, workers: int, eta: int, budget_s: float) -> Counter[int]:
    """Algorithm 2 of Li et al. (2020), line by line, on the curves of `trace`: steps trained of each configuration."""
    order = random_order(trace, seed)
    rungs: list[dict[int, float]] = [{} for _ in range(8)]
    promoted: list[set[int]] = [set() for _ in range(8)]
    opened = 0
    queue: list[tuple[float, int, int, int]] = []
    trained: Counter[int] = Counter()

    def job() -> tuple[int, int] | None:
        nonlocal opened
        for k in range(6, -1, -1):
            top = sorted(rungs[k], key=lambda row: (-rungs[k][row], order.index(row)))[: len(rungs[k]) // eta]
            for row in top:
                if row not in promoted[k] and len(trace.curves[row].steps) > eta**k:
                    promoted[k].add(row)
                    return row, k + 1
        if opened < len(order):
            opened += 1
            return order[opened - 1], 0
        return None

    def start(now_s: float, count: int) -> None:
        found = job()
        if found is not None:
            row, k = found
            seconds = trace.curves[row].seconds
            begin, end = (0 if k == 0 else eta ** (k - 1)), min(eta**k, len(seconds))
            base_s = seconds[begin - 1] if begin else 0.0
            trained[row] = max(trained[row], sum(now_s + s - base_s <= budget_s for s in seconds[begin:end]) + begin)
            heapq.heappush(queue, (now_s + seconds[end - 1] - base_s, count, row, k))

    for count in range(workers):
        start(0.0, count)
    count = workers
    while queue:
        now_s, _, row, k = heapq.heappop(queue)
        if now_s > budget_s:
            break
        if len(trace.curves[row].steps) >= eta**k:
            rungs[k][row] = trace.curves[row].values[eta**k - 1]
        count += 1
        start(now_s, count)
    return trained


@pytest.mark.parametrize("seed", range(6))
def test_asha_is_algorithm_2(seed: int) -> None:
    trace = random_trace(seed, configs=80)
    setting = Setting(workers=4, budget_frac=0.1, target=None)
    log = played(trace, "asha", seed=seed, setting=setting)
    budget_s = setting.budget_frac * trace.total_s / setting.workers
    view = fold(event for event in log if event.at_s < budget_s)
    ours = {trace.row_of[tuple(t.config.items())]: t.last_step for t in view.trials if t.values}
    literal = literal_asha(trace, seed, workers=4, eta=3, budget_s=budget_s)
    assert ours == {row: steps for row, steps in literal.items() if steps}


def test_a_promoted_trial_that_finds_no_free_core_runs_when_there_is_one() -> None:
    log = played(random_trace(7, configs=80), "asha", setting=WHOLE)
    wished = {v.trial: v.stage for e in log if isinstance(e, ev.Planned) for v in e.verdicts if v.act is Act.RUN}
    view = fold(log)
    for trial, stage in wished.items():
        assert view.trials[trial].last_step > (3 ** (stage - 1) if stage else 0) or view.trials[trial].attempt is None
    starved = [t for t, stage in wished.items() if stage and view.trials[t].last_step <= 3 ** (stage - 1)]
    assert len(starved) <= WHOLE.workers, "only who was promoted at the very end"


def test_stopping_keeps_the_quantile_of_those_that_arrived() -> None:
    """Four workers, one after the other: 0.5 goes on; 0.9 goes on; 0.1 and 0.4 are below the quantile."""
    values = [[v] * 3 for v in (0.5, 0.9, 0.1, 0.4)]
    trace = trace_of(values, targets={"top10pct": 1.0, "top1pct": 1.0, "best": 1.0})
    log = played(
        trace, Contender("asha-stop", "asha-stop", {}, "recorded"), setting=Setting(workers=1, budget_frac=2.0)
    )
    assert [t.ended for t in fold(log).trials] == [
        Status.COMPLETED,
        Status.COMPLETED,
        Status.ENDED,
        Status.ENDED,
    ]


def test_brackets_are_those_of_the_paper() -> None:
    """Table 1 of Li et al. (2018): R = 81, eta = 3."""
    assert brackets_of(81, first=1, eta=3) == (
        ((1, 3, 9, 27, 81), 81),
        ((3, 9, 27, 81), 34),
        ((9, 27, 81), 15),
        ((27, 81), 8),
        ((81,), 5),
    )
    assert brackets_of(27, first=3, eta=3)[0] == ((3, 9, 27), 9)


def levels_reached(log: list[ev.Event], levels: tuple[int, ...]) -> list[int]:
    steps = [trial.last_step for trial in fold(log).trials]
    return [sum(step >= level for step in steps) for level in levels]


def test_successive_halving_waits_for_all_and_keeps_the_best_third() -> None:
    trace = random_trace(11, configs=27, steps=27)
    log = played(trace, "sha", setting=Setting(workers=4, budget_frac=1.0, target=None))
    assert levels_reached(log, (1, 3, 9, 27)) == [27, 9, 3, 1]
    view = fold(log)
    at_one = {t.id: t.values[0] for t in view.trials}
    kept = {t.id for t in view.trials if t.last_step >= 3}
    assert kept == set(sorted(at_one, key=lambda t: -at_one[t])[:9])
    first_promotion = next(e.at_s for e in log if isinstance(e, ev.PointReported) and e.step == 2)
    last_arrival = max(e.at_s for e in log if isinstance(e, ev.PointReported) and e.step == 1)
    assert first_promotion > last_arrival


def test_hyperband_goes_through_its_brackets() -> None:
    trace = random_trace(12, configs=120, steps=27)
    log = played(trace, "hyperband", setting=Setting(workers=4, budget_frac=1.0, target=None))
    sizes = [size for _, size in brackets_of(27, first=1, eta=3)]
    assert sizes == [27, 12, 6, 4]
    trials = fold(log).trials
    whole_bracket = trials[sum(sizes[:3]) : sum(sizes)]
    assert all(trial.last_step == 27 for trial in whole_bracket), "the last bracket trains all to the end"
    assert sum(t.last_step >= 27 for t in trials[:27]) == 1


def test_halving_bears_divergence() -> None:
    trace = random_trace(13, configs=60, diverging=0.5)
    for name in ("sha", "hyperband", "asha", "asha-stop", "pasha"):
        record = replay(trace, Contender(name, name), 1, Setting(budget_frac=0.6))
        assert record.targets["top10pct"] is not None, name


def test_pasha_stays_low_while_the_ranking_is_settled() -> None:
    """Curves that never cross: two rungs are enough. ASHA on the same curves goes to the top."""
    flat = [[0.003 * c + 0.0001 * t for t in range(27)] for c in range(300)]
    setting = Setting(workers=4, budget_frac=0.04, target=None)
    deepest = {
        name: max(t.last_step for t in fold(played(trace_of(flat), name, setting=setting)).trials)
        for name in ("pasha", "asha")
    }
    assert deepest["pasha"] <= 3
    assert deepest["asha"] > 9


def test_pasha_rises_where_rankings_disagree() -> None:
    """The best at the first rung are the worst at the second."""
    crossing = [[0.5 - 0.008 * c, 0.1, *[0.01 * c] * 25] for c in range(60)]
    setting = Setting(workers=4, budget_frac=0.2, target=None)
    view = fold(played(trace_of(crossing), "pasha", setting=setting))
    assert max(t.last_step for t in view.trials) > 3


def test_soft_rankings_forgive_what_is_within_the_noise() -> None:
    assert softly_equal([1.0, 2.0, 3.0], 0.0)
    assert not softly_equal([1.0, 3.0, 2.0], 0.5)
    assert softly_equal([1.0, 3.0, 2.0], 1.0)
    assert all(a <= b for a, b in pairwise(sorted([1.0, 3.0, 2.0])))
