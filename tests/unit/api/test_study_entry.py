"""What a study trains is looked for before anything is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from foresail.api.drive import drive
from foresail.api.entry import check_entry
from foresail.core import events as ev
from foresail.core.goal import maximize
from foresail.core.spec import Entry, StudySpec
from foresail.errors import CallerError
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


def test_a_study_that_cannot_train_here_is_left_as_it_is(tmp_path: Path) -> None:
    spec = StudySpec(name="x", space=Space(lr=Float(0.0, 1.0)).to_dict(), goal=maximize("accuracy", trials=3))
    storage = tmp_path / "x.db"
    with SqliteStore.open(storage) as log:
        log.append([ev.StudyCreated(at_s=0.0, spec=spec)])
    with pytest.raises(CallerError, match=r"study\.run"):
        drive(storage)
    with SqliteStore.open(storage, write=False) as log:
        assert log.last == 1
