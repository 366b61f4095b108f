"""How ends are understood, and what the machine tells about them."""

from __future__ import annotations

import pytest

from foresail.core.words import Outcome
from foresail.executors import linux
from foresail.executors.birth import command_line
from foresail.executors.ending import Death, classify, last_line
from foresail.worker.spool import Farewell

DONE, LEFT = Farewell(outcome=Outcome.COMPLETED), Farewell(outcome=Outcome.YIELDED)
RAISED = Farewell(outcome=Outcome.FAILED, detail="ValueError: no")


@pytest.mark.parametrize(
    ("death", "outcome", "detail"),
    [
        (Death(farewell=DONE, code=0), Outcome.COMPLETED, ""),
        (Death(farewell=LEFT, code=0), Outcome.YIELDED, ""),
        (Death(farewell=DONE, code=-9, killed=True), Outcome.COMPLETED, ""),
        (Death(farewell=RAISED, code=1), Outcome.FAILED, "ValueError: no"),
        (Death(farewell=RAISED, code=1, killed=True), Outcome.KILLED, "ValueError: no"),
        (Death(farewell=DONE, code=None), Outcome.COMPLETED, ""),
        (Death(farewell=None, code=None), Outcome.LOST, "it vanished with the driver"),
        (Death(farewell=None, code=-9, killed=True), Outcome.KILLED, ""),
        (Death(farewell=None, code=-9), Outcome.LOST, "killed from outside by SIGKILL"),
        (Death(farewell=None, code=-36), Outcome.FAILED, "died of signal 36"),
        (Death(farewell=None, code=-15), Outcome.LOST, "killed from outside by SIGTERM"),
        (Death(farewell=None, code=-9, oom_kills=1), Outcome.OUT_OF_MEMORY, "the kernel killed it for memory"),
        (Death(farewell=None, code=-11, oom_kills=1), Outcome.FAILED, "died of SIGSEGV"),
        (Death(farewell=None, code=3), Outcome.FAILED, "exit code 3 before the training function returned"),
        (Death(farewell=None, code=0, command=True), Outcome.COMPLETED, ""),
        (Death(farewell=LEFT, code=0, command=True), Outcome.YIELDED, ""),
        (Death(farewell=LEFT, code=2, command=True, complaint="oops"), Outcome.FAILED, "exit code 2: oops"),
        (Death(farewell=LEFT, code=None, command=True), Outcome.LOST, "it vanished with the driver"),
        (Death(farewell=LEFT, code=-9, command=True, killed=True), Outcome.KILLED, ""),
        (
            Death(farewell=None, code=1, command=True, complaint="torch.OutOfMemoryError: CUDA out of memory."),
            Outcome.OUT_OF_MEMORY,
            "torch.OutOfMemoryError: CUDA out of memory.",
        ),
    ],
)
def test_an_end_is_classified(death, outcome, detail):
    assert classify(death) == (outcome, detail)


def test_the_last_line_that_says_something(tmp_path):
    log = tmp_path / "log"
    assert last_line(log) == ""
    log.write_bytes(b"x" * 100_000 + b"\nValueError: \xff no\n\n  \n")
    assert last_line(log) == "ValueError: \N{REPLACEMENT CHARACTER} no"


def test_kills_for_memory_are_counted():
    assert linux.count_oom_kills() >= 0


@pytest.mark.parametrize(
    ("command", "config", "line"),
    [
        (("a",), {"lr": 1e-05, "on": True}, ["a", "--lr", "1e-05", "--on", "true"]),
        (("a", "--opt={name}"), {"name": "adam w"}, ["a", "--opt=adam w"]),
        (("a", "{name}{n}", "{other}", "{}"), {"name": "{n}", "n": 2}, ["a", "{n}2", "{other}", "{}"]),
        (("a",), {"text": "--x; rm -rf $HOME 'q'"}, ["a", "--text=--x; rm -rf $HOME 'q'"]),
        (("a",), {"x": -1e-05, "y": ""}, ["a", "--x=-1e-05", "--y", ""]),
    ],
)
def test_a_command_line_is_a_list(command, config, line):
    assert command_line(command, config) == line
