"""A stored study, and `foresail` called as a person would."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from stored_study import one_of_each, store

from foresail.cli.main import main
from foresail.core import events as ev

GOLDEN = Path(__file__).parent / "golden"


@dataclass
class Called:
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def foresail() -> Callable[..., Called]:
    def call(*args: object) -> Called:
        path = os.pathsep.join((os.path.dirname(sys.executable), os.environ.get("PATH", "")))  # where `foresail` is
        result = CliRunner().invoke(main, [str(arg) for arg in args], env={"COLUMNS": "110", "PATH": path})
        return Called(result.exit_code, result.stdout, result.stderr)

    return call


@pytest.fixture
def golden(tmp_path: Path) -> Callable[[str, str], None]:
    """Compare with a file of `golden/`; the test's own folder is written `HERE`."""

    def check(name: str, text: str) -> None:
        assert text.replace(str(tmp_path), "HERE") == (GOLDEN / name).read_text()

    return check


@pytest.fixture
def events() -> list[ev.Event]:
    """Trial 0 reached the target, 1 was poor, 2 diverged, 3 failed, 4 is suspended."""
    return one_of_each()


@pytest.fixture
def storage(tmp_path: Path, events: list[ev.Event]) -> Path:
    """The study in `digits.db`, with the traceback of trial 3 where an attempt leaves it."""
    failed = tmp_path / "digits.runs" / "attempts" / "3-1"
    failed.mkdir(parents=True)
    (failed / "traceback.txt").write_text("Traceback (most recent call last):\nValueError: no such file\n")
    (failed / "stderr.log").write_text("reading\n")
    for step in (3, 4):
        (tmp_path / "digits.runs" / "checkpoints" / "0" / f"step-{step}").mkdir(parents=True)
    return store(tmp_path / "digits.db", events)
