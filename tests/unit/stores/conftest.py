from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from foresail.testing.logs import Child


@pytest.fixture
def child() -> Iterator[Callable[..., Child]]:
    """Starts child processes; none outlives the test."""
    children: list[Child] = []

    def start(code: str, *arguments: object) -> Child:
        children.append(Child(code, *arguments))
        return children[-1]

    yield start
    for one in children:
        one.kill()
