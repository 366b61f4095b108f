"""A training over several ranks is that of one process; when a rank goes, its attempt ends and is retried."""

from __future__ import annotations

import os

import pytest
from wide_lab import LAYOUTS, ONE, TRAINING, curve, launch

from foresail.core import events as ev
from foresail.core.commands import Kill
from foresail.core.layout import Layout
from foresail.core.words import Outcome

pytestmark = [pytest.mark.slow, pytest.mark.torch]


def same(ours, theirs, rel=1e-5):
    assert ours.keys() == theirs.keys()
    for step, (loss, order) in ours.items():
        assert order == pytest.approx(theirs[step][1], rel=1e-12), f"other samples in step {step}"
        assert loss == pytest.approx(theirs[step][0], rel=rel), f"another loss in step {step}"


def alive(lab) -> list[str]:
    """Ids of processes that have the study's folder open."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            opened = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        except OSError:
            continue
        if any("/attempts/" in name and name.startswith(str(lab.folder)) for name in opened):
            found.append(pid)
    return [pid for pid in found if int(pid) != os.getpid()]


@pytest.mark.parametrize("kind", ["transformer", "network"])
def test_any_layout_has_the_loss_of_one_process(make_lab, kind):
    lab = make_lab("import", TRAINING)
    assert lab.until_end(launch(lab, 0, ONE, kind=kind)).outcome is Outcome.COMPLETED
    for trial, layout in enumerate(LAYOUTS.values(), 1):
        end = lab.until_end(launch(lab, trial, layout, kind=kind))
        assert end.outcome is Outcome.COMPLETED, (layout, end.detail)
        assert lab.of(ev.PointReported)[-1].metrics["ranks"] == 2
        same(curve(lab, trial), curve(lab, 0))
    assert curve(lab, 0)[4][0] < 0.8 * curve(lab, 0)[1][0], "it learns"
    assert not alive(lab)


@pytest.mark.parametrize("name", ["dp", "fsdp", "tp", "pp"])
def test_resumed_at_equal_shape_it_is_the_same_bit_for_bit(make_lab, name):
    lab = make_lab("import", TRAINING)
    lab.until_end(launch(lab, 0, LAYOUTS[name]))
    assert lab.until_end(launch(lab, 1, LAYOUTS[name], leave_after="2")).outcome is Outcome.YIELDED
    assert lab.until_end(launch(lab, 1, LAYOUTS[name], 2)).outcome is Outcome.COMPLETED
    assert curve(lab, 1) == curve(lab, 0)
    assert [p.step for p in lab.of(ev.PointReported) if p.attempt == "1-2"] == [3, 4]


def test_resumed_at_other_shapes_it_sees_the_same_samples_and_learns_the_same(make_lab):
    lab = make_lab("import", TRAINING)
    lab.until_end(launch(lab, 0, ONE, steps=8))
    way = [LAYOUTS["fsdp"], ONE, LAYOUTS["pp"], LAYOUTS["tp"], Layout(dp=4), LAYOUTS["dp"], Layout(dp=2, tp=2)]
    for number, layout in enumerate(way, 1):
        end = lab.until_end(launch(lab, 1, layout, number, steps=8, leave_after=str(number)))
        assert end.outcome is Outcome.YIELDED, (layout, end.detail)
    assert lab.until_end(launch(lab, 1, ONE, 8, steps=8)).outcome is Outcome.COMPLETED
    same(curve(lab, 1), curve(lab, 0))


@pytest.mark.parametrize(
    ("fault", "outcome", "says"),
    [
        ("dies", Outcome.LOST, "rank 1: killed from outside by SIGKILL"),
        ("raises", Outcome.FAILED, "rank 1: ValueError: only here"),
        ("hangs", Outcome.FAILED, ""),
        ("leaves", Outcome.FAILED, ""),
    ],
)
def test_when_a_rank_goes_the_attempt_ends_in_time_and_is_retried(make_lab, fault, outcome, says):
    lab = make_lab("import", TRAINING)
    lab.until_end(launch(lab, 0, ONE))
    layout = Layout(dp=2, timeout_s=2.0)
    assert lab.until_end(launch(lab, 1, layout, leave_after="1")).outcome is Outcome.YIELDED
    began_s = lab.clock.now_s()
    end = lab.until_end(launch(lab, 1, layout, 2, fault=fault, fault_at=3))
    assert (end.outcome, says in end.detail) == (outcome, True), end.detail
    assert lab.clock.now_s() - began_s < 20.0
    assert not alive(lab)
    assert lab.until_end(launch(lab, 1, layout, 3)).outcome is Outcome.COMPLETED
    same(curve(lab, 1), curve(lab, 0))


def test_ranks_at_different_steps_are_told(make_lab):
    from ranks_apart import HERE as place

    from foresail.core.spec import Entry

    lab = make_lab("import", Entry(function=f"{place}:disagrees"))
    end = lab.until_end(launch(lab, 0, LAYOUTS["dp"]))
    assert end.outcome is Outcome.FAILED
    assert "the ranks disagree" in end.detail


def test_a_kill_ends_all_ranks(make_lab):
    lab = make_lab("import", TRAINING)
    attempt = launch(lab, 0, LAYOUTS["dp"], steps=10_000)
    lab.until_point(attempt)
    lab.executor.perform(Kill(attempt, grace_s=0.0))
    assert lab.until_end(attempt).outcome is Outcome.KILLED
    assert not alive(lab)
