"""What users of other tuners suffer from, one criterion a theme (`docs/criteria.md`): those with no home elsewhere."""

from __future__ import annotations

import ast
import gc
import re
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from foresail.api.drive import controller_of
from foresail.core import events as ev
from foresail.core.goal import Goal
from foresail.core.spec import Choice, Resources, StudySpec
from foresail.core.view import View, apply, fold
from foresail.core.words import Outcome, Status, TrialId, attempt_id
from foresail.space import Float, Space
from foresail.testing.history import Case, play
from foresail.testing.world import Temper
from foresail.worker.folder import StudyFolder

ROOT = Path(__file__).parents[2]
CRITERIA = (ROOT / "docs" / "criteria.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (T\d+) \|(.*)\|$", re.MULTILINE)
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def spec_of(trials: int, policy: str = "fifo", workers: int = 3) -> StudySpec:
    return StudySpec(
        name="criteria",
        space=Space(x=Float(0.0, 1.0)).to_dict(),
        goal=Goal("score", "max", trials=trials),
        policy=Choice(policy),
        resources=Resources(workers, 1),
    )


def finished(trials: int, points: int) -> Iterator[ev.Event]:
    """A log of trials that have all trained to their end, one after the other."""
    yield ev.StudyCreated(at_s=0.0, spec=spec_of(10**6))
    yield ev.DriverStarted(at_s=0.0, cores=(0, 1, 2))
    for number in range(trials):
        trial, at_s = TrialId(number), float(number)
        attempt = attempt_id(trial, 1)
        yield ev.TrialProposed(at_s=at_s, trial=trial, config={"x": number / trials}, origin="random")
        yield ev.AttemptGranted(at_s=at_s, attempt=attempt, trial=trial, number=1, cores=(0,))
        for step in range(1, points + 1):
            value = {"score": step / (step + number + 1.0)}
            yield ev.PointReported(at_s=at_s, attempt=attempt, step=step, metrics=value, seconds=0.1)
        yield ev.AttemptEnded(at_s=at_s, attempt=attempt, outcome=Outcome.COMPLETED)
        yield ev.TrialEnded(at_s=at_s, trial=trial, status=Status.COMPLETED)


# --- the page ----------------------------------------------------------------------------------------------------


def test_every_theme_has_a_test_or_a_reason() -> None:
    rows = dict(ROW.findall(CRITERIA))
    assert sorted(rows, key=lambda theme: int(theme[1:])) == [f"T{n}" for n in range(1, 29)]
    for theme, row in rows.items():
        assert NAMED.search(row) or "Not yet:" in row or "Cannot apply:" in row, theme


@pytest.mark.parametrize("file", sorted({file for file, _ in NAMED.findall(CRITERIA)}))
def test_the_tests_that_are_named_exist(file: str) -> None:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    there = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    named = {name for place, name in NAMED.findall(CRITERIA) if place == file}
    assert named <= there, sorted(named - there)


# --- T2 ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["fifo", "asha", "pop"])
def test_a_slow_trial_leaves_no_other_core_idle(policy: str) -> None:
    case = Case(11, spec_of(16, policy), Temper.calm(), ((0, 1, 2),), 0, 0)
    view, idle_s, busy_s = View(), 0.0, 0.0
    for event in play(case).log:
        if view.cores and view.ending is None and view.can_open:
            passed_s = event.at_s - view.now_s
            idle_s += passed_s * len(view.free_cores)
            busy_s += passed_s * len(view.cores)
        apply(view, event)
    assert busy_s > 0.0
    assert idle_s < 0.02 * busy_s


# --- T8, T9 ------------------------------------------------------------------------------------------------------


def cost_of_a_report_s(trials: int) -> float:
    """Median seconds of CPU that the engine takes for a report, where so many trials have ended."""
    controller = controller_of(spec_of(10**6))
    controller.load(finished(trials, 2))
    at_s = controller.view.now_s
    controller.feed(ev.Ticked(at_s=at_s))
    attempt = next(iter(controller.view.attempts))
    costs = []
    for step in range(1, 400):
        point = ev.PointReported(at_s=at_s, attempt=attempt, step=step, metrics={"score": 0.5}, seconds=0.1)
        began = time.thread_time()
        controller.feed(point)
        costs.append(time.thread_time() - began)
    return statistics.median(costs)


def test_a_report_costs_the_same_after_ten_trials_and_after_thousands() -> None:
    few, many = cost_of_a_report_s(10), cost_of_a_report_s(4_000)
    assert many < 0.001
    assert many < 2.0 * few + 20e-6


def test_a_finished_trial_costs_the_driver_little_memory() -> None:
    process, trials = psutil.Process(), 10_000
    fold(finished(100, 20))
    gc.collect()
    before = process.memory_info().rss
    view = fold(finished(trials, 20))
    gc.collect()
    assert len(view.trials) == trials
    assert (process.memory_info().rss - before) / trials < 3_000


# --- T18 ---------------------------------------------------------------------------------------------------------


def test_folders_are_named_by_numbers_alone(tmp_path: Path) -> None:
    study = StudyFolder(tmp_path)
    trial = TrialId(10**9)
    names = (study.attempt(attempt_id(trial, 10**6)).path.name, study.checkpoints(trial).name, study.kept(trial).name)
    for name in (*names, study.checkpoint(trial, 10**9).name):
        assert re.fullmatch(r"[a-z0-9-]{1,32}", name)
