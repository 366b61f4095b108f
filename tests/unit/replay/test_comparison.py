"""Comparing: the same in parallel, honest means, and the command."""

from __future__ import annotations

import json
import math
from pathlib import Path

import msgspec
import pytest
from folders import write_folder
from made import random_trace

from foresail.core.words import Config
from foresail.errors import CallerError
from foresail.replay.compare import batches, compare
from foresail.replay.contenders import NAMES, contenders
from foresail.replay.record import Record
from foresail.replay.scores import regret_at, speedup
from foresail.replay.session import Contender, Setting, replay
from foresail.replay.table import grid_order, random_order, search_of
from foresail.search.proposal import Observed, Search


def record(trace: str = "a", *, seed: int = 0, reached: float | None = 1.0, policy: str = "p") -> Record:
    return Record(
        trace=trace, policy=policy, search="random", seed=seed, workers=4,
        targets={"top1pct": reached}, targets_at={"top1pct": 0.9}, median=0.5,
        regret=((1.0, 0.5), (2.0, 0.7), (5.0, 0.9)), total_s=5.0, budget_s=10.0, steps=9, configs=3, attempts=4,
        used_frac=0.9, restart_frac=0.05, deciding_s=0.001, end="target",
    )  # fmt: skip


def test_speedups_are_geometric_means_of_paired_times_and_censored_runs_count_with_the_budget() -> None:
    base = [record("a", seed=0, reached=8.0), record("a", seed=1, reached=2.0), record("b", reached=None)]
    ours = [record("a", seed=0, reached=2.0), record("a", seed=1, reached=2.0), record("b", reached=5.0)]
    found = speedup(ours, base, "top1pct")
    assert found is not None
    assert found.mean == pytest.approx(math.exp(((math.log(4.0) + 0.0) / 2 + math.log(2.0)) / 2))
    assert found.low <= found.mean <= found.high
    assert found.censored_frac == 0.0
    same = speedup(base, base, "top1pct")
    assert same is not None
    assert (same.mean, same.low, same.high) == pytest.approx((1.0, 1.0, 1.0))
    assert same.censored_frac == pytest.approx(1 / 3)
    assert speedup([record("c")], base, "top1pct") is None


def test_regret_is_what_is_left_of_the_way_from_the_median_to_the_target() -> None:
    run = record()
    assert [regret_at(run, at) for at in (0.05, 0.1, 0.25, 1.0)] == pytest.approx([1.0, 1.0, 0.5, 0.0])


@pytest.mark.slow
def test_processes_change_nothing(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny")
    work = batches([str(folder)], contenders("random,asha,median"), range(12), Setting(workers=2, budget_frac=1.0))
    assert len(work) == 3
    done: list[int] = []
    timeless = [
        [msgspec.structs.replace(r, deciding_s=0.0) for r in compare(work, processes=n, done=done.append)]
        for n in (1, 2)
    ]
    assert timeless[0] == timeless[1]
    assert sum(done) == 2 * 36
    assert [(r.seed, r.policy) for r in timeless[0]][:4] == [(0, "random"), (0, "asha"), (0, "median"), (1, "random")]


def test_contenders_are_read_with_their_options() -> None:
    named = contenders("asha:first_rung=3:eta=4,grid,bohb,oracle")
    assert named[0] == Contender("asha:first_rung=3:eta=4", "asha", {"first_rung": 3, "eta": 4}, "random")
    assert [who.search for who in named] == ["random", "grid", "tpe", "random"]
    assert {"random", "grid", "median", "sha", "asha", "asha-stop", "hyperband", "bohb", "bandit", "earlyterm", "pop",
            "hypersched", "pasha", "freezethaw", "oracle"} <= set(NAMES)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "searches", "message"),
    [
        ("ahsa", ("random",), "did you mean 'asha'"),
        ("asha:etta=3", ("random",), "did you mean 'eta'"),
        ("asha:eta", ("random",), "write asha:eta=3"),
        ("asha,asha", ("random",), "comes twice"),
        ("oracle:x=1", ("random",), "the oracle has no option 'x'"),
        ("asha", ("tpee",), "did you mean 'tpe'"),
    ],
)
def test_a_wrong_contender_is_answered(text: str, searches: tuple[str, ...], message: str) -> None:
    with pytest.raises(CallerError, match=message):
        contenders(text, searches=searches)


def proposals(search: Search, history: list[Config], *, k: int = 0) -> object:
    trace = random_trace(0, configs=20)
    observed = [Observed(config, 0.1, 1) for config in history]
    return search.propose(trace.space, seed=1, k=k, history=observed, mode="max")


