"""Plots of a comparison: the same numbers as its tables."""

from __future__ import annotations

from statistics import fmean

import msgspec
import pytest
from studies import table

from foresail.plots.comparison import MOMENTS, reached, regret, resources, time_to_target
from foresail.replay.contenders import contenders
from foresail.replay.record import Record
from foresail.replay.scores import by_policy, regret_at, speedup, use
from foresail.replay.session import Setting, replay


@pytest.fixture(scope="module")
def records() -> list[Record]:
    trace, setting = table(30), Setting(workers=2, budget_frac=0.5, start_s=0.5)
    return [replay(trace, who, seed, setting) for seed in range(4) for who in contenders("random,asha")]


def test_lines_are_the_means_of_the_tables(records: list[Record]) -> None:
    for line in regret(records).lines:
        own = by_policy(records)[line.policy]
        assert line.mean == pytest.approx([fmean(regret_at(r, moment) for r in own) for moment in MOMENTS])
        assert all(
            low <= mean + 1e-9 and mean <= high + 1e-9
            for low, mean, high in zip(line.low, line.mean, line.high, strict=True)
        )


def test_shares_of_runs_that_are_there_only_grow(records: list[Record]) -> None:
    for line in reached(records, "top10pct").lines:
        own = by_policy(records)[line.policy]
        assert list(line.mean) == sorted(line.mean)
        assert line.mean[-1] == pytest.approx(fmean(r.targets["top10pct"] is not None for r in own))


def test_ratios_are_those_of_the_tables(records: list[Record]) -> None:
    data = time_to_target(records, "top1pct")
    policies = by_policy(records)
    for ratio in data.ratios:
        found = speedup(policies[ratio.policy], policies["random"], "top1pct")
        assert found is not None
        assert (ratio.mean, ratio.low, ratio.high) == (found.mean, found.low, found.high)
    assert data.ratios[0].mean == pytest.approx(1.0)


def test_the_workers_time_is_all_accounted_for(records: list[Record]) -> None:
    for share in resources(records).shares:
        assert share.training + share.starts + share.idle == pytest.approx(1.0, abs=1e-6)
        assert share.deciding == use(by_policy(records)[share.policy]).deciding_frac


def test_all_is_drawn_and_is_json(records: list[Record]) -> None:
    pytest.importorskip("plotly")
    for data in (
        regret(records),
        reached(records, "best"),
        time_to_target(records, "best"),
        resources(records),
    ):
        assert data.figure().data
        assert msgspec.json.decode(msgspec.json.encode(data), type=type(data)) == data
