"""What every store keeps to. One suite, run on each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foresail.core import events as ev
from foresail.core.words import AttemptId
from foresail.ports import Store
from foresail.stores.memory import MemoryStore
from foresail.stores.sqlite import SqliteStore
from foresail.testing.strategies import events

Make = Callable[[], Store]


@pytest.fixture(params=["memory", "sqlite"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Makes empty stores; they are closed in the end."""
    made: list[Store] = []

    def one() -> Store:
        made.append(MemoryStore() if request.param == "memory" else SqliteStore.open(tmp_path / f"{len(made)}.db"))
        return made[-1]

    yield one
    for store in made:
        store.close()


def point(step: int) -> ev.PointReported:
    return ev.PointReported(at_s=float(step), attempt=AttemptId("0-1"), step=step, metrics={"loss": 1.0 / step})


def test_what_was_appended_is_read_in_order_with_numbers_from_1(make: Make) -> None:
    store = make()
    assert list(store.read()) == []
    store.append([point(1), point(2)], durable=False)
    store.append([], durable=True)
    store.append([point(3)], durable=True)
    assert list(store.read()) == [(1, point(1)), (2, point(2)), (3, point(3))]


@pytest.mark.parametrize("after", [0, 1, 2, 3, 4, 100])
def test_reading_after_a_number(make: Make, after: int) -> None:
    store = make()
    store.append([point(n) for n in (1, 2, 3)], durable=False)
    assert [n for n, _ in store.read(after)] == [n for n in (1, 2, 3) if n > after]


def test_a_follower_gets_each_event_once(make: Make) -> None:
    store = make()
    seen: list[int] = []
    for step in range(1, 30):
        store.append([point(step)] * (step % 3), durable=False)
        seen += [n for n, _ in store.read(seen[-1] if seen else 0)]
    assert seen == list(range(1, len(seen) + 1))
    assert len(seen) == sum(step % 3 for step in range(1, 30))


def test_a_long_log_is_read_whole(make: Make) -> None:
    store = make()
    store.append([point(n) for n in range(1, 12_346)], durable=False)
    assert [n for n, _ in store.read()] == list(range(1, 12_346))
    assert list(store.read(12_344)) == [(12_345, point(12_345))]


def test_closing_twice_is_harmless(make: Make) -> None:
    store = make()
    store.close()
    store.close()


@given(st.lists(st.lists(events(), max_size=4), max_size=4))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_any_event_comes_back(make: Make, batches: list[list[ev.Event]]) -> None:
    store = make()
    for batch in batches:
        store.append(batch, durable=False)
    everything = [event for batch in batches for event in batch]
    assert repr([event for _, event in store.read()]) == repr(everything)
    store.close()
