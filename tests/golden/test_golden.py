"""Logs in, decisions out, byte for byte. Changed on purpose by tests/golden/make.py and nothing else."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from make import LOGS, PLAIN, path_of, plain_forecasts

from foresail.core import codec
from foresail.core import events as ev
from foresail.testing.history import controller_of


def recorded(name: str) -> list[bytes]:
    return path_of(name).read_bytes().splitlines()


def decided(lines: list[bytes]) -> list[ev.Event]:
    """The facts of a log are fed; what comes out is the log again, or the engine decides otherwise than it did."""
    events = [codec.decode(line) for line in lines]
    assert isinstance(events[0], ev.StudyCreated)
    controller = controller_of(events[0].spec)
    return [answer for event in events if isinstance(event, ev.Fact) for answer in controller.feed(event).events]


@pytest.mark.parametrize("name", PLAIN)
def test_the_same_facts_lead_to_the_same_decisions(name: str) -> None:
    lines = recorded(name)
    with plain_forecasts():
        assert [codec.encode(event) for event in decided(lines)] == lines


@pytest.mark.parametrize("name", sorted(set(LOGS) - set(PLAIN)))
def test_learnt_forecasts_lead_to_the_same_decisions_on_any_machine(name: str) -> None:
    """Sums of float32 may differ in their last digits from machine to machine; what is decided may not."""
    lines = recorded(name)
    events = [msgspec.to_builtins(codec.decode(line)) for line in lines]
    for ours, theirs in zip(map(msgspec.to_builtins, decided(lines)), events, strict=True):
        same(ours, theirs)


def same(ours: Any, theirs: Any) -> None:
    match theirs:
        case dict():
            assert ours.keys() == theirs.keys()
            for key in theirs:
                same(ours[key], theirs[key])
        case list() | tuple():
            assert len(ours) == len(theirs)
            for a, b in zip(ours, theirs, strict=True):
                same(a, b)
        case float() if math.isfinite(theirs):
            assert ours == pytest.approx(theirs, rel=0.02, abs=0.005)
        case _:
            assert repr(ours) == repr(theirs)


@pytest.mark.parametrize("name", LOGS)
def test_each_log_is_worth_its_place(name: str) -> None:
    events = [codec.decode(line) for line in recorded(name)]
    kinds = {type(event) for event in events}
    assert {ev.Planned, ev.AttemptGranted, ev.AttemptEnding, ev.TrialEnded, ev.StudyEnded} <= kinds
    assert sum(isinstance(event, ev.DriverStarted) for event in events) >= 2
