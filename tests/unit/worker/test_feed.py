"""Loader workers that the training leaves to us."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from foresail.worker.feed import Feed

BATCHES = 8


class Clock:
    """Seconds pass only where the story says so."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def a_feed(load_s: Callable[[int], float], *, most: int = 4) -> tuple[Feed, Clock]:
    clock = Clock()

    class Loader:
        def __init__(self, workers: int) -> None:
            self.workers = workers

        def __len__(self) -> int:
            return BATCHES

        def __iter__(self) -> Iterator[int]:
            for batch in range(BATCHES):
                clock.now_s += load_s(self.workers)
                yield batch

    return Feed(Loader, most=most, clock=clock), clock


def a_pass(feed: Feed, clock: Clock, step_s: float) -> list[int]:
    found = []
    for batch in feed:
        clock.now_s += step_s
        found.append(batch)
    return found


def test_as_many_as_hide_the_loading() -> None:
    feed, clock = a_feed(lambda workers: 0.0 if workers else 2.5)
    assert a_pass(feed, clock, 1.0) == list(range(BATCHES))
    assert feed.workers == 3
    assert a_pass(feed, clock, 1.0) == list(range(BATCHES))
    a_pass(feed, clock, 1.0)
    assert feed.workers == 3, "they save"
    assert len(feed) == BATCHES


def test_never_more_than_there_are_processors() -> None:
    feed, clock = a_feed(lambda workers: 9.0, most=2)
    a_pass(feed, clock, 1.0)
    assert feed.workers == 2


def test_workers_that_save_nothing_leave_again() -> None:
    feed, clock = a_feed(lambda workers: 1.0)
    a_pass(feed, clock, 1.0)
    assert feed.workers == 1
    for _ in range(3):
        a_pass(feed, clock, 1.0)
        assert feed.workers == 0


def test_a_little_loading_is_left_in_line() -> None:
    feed, clock = a_feed(lambda workers: 0.02)
    a_pass(feed, clock, 1.0)
    assert feed.workers == 0


def test_a_pass_that_was_left_early_says_nothing() -> None:
    feed, clock = a_feed(lambda workers: 1.0)
    for _ in feed:
        clock.now_s += 1.0
        break
    assert feed.workers == 0
    a_pass(feed, clock, 1.0)
    assert feed.workers == 1


def test_samples_come_in_the_same_order_with_workers() -> None:
    torch = pytest.importorskip("torch")
    from torch.utils.data import DataLoader, TensorDataset

    data = TensorDataset(torch.arange(32))
    feed = Feed(lambda workers: DataLoader(data, batch_size=4, num_workers=workers), most=1)
    first = [batch[0].tolist() for batch in feed]
    feed.workers = 1
    assert [batch[0].tolist() for batch in feed] == first
