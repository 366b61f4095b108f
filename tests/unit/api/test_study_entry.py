"""What a study trains is looked for before anything is started."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import foresail as fs
from foresail.api.drive import drive
from foresail.api.entry import check_entry
from foresail.core import events as ev
from foresail.core.goal import maximize
from foresail.core.spec import Entry, StudySpec
from foresail.errors import CallerError, HostError
from foresail.space import Float, Space
from foresail.stores.sqlite import SqliteStore


def test_what_can_be_found(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "tool").chmod(0o755)
    for entry in (
        Entry(function="package.module:train"),
        Entry(function=f"{tmp_path / 'train.py'}:train"),
        Entry(command=("sh", "-c", "true"), cwd=str(tmp_path)),
        Entry(command=("./tool",), cwd=str(tmp_path)),
        Entry(command=("tool",), env={"PATH": str(tmp_path)}),
        Entry(command=("sh", "{tool}.sh"), cwd=str(tmp_path)),
        Entry(command=("sh", "-c", "./no-such-script.sh"), cwd=str(tmp_path)),
    ):
        check_entry(entry)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (Entry(), "run that script again"),
        (Entry(function="/nowhere/train.py:train"), "there is no file /nowhere/train.py"),
        (Entry(command=("no-such-program",)), "there is no program 'no-such-program'"),
        (Entry(command=("./no-such-tool",), cwd="/"), "looked for from /"),
        (Entry(command=("sh",), env={"PATH": "/nowhere"}), "there is no program 'sh'"),
        (Entry(command=("sh",), cwd="/nowhere/at/all"), "the folder /nowhere/at/all"),
    ],
)
def test_what_cannot(entry: Entry, says: str) -> None:
    with pytest.raises(CallerError, match=r".") as caught:
        check_entry(entry)
    assert says in str(caught.value)


def test_a_script_that_is_not_there_is_answered_with_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "train.sh").touch()
    with pytest.raises(CallerError) as caught:
        check_entry(Entry(command=("sh", "trian.sh"), cwd=str(tmp_path)))
    assert caught.value.what == f"there is no script {tmp_path / 'trian.sh'}"
    assert "did you mean 'train.sh'" in caught.value.do


def test_a_study_that_cannot_train_here_is_left_as_it_is(tmp_path: Path) -> None:
    spec = StudySpec(name="x", space=Space(lr=Float(0.0, 1.0)).to_dict(), goal=maximize("accuracy", trials=3))
    storage = tmp_path / "x.db"
    with SqliteStore.open(storage) as log:
        log.append([ev.StudyCreated(at_s=0.0, spec=spec)])
    with pytest.raises(CallerError, match=r"study\.run"):
        drive(storage)
    with SqliteStore.open(storage, write=False) as log:
        assert log.last == 1


def _yields(run: fs.Run) -> Iterator[int]:
    yield 1


async def _waits(run: fs.Run) -> None:
    pass


@pytest.mark.parametrize(
    ("train", "said"),
    [
        (_yields, "train is a generator"),
        (_waits, "train is a coroutine"),
        (lambda: None, "too many positional arguments"),
        (lambda run, data: None, "missing a required argument: 'data'"),
    ],
)
def test_a_function_that_would_train_nothing_is_refused(train: Callable[..., object], said: str) -> None:
    with pytest.raises(CallerError, match=said):
        fs.Study(train, space=fs.Space(x=fs.Float(0.0, 1.0)), goal=fs.maximize("accuracy", target=1.0))


def _trains(run: fs.Run) -> None:
    run.report(accuracy=1.0)


def _study(storage: Path) -> fs.Study:
    return fs.Study(
        _trains, space=fs.Space(x=fs.Float(0.0, 1.0)), goal=fs.maximize("accuracy", trials=1), storage=storage
    )


def test_a_study_does_not_begin_among_attempts_of_another(tmp_path: Path) -> None:
    (tmp_path / "a.runs/attempts/0-1").mkdir(parents=True)
    with pytest.raises(CallerError, match="holds attempts of another study"):
        _study(tmp_path / "a.db").run(quiet=True)
    assert not (tmp_path / "a.db").exists()


@pytest.mark.parametrize("name", ["a.db", "b/c.db"])
def test_a_place_that_is_taken_by_a_file_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.runs").touch()
    (tmp_path / "b").touch()
    with pytest.raises(HostError, match=r"a\.runs|c\.db"):
        _study(tmp_path / name).run(quiet=True)


def test_more_cores_than_there_are_is_refused_with_the_numbers(tmp_path: Path) -> None:
    space, goal = fs.Space(x=fs.Float(0.0, 1.0)), fs.maximize("score", trials=1)
    study = fs.Study(lambda run: None, space=space, goal=goal, storage=tmp_path / "s.db", cores_per_trial=10_000)
    with pytest.raises(CallerError, match=r"a trial asks for 10000 cores and this machine offers \d+"):
        study.run(quiet=True)


def test_replicas_whose_number_changes_need_to_know_the_batch(tmp_path: Path) -> None:
    def study(**parallel: object) -> fs.Study:
        space = fs.Space(size=fs.Int(8, 64))
        goal = fs.maximize("accuracy", trials=1)
        here = tmp_path / "s.db"
        return fs.Study("m:f", space=space, goal=goal, storage=here, cores_per_trial="auto", parallel=parallel)

    with pytest.raises(CallerError, match="say how large a global batch is"):
        study()
    with pytest.raises(CallerError, match="no knob 'sise'; did you mean 'size'"):
        study(batch="sise")
    assert study(batch="size").spec.resources.usable(3, {"size": 32}) == 2
