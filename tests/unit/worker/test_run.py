"""The handle, in this process: what it gives, accepts and refuses, and when it saves."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trainings import Counter

from foresail.core.goal import Goal
from foresail.core.words import AttemptId, Outcome, TrialId
from foresail.errors import HostError, TrainingError
from foresail.worker import client, randomness
from foresail.worker.attempt import live
from foresail.worker.folder import StudyFolder
from foresail.worker.grant import Grant, read_grant, write_grant
from foresail.worker.moments import Moments
from foresail.worker.run import Killed, Run, Yielded
from foresail.worker.spool import Farewell, Horizon, Point, Saved, Spool, SpoolReader, decode_line


def grant(root: Path, number: int = 1, **more: Any) -> Grant:
    goal = more.pop("goal", Goal("accuracy", "max", target=1e9))
    given = Grant(
        root=str(root),
        attempt=AttemptId(f"0-{number}"),
        trial=TrialId(0),
        number=number,
        config=more.pop("config", {"lr": 0.1}),
        goal=goal,
        seed=5,
        **more,
    )
    write_grant(StudyFolder(root).attempt(given.attempt), given)
    return given


@pytest.fixture
def run(tmp_path) -> Run:
    return Run(grant(tmp_path))


def spooled(run: Run) -> list[Any]:
    return [decode_line(line) for line in SpoolReader(run.folder / "spool.jsonl").lines()]


def test_it_tells_what_it_was_given(run):
    assert (run.config["lr"], run.config.lr, dict(run.config)) == (0.1, 0.1, {"lr": 0.1})
    assert (run.seed, run.trial, run.resume_step, run.should_stop) == (5, 0, 0, False)
    with pytest.raises(AttributeError, match="did you mean 'lr'"):
        _ = run.config.lrr
    with pytest.raises(KeyError, match="allowed: lr"):
        _ = run.config["momentum"]


def test_steps_are_counted_from_one_and_reported_by_themselves(run):
    for step in run.steps(max=3):
        run.report(accuracy=step / 10)
    assert list(run.steps(max=3)) == []
    lines = spooled(run)
    assert lines[0] == Horizon(max_steps=3)
    assert [(p.step, p.metrics) for p in lines if isinstance(p, Point)] == [
        (1, {"accuracy": 0.1}),
        (2, {"accuracy": 0.2}),
        (3, {"accuracy": 0.3}),
    ]


def test_a_second_loop_goes_on_where_the_first_ended(run):
    assert list(run.steps(max=2)) == [1, 2]
    assert list(run.steps(max=5)) == [3, 4, 5]


def test_without_steps_reports_count_themselves_unless_told(run):
    run.report(accuracy=1)
    run.report(5, accuracy=1)
    run.report(np.int64(7), accuracy=1)
    run.report(accuracy=1)
    assert [p.step for p in spooled(run)] == [1, 5, 7, 8]


class Scalarlike:
    def __float__(self) -> float:
        return 0.25


@pytest.mark.parametrize(
    "value",
    [0.25, np.float32(0.25), np.array(0.25), np.array([0.25]).reshape(()), Scalarlike()],
    ids=lambda v: type(v).__name__,
)
def test_what_has_a_float_is_a_number(run, value):
    run.report(accuracy=value)
    assert spooled(run)[0].metrics == {"accuracy": 0.25}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_kept(run, value):
    run.report(accuracy=value)
    assert spooled(run)[0].metrics == {"accuracy": str(value)}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("0.5", "accuracy is '0.5' (str)"),
        (None, "accuracy is None (NoneType)"),
        (10**400, "accuracy is an integer too large for a float"),
        ([0.5], "accuracy is [0.5] (list)"),
        (1j, "accuracy is 1j (complex)"),
        (np.zeros(3), "accuracy is array([0., 0., 0.]) (ndarray)"),
        (b"1", "accuracy is b'1' (bytes)"),
    ],
    ids=repr,
)
def test_what_is_no_number_is_refused(run, value, said):
    with pytest.raises(TrainingError) as caught:
        run.report(accuracy=value)
    assert said in str(caught.value)
    assert spooled(run) == []


@pytest.mark.parametrize("step", [0, -1, 1.5, "3", None, 10**30, {"accuracy": 1}])
def test_what_is_no_step_is_refused(run, step):
    if step is None:
        run.report(3, accuracy=1)
        step = 3
    with pytest.raises(TrainingError, match="step"):
        run.report(step, accuracy=1)


def test_two_reports_in_a_step_are_refused(run):
    with pytest.raises(TrainingError, match="step 1 was reported before"):  # noqa: PT012
        for _ in run.steps(max=2):
            run.report(accuracy=1)
            run.report(accuracy=2)


def test_the_first_report_fixes_the_names(run):
    run.report(accuracy=1, loss=2)
    run.report(accuracy=1)
    with pytest.raises(TrainingError, match="did you mean 'loss'"):
        run.report(accuracy=1, los=2)
    with pytest.raises(TrainingError, match="the goal's metric 'accuracy' is missing"):
        run.report(loss=2)


def test_the_goals_metric_is_asked_for_with_the_nearest_that_was_given(run):
    with pytest.raises(TrainingError, match=r"did you mean 'acc_uracy'\? reported: acc_uracy, loss"):
        run.report(acc_uracy=1, loss=2)
    with pytest.raises(TrainingError, match="nothing was reported"):
        run.report()


def test_a_wish_leaves_the_loop_after_a_save(run):
    counter = Counter()
    run.track(counter=counter)
    after = []
    with pytest.raises(Yielded):  # noqa: PT012
        for step in run.steps(max=10):
            counter.n = step
            run.report(accuracy=step)
            if step == 2:
                (run.folder / "yield").touch()
        after.append("code after the loop")
    assert not after
    assert [line.step for line in spooled(run) if isinstance(line, Saved)] == [2]


def test_a_wish_at_the_last_step_changes_nothing(run):
    for step in run.steps(max=2):
        if step == 2:
            run.ask_to_leave()
    assert run.should_stop


def test_a_resumed_run_goes_on_from_the_state_and_the_luck(tmp_path):
    def train(run: Run) -> list[float]:
        counter, own, numbers = Counter(), random.Random(1), np.random.default_rng(1)
        run.track(counter=counter, own=own, numbers=numbers)
        seen = []
        for step in run.steps(max=6):
            counter.n += 1
            seen.append(counter.n + random.random() + own.random() + numbers.random() + np.random.rand())  # noqa: NPY002  # kept, too
            run.report(accuracy=step)
            if step == stop_at:
                run.ask_to_leave()
        seen_all.extend(seen)
        return seen

    stop_at, seen_all = 0, []
    randomness.seed_all(3)
    whole = train(Run(grant(tmp_path / "whole")))
    stop_at, seen_all = 2, []
    randomness.seed_all(3)
    with pytest.raises(Yielded):
        train(Run(grant(tmp_path / "cut")))
    randomness.seed_all(99)
    rest = train(Run(grant(tmp_path / "cut", 2, resume_step=2, checkpoint="checkpoints/0/step-2")))
    assert rest == whole[2:]


def test_states_of_plain_data_come_back_as_they_were(run):
    kept = {
        "array": np.arange(6, dtype=np.float32).reshape(2, 3),
        "scalar": np.float64(0.1),
        "tuple": (1, (2, 3)),
        3: {"$odd": [math.inf, None, True]},
    }

    class Holder(Counter):
        def state_dict(self):
            return kept

        def load_state_dict(self, state):
            self.state = state

    holder = Holder()
    run.track(holder=holder)
    save_once(run)
    again = Run(grant(Path(run._grant.root), 2, resume_step=1, checkpoint="checkpoints/0/step-1"))
    again.track(holder=holder)
    assert holder.state["array"].dtype == np.float32
    assert np.array_equal(holder.state.pop("array"), kept.pop("array"))
    assert holder.state == kept


def save_once(run: Run) -> None:
    with pytest.raises(Yielded):
        leave_in_the_first_step(run)


def leave_in_the_first_step(run: Run) -> None:
    for step in run.steps(max=2):
        run.report(accuracy=step)
        run.ask_to_leave()


def test_what_has_no_state_is_refused_when_it_is_tracked(run):
    with pytest.raises(TrainingError, match="scale is a float, which has no state_dict"):
        run.track(scale=1.0)
    run.track(counter=Counter())
    with pytest.raises(TrainingError, match="'counter' is tracked already"):
        run.track(counter=Counter())


def test_a_state_that_cannot_be_read_back_is_refused_at_the_first_save(run):
    class Odd(Counter):
        def state_dict(self):
            return {"hook": test_a_state_that_cannot_be_read_back_is_refused_at_the_first_save}

    run.track(odd=Odd())
    with pytest.raises(TrainingError, match=r"run\.on_save"):
        leave_in_the_first_step(run)


def test_a_wish_before_the_first_step_leaves_at_once(run):
    run.track(counter=Counter())
    run.ask_to_leave()
    with pytest.raises(Yielded):
        next(run.steps(max=2))
    assert spooled(run) == [Horizon(max_steps=2)]


def test_a_checkpoint_without_the_tracked_name_is_told(run):
    run.track(counter=Counter())
    save_once(run)
    again = Run(grant(Path(run._grant.root), 2, resume_step=1, checkpoint="checkpoints/0/step-1"))
    with pytest.raises(TrainingError, match="did you mean 'counter'"):
        again.track(countr=Counter())


def test_a_torn_checkpoint_is_passed_over_for_the_one_before(tmp_path):
    run = Run(grant(tmp_path, goal=Goal("accuracy", "max", target=0.0)))
    counter = Counter()
    run.track(counter=counter)
    for step in run.steps(max=3):
        counter.n = step
        run.report(accuracy=step)
    (tmp_path / "checkpoints/0/step-3/manifest.json").write_text("{")
    with pytest.warns(RuntimeWarning, match="checkpoint step-3 is torn: its manifest"):
        again = Run(grant(tmp_path, 2, resume_step=3, checkpoint="checkpoints/0/step-3"))
    again.track(counter=counter)
    assert (again.resume_step, counter.n) == (2, 2)
    assert next(again.steps(max=5)) == 3
    shutil.rmtree(tmp_path / "checkpoints")
    with pytest.warns(RuntimeWarning, match="starts from its first step"):
        assert Run(grant(tmp_path, 3, resume_step=3, checkpoint="checkpoints/0/step-3")).resume_step == 0


def test_when_a_checkpoint_is_due():
    moments = Moments(0.0)
    assert not moments.is_due(0.9, improved=True)
    assert moments.is_due(1.1, improved=True)
    assert not moments.is_due(59.0, improved=False)
    assert moments.is_due(61.0, improved=False)
    moments.note(100.0, 10.0)
    assert not moments.is_due(299.0, improved=True)
    assert moments.is_due(300.0, improved=True)


def test_a_full_disk_stops_nothing_and_loses_nothing(run, monkeypatch):
    write, room = os.write, [30]

    def nearly_full(fd: int, data: bytes) -> int:
        if room[0] == 0:
            raise OSError(28, "No space left on device")
        sent = write(fd, data[: min(7, room[0])])
        room[0] -= sent
        return sent

    monkeypatch.setattr(os, "write", nearly_full)
    for _ in range(3):
        run.report(accuracy=0.5)
    assert spooled(run) == []
    room[0] = 10_000
    run.report(accuracy=0.5)
    assert [point.step for point in spooled(run)] == [1, 2, 3, 4]


def test_what_a_full_disk_never_took_is_named_at_the_end(tmp_path, monkeypatch):
    spool = Spool(tmp_path / "spool.jsonl")

    def full(fd: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    spool.write(Farewell(outcome=Outcome.COMPLETED))
    with pytest.raises(HostError, match="No space left"):
        spool.close()


def test_a_kill_lets_a_save_be_finished(run):
    run.on_save(lambda folder: run.end_now())
    with pytest.raises(Killed):
        leave_in_the_first_step(run)
    assert [line.step for line in spooled(run) if isinstance(line, Saved)] == [1]
    with pytest.raises(Killed):
        run.end_now()


def test_a_checkpoint_that_finds_no_room_is_done_without(run):
    def full(folder: Path) -> None:
        raise OSError(28, "No space left on device")

    run.on_save(full)
    with pytest.warns(RuntimeWarning, match="training goes on without"), pytest.raises(Yielded):
        leave_in_the_first_step(run)
    assert not [line for line in spooled(run) if isinstance(line, Saved)]


def test_the_reader_gives_whole_lines_once_wherever_they_are_cut(tmp_path):
    path = tmp_path / "spool.jsonl"
    reader = SpoolReader(path)
    assert reader.lines() == []
    data = b'{"a":1}\n{"b":2}\n{"c":3}\n'
    seen = []
    with path.open("ab", buffering=0) as file:
        for at in range(len(data)):
            file.write(data[at : at + 1])
            seen += reader.lines()
    assert seen == data.split()
    assert reader.rest == b""
    with path.open("ab") as file:
        file.write(b'{"d":4}')
    assert reader.lines() == []
    assert reader.rest == b'{"d":4}'
    reader.end_line()
    assert reader.lines() == [b'{"d":4}']
    reader.close()


def test_rings_that_nobody_hears_stop_nothing(tmp_path):
    ear, bell = os.pipe()
    os.set_blocking(bell, False)
    spool = Spool(tmp_path / "spool.jsonl", bell=bell)
    for _ in range(70_000):
        spool._ring(bell)
    os.close(ear)
    spool.write(Farewell(outcome=Outcome.COMPLETED))
    spool.write(Farewell(outcome=Outcome.COMPLETED))
    assert len(SpoolReader(tmp_path / "spool.jsonl").lines()) == 2
    os.close(bell)
    spool.close()


@pytest.mark.parametrize("error", [ValueError("half a pair \udc80"), ValueError(), KeyError("x"), SystemExit(3)])
def test_every_error_becomes_a_farewell(tmp_path, error):
    def train(run: Run) -> None:
        raise error

    farewell = live(grant(tmp_path), lambda: train, own_process=False)
    assert farewell.outcome is Outcome.FAILED
    assert farewell.detail.startswith(type(error).__name__)
    assert type(error).__name__ in (tmp_path / "attempts/0-1/traceback.txt").read_text()


def test_an_error_after_the_training_code_closed_its_stderr_is_kept(tmp_path, monkeypatch):
    def train(run: Run) -> None:
        sys.stderr.close()
        raise ValueError("the real one")

    monkeypatch.setattr(sys, "stderr", (tmp_path / "stderr").open("w"))
    assert live(grant(tmp_path), lambda: train, own_process=False).detail == "ValueError: the real one"
    assert "the real one" in (tmp_path / "attempts/0-1/traceback.txt").read_text()


# --- plain scripts -----------------------------------------------------------------------------------------------


def test_outside_a_study_a_script_runs_as_it_is(monkeypatch, tmp_path, capsys):
    monkeypatch.delenv("FORESAIL_ATTEMPT", raising=False)
    monkeypatch.chdir(tmp_path)
    assert client.config(lr=0.5).lr == 0.5
    client.report(3, accuracy=0.5, loss=1)
    client.report(accuracy="as it likes")
    assert capsys.readouterr().out == "step 3: accuracy 0.5, loss 1\naccuracy as it likes\n"
    assert not client.should_stop()
    assert client.checkpoint_dir().is_dir()


def test_in_a_study_a_script_speaks_to_its_spool(monkeypatch, tmp_path):
    folder = StudyFolder(tmp_path).attempt(grant(tmp_path).attempt)
    monkeypatch.setenv("FORESAIL_ATTEMPT", str(folder.path))
    assert dict(client.config(lr=0.5, steps=3)) == {"lr": 0.1, "steps": 3}
    client.report(accuracy=0.5)
    with pytest.raises(TrainingError, match="is missing"):
        client.report()
    assert not client.should_stop()
    folder.wish.touch()
    assert client.should_stop()
    assert client.should_stop()
    lines = [json.loads(line) for line in folder.spool.read_text().splitlines()]
    assert [line["is"] for line in lines] == ["Point", "Farewell"]
    assert client.checkpoint_dir() == tmp_path / "kept" / "0"


def test_a_grant_comes_back_as_it_was(tmp_path):
    given = grant(tmp_path, config={"a": 1, "b": "adam w", "c": True, "d": 0.1}, best=0.5, cores=(1, 2))
    assert read_grant(StudyFolder(tmp_path).attempt(given.attempt)) == given
