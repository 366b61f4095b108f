"""Study time: seconds during which a driver was at work. The machine's clock may jump; this one does not."""

from __future__ import annotations

import time


class StudyClock:
    """Goes on from where the last driver left it."""

    def __init__(self, base_s: float = 0.0) -> None:
        self._offset_s = base_s - time.monotonic()

    def now_s(self) -> float:
        return time.monotonic() + self._offset_s
