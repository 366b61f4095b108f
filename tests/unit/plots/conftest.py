"""One study under POP that has a target, and the same curves each trained to its end."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from studies import played, table

from foresail.core import events as ev
from foresail.plots import Chronicle, Foreseen, foresee
from foresail.replay.trace import finals_of


@pytest.fixture(scope="session")
def pop() -> Sequence[ev.Event]:
    trace = table()
    finals = finals_of((curve.values for curve in trace.curves), trace.mode)
    return played(trace, target=finals[1], trials=40)


@pytest.fixture(scope="session")
def whole() -> Sequence[ev.Event]:
    return played(table(30), "fifo")


@pytest.fixture(scope="session")
def chronicle(pop: Sequence[ev.Event]) -> Chronicle:
    """On the way: some trials run, some are suspended, some were ended, some were trained to their ends."""
    return Chronicle.of(pop[: 3 * len(pop) // 5])


@pytest.fixture(scope="session")
def foreseen(chronicle: Chronicle) -> Foreseen:
    found = foresee(chronicle.view)
    assert found is not None
    return found
