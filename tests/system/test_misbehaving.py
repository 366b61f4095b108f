"""Training code that misbehaves: for each kind of it an outcome and a message, on real processes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import misbehaving
import pytest

from foresail.core import events as ev
from foresail.core.commands import Kill, Yield
from foresail.core.spec import Entry
from foresail.core.words import Outcome

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")


@dataclass(frozen=True)
class Ending:
    """How an attempt must end, and part of what must be said. `points`: reported at least, with their values."""

    outcome: Outcome
    said: str = ""
    points: tuple[float, ...] = ()


COMPLETED, FAILED, LOST = Outcome.COMPLETED, Outcome.FAILED, Outcome.LOST
TABLE: dict[str, Ending] = {
    "prints_odd_encodings": Ending(COMPLETED, points=(1.0,)),
    "closes_its_stdout": Ending(COMPLETED, points=(1.0,)),
    "forks_children_and_leaves": Ending(COMPLETED, points=(1.0,)),
    "leaks_memory_up_to_its_limit": Ending(Outcome.OUT_OF_MEMORY, "MemoryError", points=(1.0,)),
    "changes_directory": Ending(COMPLETED, points=(1.0, 2.0)),
    "removes_its_directory": Ending(COMPLETED, points=(1.0, 2.0)),
    "reports_out_of_order": Ending(FAILED, "step", points=(1.0,)),
    "reports_a_step_twice": Ending(FAILED, "step", points=(1.0,)),
    "reports_text": Ending(FAILED, "'good'"),
    "reports_none": Ending(FAILED, "None"),
    "reports_nan": Ending(COMPLETED, points=(math.nan,)),
    "reports_infinity": Ending(COMPLETED, points=(math.inf,)),
    "reports_a_huge_integer": Ending(FAILED, "too large"),
    "reports_other_names_later": Ending(FAILED, "acuracy", points=(1.0,)),
    "never_reports": Ending(COMPLETED),
    "exits_with_0": Ending(COMPLETED),
    "exits_with_3": Ending(FAILED, "SystemExit: 3"),
    "leaves_by_os_exit": Ending(FAILED, "exit code 0 before the training function returned"),
    "dies_of_a_signal": Ending(FAILED, "died of SIGSEGV", points=(1.0,)),
    "aborts": Ending(FAILED, "died of SIGABRT"),
    "is_killed": Ending(LOST, "killed from outside by SIGKILL", points=(1.0,)),
    "recurses_without_end": Ending(FAILED, "RecursionError"),
    "changes_the_random_state": Ending(COMPLETED, points=(1.0,)),
    "raises_without_words": Ending(FAILED, "ValueError"),
    "raises_what_cannot_be_shown": Ending(FAILED, "Unshowable"),
    "raises_a_group": Ending(FAILED, "ExceptionGroup: several"),
    "returns_something": Ending(COMPLETED, points=(1.0,)),
    "starts_threads": Ending(COMPLETED, points=(1.0,)),
    "leaves_a_thread_behind": Ending(COMPLETED, points=(1.0,)),
    "ignores_sigpipe_and_sigchld": Ending(COMPLETED, points=(1.0,)),
    "sets_its_own_limits": Ending(COMPLETED, points=(1.0,)),
}


@pytest.mark.parametrize("kind", sorted(TABLE))
def test_each_kind_has_its_outcome_and_its_message(make_lab: Any, kind: str) -> None:
    expected = TABLE[kind]
    lab = make_lab("fork", getattr(misbehaving, kind))
    attempt = lab.launch()
    end = lab.until_end(attempt)
    assert end.outcome is expected.outcome, end.detail
    assert expected.said in end.detail
    told = lab.values(attempt)[: len(expected.points)]
    assert [str(value) for value in told] == [str(value) for value in expected.points]
    well = lab.launch(1, config={"well": 1})
    assert lab.until_end(well).outcome is COMPLETED, "the next one is unharmed"
    assert lab.values(well) == [7.0]


def test_many_metrics_are_taken(make_lab: Any) -> None:
    lab = make_lab("fork", misbehaving.reports_many_metrics)
    assert lab.until_end(lab.launch()).outcome is COMPLETED
    (point,) = lab.of(ev.PointReported)
    assert len(point.metrics) == misbehaving.MANY + 1


def test_one_that_ignores_sigterm_is_killed_after_its_grace(make_lab: Any) -> None:
    lab = make_lab("fork", misbehaving.ignores_sigterm)
    attempt = lab.launch()
    lab.until_point(attempt)
    lab.executor.perform(Yield(attempt, 0.1))
    lab.executor.perform(Kill(attempt, 0.1))
    assert lab.until_end(attempt).outcome is Outcome.KILLED


def test_a_deadlock_at_import_ends_with_its_attempt(make_lab: Any, tmp_path: Path) -> None:
    script = tmp_path / "deadlock.py"
    script.write_text(
        "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()\ndef train(run): pass\n"
    )
    lab = make_lab("import", Entry(function=f"{script}:train"))
    attempt = lab.launch()
    lab.executor.perform(Kill(attempt, 0.0))
    assert lab.until_end(attempt).outcome is Outcome.KILLED
