"""Scripts whose ranks a launcher starts run inside a trial as they are: suspended, resumed, and gone when killed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import psutil
import pytest

from foresail.core import events as ev
from foresail.core.commands import Kill, Yield
from foresail.core.spec import Entry
from foresail.core.words import Outcome

ROOT = Path(__file__).parents[3]
SCRIPT = str(ROOT / "tests" / "contracts" / "launched.py")
LAUNCHER = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")  # what `torchrun` is

pytestmark = [pytest.mark.slow, pytest.mark.torch]


def entry(steps: int) -> Entry:
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return Entry(command=(sys.executable, *LAUNCHER, SCRIPT, str(steps)), env={"PYTHONPATH": path})


def of_this_attempt(lab, attempt: str) -> list[int]:
    """Processes that were told of it, whoever their parents are."""
    found = []
    for process in psutil.process_iter(["environ"]):
        told = (process.info["environ"] or {}).get("FORESAIL_ATTEMPT", "")
        if told == str(lab.folder / "attempts" / attempt) and process.pid != os.getpid():
            found.append(process.pid)
    return found


def test_it_leaves_when_asked_and_goes_on(make_lab):
    lab = make_lab("import", entry(20_000))
    first = lab.launch(cores=(0, 1), config={"lr": 0.01})
    assert lab.until_point(first, 2).metrics["ranks"] == 2
    assert len(of_this_attempt(lab, first)) == 3
    lab.executor.perform(Yield(first))
    assert lab.until_end(first).outcome is Outcome.YIELDED
    second = lab.launch(number=2, cores=(0, 1), config={"lr": 0.01})
    lab.until_point(second)
    lab.executor.perform(Kill(second, grace_s=0.0))
    assert lab.until_end(second).outcome is Outcome.KILLED
    assert not of_this_attempt(lab, second)
    points = lab.of(ev.PointReported)
    steps = [point.step for point in points]
    assert steps == [*range(1, len(steps) + 1)]
    assert points[-1].metrics["accuracy"] > points[0].metrics["accuracy"]


def test_it_ends_by_itself(make_lab):
    lab = make_lab("import", entry(3))
    assert lab.until_end(lab.launch(cores=(0, 1), config={"lr": 0.01})).outcome is Outcome.COMPLETED
    assert [point.step for point in lab.of(ev.PointReported)] == [1, 2, 3]
