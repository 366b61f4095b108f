"""A driver killed at any moment: from every prefix of a log, a fresh engine decides as the uninterrupted one did."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from foresail.core import codec
from foresail.core import events as ev
from foresail.core.spec import Choice
from foresail.core.view import fold
from foresail.core.words import Outcome
from foresail.policies.registry import NAMES
from foresail.testing.digest import view_digest
from foresail.testing.history import Case, controller_of, play

SEEDS = (3, 5, 8, 21)
MOST_EVENTS = 160


def uninterrupted(policy: str) -> Iterator[tuple[Case, list[ev.Event]]]:
    for seed in SEEDS:
        case = dataclasses.replace(Case.drawn(seed, Choice(policy)), deaths=0)
        log = play(case).log
        if len(log) <= MOST_EVENTS:
            yield case, log


def batches(log: list[ev.Event]) -> Iterator[tuple[int, list[ev.Event]]]:
    """Each fact with what was decided upon it, and where it begins: what one append holds at least."""
    starts = [at for at, event in enumerate(log) if isinstance(event, ev.Fact)]
    for begin, end in zip(starts, [*starts[1:], len(log)], strict=True):
        yield begin, log[begin:end]


@pytest.mark.parametrize("policy", NAMES)
def test_what_is_decided_after_a_cut_is_what_was_decided_without(policy: str) -> None:
    cuts = 0
    for case, log in uninterrupted(policy):
        later = list(batches(log))
        for number, (cut, _) in enumerate(later):
            controller = controller_of(case.spec)
            controller.load(log[:cut])
            for _, batch in later[number:]:
                decided = controller.feed(batch[0]).events  # type: ignore[arg-type]
                assert [codec.encode(e) for e in decided] == [codec.encode(e) for e in batch]
            cuts += 1
            assert view_digest(controller.view) == view_digest(fold(log))
    assert cuts > 50


@pytest.mark.parametrize("policy", NAMES)
def test_a_log_torn_anywhere_can_be_continued(policy: str) -> None:
    """Also where a damaged file lost decisions that were appended with their fact."""
    for case, log in uninterrupted(policy):
        for cut in range(1, len(log)):
            controller = controller_of(case.spec)
            controller.load(log[:cut])
            view = controller.view
            if view.ended is not None:
                continue
            controller.feed(ev.DriverStarted(at_s=view.now_s, cores=case.machines[0]))
            for attempt in tuple(view.attempts):
                controller.feed(ev.AttemptEnded(at_s=view.now_s, attempt=attempt, outcome=Outcome.LOST))
            controller.feed(ev.Ticked(at_s=view.now_s))
            assert view.attempts or view.ended is not None  # it goes on, or it is over; it does not hang
