"""Following a study from another process than the one that drives it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from foresail.api.display import Display
from foresail.api.recorded import Follower, driver_of, folder_of
from foresail.api.result import Result, result_of
from foresail.errors import CallerError

EVERY_S = 0.5
"""Seconds between two looks at the log."""


def follow(
    storage: Path, shown: Display, *, every_s: float = EVERY_S, sleep: Callable[[float], object] = time.sleep
) -> Result:
    """Show the study until it ends, or until nobody drives it any more. The driver is not disturbed.

    Returns:
        The result as the log stands then; its `end` is "running" where the study has not ended.

    Raises:
        CallerError: the storage holds no study.
    """
    follower = Follower(storage)
    try:
        follower.news()
        if follower.view.events == 0:
            raise CallerError(f"{storage} holds no study yet", do="start it with `foresail run`, or study.run()")
        shown(follower.view, ())
        while follower.view.ended is None:
            driven = driver_of(storage) is not None
            shown(follower.view, follower.news())
            if follower.view.ended is None and not driven:
                break
            sleep(every_s if follower.view.ended is None else 0.0)
        return result_of(follower.view, storage, folder_of(storage))
    finally:
        follower.close()