def test_orders_hold_every_row_once() -> None:
    trace = random_trace(0, configs=20)
    for order in (random_order(trace, 3), grid_order(trace)):
        assert sorted(order) == list(range(20))
    assert random_order(trace, 3) == random_order(trace, 3) != random_order(trace, 4)
    assert grid_order(trace) == list(range(20)), "the knob rises with the row"


def test_another_search_takes_the_nearest_unused_row() -> None:
    trace = random_trace(0, configs=20)
    wanted = {"x": 0.5}
    inner = Search("inner", lambda ask: iter([dict(wanted)]))
    from foresail.replay.table import nearest_to

    search, history = nearest_to(trace, inner), []
    for k in range(4):
        found = proposals(search, history, k=k)
        assert isinstance(found, dict)
        history.append(found)
    assert sorted(round(c["x"] * 19) for c in history) == [8, 9, 10, 11]


@pytest.mark.slow
def test_a_model_finds_good_rows_sooner_than_chance() -> None:
    """On a smooth table TPE reaches the top before random does, in most seeds."""
    trace = random_trace(0, configs=20)
    assert search_of(trace, "tpe", 0).name == "tpe"
    record = replay(trace, Contender("random+tpe", "random", {}, "tpe"), 0, Setting(budget_frac=1.0))
    assert record.search == "tpe"
    assert record.targets["best"] is not None


def run_command(*arguments: str) -> tuple[int, str, str]:
    from click.testing import CliRunner

    from foresail.cli.replay import command

    result = CliRunner().invoke(command, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def test_the_command_compares_and_writes_records(tmp_path: Path) -> None:
    folder, out = write_folder(tmp_path / "tiny"), tmp_path / "records.json"
    code, shown, _ = run_command(
        str(folder), "--policy", "asha,median", "--workers", "2", "--seeds", "2", "--budget", "1", "--processes", "1",
        "--json", str(out),
    )  # fmt: skip
    assert code == 0
    for part in (
        "Speed-up over random to top1pct",
        "Regret at a share of the budget",
        "Use of resources",
        "asha",
        "median",
    ):
        assert part in shown
    records = json.loads(out.read_text())
    assert [(r["policy"], r["seed"]) for r in records] == [
        ("random", 0), ("asha", 0), ("median", 0), ("random", 1), ("asha", 1), ("median", 1)
    ]  # fmt: skip
    assert {
        "trace",
        "policy",
        "seed",
        "workers",
        "targets",
        "regret",
        "total_s",
        "steps",
        "configs",
        "deciding_s",
    } <= set(records[0])


def test_records_go_to_stdout_alone_where_asked(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny")
    _, shown, _ = run_command(str(folder), "--policy", "random", "--seeds", "1", "--processes", "1", "--json", "-")
    assert [r["policy"] for r in json.loads(shown)] == ["random"]


def test_the_command_passes_errors_on(tmp_path: Path) -> None:
    with pytest.raises(CallerError, match="no such trace"):
        run_command(str(tmp_path / "none"), "--processes", "1")
    with pytest.raises(CallerError, match="did you mean 'top1pct'"):
        run_command(str(write_folder(tmp_path / "tiny")), "--target", "top1", "--processes", "1")


def test_a_stored_study_is_verified_byte_for_byte(tmp_path: Path) -> None:
    from foresail.core import events as ev
    from foresail.core.goal import maximize
    from foresail.core.spec import Choice, Resources, StudySpec
    from foresail.engine.controller import Controller
    from foresail.policies.registry import make
    from foresail.search import get
    from foresail.search.proposals import Proposals
    from foresail.space import Float, Space
    from foresail.stores.export import write_jsonl

    spec = StudySpec(
        name="s", space=Space(x=Float(0.0, 1.0)).to_dict(), goal=maximize("accuracy", trials=3),
        policy=Choice("asha"), resources=Resources(workers=2),
    )  # fmt: skip
    controller = Controller(make(spec.policy), Proposals(get("random")))
    log: list[ev.Event] = []
    for fact in (ev.StudyCreated(at_s=0.0, spec=spec), ev.DriverStarted(at_s=0.0, cores=(0, 1)), ev.Ticked(at_s=0.0)):
        log += controller.feed(fact).events
    write_jsonl(log, tmp_path / "s.jsonl")
    _, shown, _ = run_command(str(tmp_path / "s.jsonl"), "--verify")
    assert "the same decisions, byte for byte" in shown
    write_jsonl([event for event in log if not isinstance(event, ev.Planned)], tmp_path / "cut.jsonl")
    _, shown, _ = run_command(str(tmp_path / "cut.jsonl"), "--verify")
    assert "differs" in shown
