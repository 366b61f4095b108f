"""A store that refuses is waited for, until a person asks to stop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from foresail.core import events as ev
from foresail.driver.loop import Driver
from foresail.errors import HostError


class FullStore:
    def append(self, events: Sequence[ev.Event], *, durable: bool = False) -> None:
        raise HostError("the disk is full")


def test_a_wish_to_stop_ends_the_wait_for_a_full_disk() -> None:
    nothing: Any = None
    store: Any = FullStore()
    driver = Driver(nothing, store=store, executor=nothing, clock=nothing, trouble=print)
    driver.request_stop()
    with pytest.raises(HostError, match="the disk is full"):
        driver._append([], durable=True)
