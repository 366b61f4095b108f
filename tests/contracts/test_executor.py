"""What every executor must do, whatever it runs attempts with."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from ray_lab import ON_RAY

from foresail.core import events as ev
from foresail.core.commands import DeleteCheckpoint, Kill, Yield
from foresail.core.goal import Goal
from foresail.core.words import AttemptId, Outcome

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
on_ray = pytest.param("ray", marks=ON_RAY)
every = pytest.mark.parametrize("kind", ["fork", "import", "inline", on_ray])
of_processes = pytest.mark.parametrize("kind", ["fork", "import", on_ray])


@pytest.fixture(autouse=True)
def cluster(request: pytest.FixtureRequest) -> None:
    """Where a test runs on Ray: one local cluster for all of them."""
    if request.node.get_closest_marker("ray"):
        request.getfixturevalue("local_ray")


@every
def test_points_come_in_order_between_the_start_and_the_end(make_lab, kind):
    lab = make_lab(kind, "counts")
    attempt = lab.launch()
    assert lab.until_end(attempt).outcome is Outcome.COMPLETED
    assert [type(f) for f in lab.facts] == [
        ev.AttemptStarted,
        ev.HorizonDeclared,
        *[ev.PointReported] * 5,
        ev.CheckpointSaved,
        ev.AttemptEnded,
    ]
    assert lab.values() == [1, 2, 3, 4, 5]
    assert [p.step for p in lab.of(ev.PointReported)] == [1, 2, 3, 4, 5]
    assert all(p.seconds >= 0 for p in lab.of(ev.PointReported))
    stamps = [fact.at_s for fact in lab.facts]
    assert stamps == sorted(stamps)


@every
def test_a_launch_that_is_repeated_is_one_launch(make_lab, kind):
    lab = make_lab(kind, "counts")
    attempt = lab.launch()
    lab.launch()
    lab.until_end(attempt)
    assert lab.values() == [1, 2, 3, 4, 5]
    assert len(lab.of(ev.AttemptEnded)) == 1


@every
def test_trials_run_side_by_side_or_in_turn(make_lab, kind):
    lab = make_lab(kind, "counts")
    attempts = [lab.launch(trial) for trial in range(3)]
    for attempt in attempts:
        assert lab.until_end(attempt).outcome is Outcome.COMPLETED
        assert lab.values(attempt) == [1, 2, 3, 4, 5]


@every
def test_a_seed_makes_the_same_luck_and_another_one_another(make_lab, kind):
    lab = make_lab(kind, "counts")
    for trial, seed in enumerate((7, 7, 8)):
        lab.until_end(lab.launch(trial, seed=seed))
    first, same, other = ([p.metrics["luck"] for p in lab.of(ev.PointReported, f"{t}-1")] for t in range(3))
    assert first == same != other


@of_processes
def test_a_wish_saves_and_a_resumed_attempt_goes_on_from_there(make_lab, kind):
    lab = make_lab(kind, "counts")
    config = {"steps": 400, "pause_s": 0.002}
    attempt = lab.launch(config=config)
    lab.until_point(attempt, 3)
    lab.executor.perform(Yield(attempt))
    lab.executor.perform(Yield(attempt))
    assert lab.until_end(attempt).outcome is Outcome.YIELDED
    saved = lab.of(ev.CheckpointSaved)[-1]
    assert saved.step == lab.of(ev.PointReported)[-1].step
    assert saved.bytes > 0
    assert (lab.folder / saved.path / "manifest.json").exists()
    lab.until_end(lab.resume(2, config=config))
    points = lab.of(ev.PointReported)
    assert [p.step for p in points] == list(range(1, 401))
    assert lab.values() == list(range(1, 401))
    lab.until_end(lab.launch(1, config=config))
    uninterrupted = lab.of(ev.PointReported, "1-1")
    assert [p.metrics for p in points] == [p.metrics for p in uninterrupted]


@of_processes
def test_plain_functions_save_and_load(make_lab, kind):
    lab = make_lab(kind, "saves_files")
    attempt = lab.launch()
    lab.until_point(attempt, 3)
    lab.executor.perform(Yield(attempt))
    lab.until_end(attempt)
    again = lab.resume(2)
    first = lab.until_point(again)
    assert first.step == first.metrics["accuracy"] == lab.of(ev.CheckpointSaved)[0].step + 1


@of_processes
def test_a_training_that_keeps_nothing_leaves_without_a_checkpoint(make_lab, kind):
    lab = make_lab(kind, "keeps_nothing")
    attempt = lab.launch()
    lab.until_point(attempt)
    lab.executor.perform(Yield(attempt))
    assert lab.until_end(attempt).outcome is Outcome.YIELDED
    assert not lab.of(ev.CheckpointSaved)


@of_processes
def test_a_training_without_steps_may_heed_the_wish_by_itself(make_lab, kind):
    lab = make_lab(kind, "returns_early")
    attempt = lab.launch()
    lab.executor.perform(Yield(attempt))
    assert lab.until_end(attempt).outcome is Outcome.YIELDED


@of_processes
def test_a_kill_ends_it(make_lab, kind):
    lab = make_lab(kind, "keeps_nothing")
    attempt = lab.launch()
    lab.until_point(attempt)
    lab.executor.perform(Kill(attempt))
    lab.executor.perform(Kill(attempt))
    assert lab.until_end(attempt).outcome is Outcome.KILLED
    lab.executor.perform(Kill(attempt))


@every
def test_an_error_is_told_in_one_line_and_kept_whole(make_lab, kind):
    lab = make_lab(kind, "raises")
    end = lab.until_end(lab.launch())
    assert (end.outcome, end.detail) == (Outcome.FAILED, "ValueError: the shapes do not fit")
    assert lab.values() == [0.5]
    kept = (lab.folder / "attempts" / "0-1" / "traceback.txt").read_text()
    assert "in raises" in kept
    assert "second line" in kept


@every
def test_shortage_of_memory_is_told_apart(make_lab, kind):
    lab = make_lab(kind, "runs_out_of_memory")
    assert lab.until_end(lab.launch()).outcome is Outcome.OUT_OF_MEMORY


@every
def test_values_that_are_not_finite_arrive(make_lab, kind):
    lab = make_lab(kind, "diverges")
    lab.until_end(lab.launch())
    nan, infinite = lab.values()
    assert math.isnan(nan)
    assert infinite == -math.inf


@every
def test_a_misspelled_metric_is_answered_with_the_nearest(make_lab, kind):
    lab = make_lab(kind, "misspells")
    end = lab.until_end(lab.launch())
    assert end.outcome is Outcome.FAILED
    assert "'acuracy'" in end.detail
    assert "'accuracy' is missing" in end.detail


@every
@pytest.mark.parametrize("training", ["says_nothing", "exits"])
def test_a_training_that_never_reports_completes(make_lab, kind, training):
    lab = make_lab(kind, training)
    assert lab.until_end(lab.launch()).outcome is Outcome.COMPLETED


@every
def test_reaching_the_target_is_always_saved(make_lab, kind):
    lab = make_lab(kind, "counts", goal=Goal("accuracy", "max", target=3.0))
    lab.until_end(lab.launch(best=100.0))
    assert [saved.step for saved in lab.of(ev.CheckpointSaved)] == [3, 4, 5]


@every
def test_a_checkpoint_can_be_deleted_more_than_once(make_lab, kind):
    lab = make_lab(kind, "counts")
    lab.until_end(lab.launch())
    path = lab.of(ev.CheckpointSaved)[0].path
    for times in (1, 2):
        lab.executor.perform(DeleteCheckpoint(path))
        lab.until(lambda times=times: len(lab.of(ev.CheckpointDeleted)) == times)
    assert not (lab.folder / path).exists()


@every
def test_nothing_outside_the_checkpoints_can_be_deleted(make_lab, kind):
    lab = make_lab(kind, "counts")
    for path in ("attempts/0-1", "checkpoints/0/../../attempts", "/etc", "checkpoints/0"):
        with pytest.raises(ValueError, match="is no checkpoint"):
            lab.executor.perform(DeleteCheckpoint(path))


@every
def test_another_driver_takes_over_what_was_said(make_lab, kind):
    lab = make_lab(kind, "counts")
    attempt = lab.launch()
    lab.until_end(attempt)
    after = make_lab(kind, "counts", folder=lab.folder)
    facts = after.executor.adopt([attempt, AttemptId("7-1")])
    assert [f.step for f in facts if isinstance(f, ev.PointReported)] == [1, 2, 3, 4, 5]
    ends = {f.attempt: f.outcome for f in facts if isinstance(f, ev.AttemptEnded)}
    assert ends == {attempt: Outcome.COMPLETED, "7-1": Outcome.LOST}


@every
def test_closing_ends_what_runs(make_lab, kind, tmp_path: Path):
    lab = make_lab(kind, "keeps_nothing" if kind != "inline" else "counts")
    attempt = lab.launch()
    if kind != "inline":
        lab.until_point(attempt)
    lab.executor.close()
    assert [f.outcome for f in lab.executor.poll(0.0) if isinstance(f, ev.AttemptEnded)] == [Outcome.KILLED]
