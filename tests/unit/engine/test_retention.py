from __future__ import annotations

import math

import pytest

from foresail.core.commands import DeleteCheckpoint
from foresail.core.goal import Goal
from foresail.core.words import Outcome
from foresail.testing.byhand import METRIC, ByHand


def study_of(keep_bytes: int = 10**9) -> ByHand:
    return ByHand(goal=Goal(METRIC, "max", within_s=1e6), keep_bytes=keep_bytes)


def doomed(study: ByHand) -> list[str]:
    return list(dict.fromkeys(command.path for command in study.asked if isinstance(command, DeleteCheckpoint)))


def train(study: ByHand, attempt: str, *values: float, first: int = 1) -> None:
    for step, value in enumerate(values, start=first):
        study.point(attempt, step, value)
        study.saved(attempt, step)


def test_the_best_and_the_latest_stay() -> None:
    study = study_of()
    train(study, "0-1", 0.1, 0.9, 0.5, 0.4)
    assert doomed(study) == ["0-1/1", "0-1/3"]


def test_of_a_trial_that_is_over_the_best_stays() -> None:
    study = study_of()
    train(study, "0-1", 0.1, 0.9, 0.5)
    study.end("0-1")
    assert set(doomed(study)) == {"0-1/1", "0-1/3"}


def test_a_value_that_is_not_finite_is_no_best() -> None:
    study = study_of()
    train(study, "0-1", 0.9, math.inf)
    study.end("0-1", Outcome.KILLED)
    assert "0-1/1" not in doomed(study)


def test_over_the_budget_the_worst_of_the_ended_go_first_and_no_more_than_needed() -> None:
    study = study_of(keep_bytes=35)
    for trial, value in enumerate((0.3, 0.1, 0.9)):
        train(study, f"{trial}-1", value)
        study.end(f"{trial}-1")
    assert doomed(study) == []
    train(study, "3-1", 0.2)
    assert doomed(study) == ["1-1/1"]  # 40 bytes, 35 allowed: one is enough
    study.deleted("1-1/1")
    train(study, "3-1", 0.25, first=2)
    assert doomed(study) == ["1-1/1", "3-1/1"]  # what is superseded makes room already


@pytest.mark.parametrize("keep", [0, 1])
def test_no_budget_is_so_small_that_the_best_goes(keep: int) -> None:
    study = study_of(keep_bytes=keep)
    train(study, "0-1", 0.9, 0.1)
    study.end("0-1")
    train(study, "1-1", 0.2, 0.3)
    study.end("1-1")
    assert "0-1/1" not in doomed(study)
    assert {"1-1/1", "1-1/2"} <= set(doomed(study))


def test_a_doubled_report_does_not_bring_a_deleted_checkpoint_back() -> None:
    study = study_of()
    train(study, "0-1", 0.1, 0.2, 0.3)
    study.deleted("0-1/1")
    assert study.saved("0-1", 1) == []
    assert study.controller.refused == 1
    assert "0-1/1" not in study.view.checkpoints


def test_of_two_checkpoints_of_one_step_the_newer_is_resumed_from() -> None:
    study = study_of()
    train(study, "0-1", 0.1, 0.2)
    study.end("0-1", Outcome.LOST)
    study.saved("0-2", 2)
    checkpoint = study.view.trials[0].checkpoint
    assert checkpoint is not None
    assert checkpoint.path == "0-2/2"


def test_what_a_dead_driver_did_not_delete_is_deleted_by_the_next() -> None:
    study = study_of()
    train(study, "0-1", 0.1, 0.2, 0.3)
    assert set(doomed(study)) == {"0-1/1", "0-1/2"}
    again = [command.path for command in study.controller.recover() if isinstance(command, DeleteCheckpoint)]
    assert again == ["0-1/1", "0-1/2"]
