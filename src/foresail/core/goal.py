"""What a study is to reach."""

from __future__ import annotations

from msgspec import Struct

from foresail.core.words import Mode


class Goal(Struct, frozen=True):
    metric: str
    mode: Mode
    target: float | None = None
    within_s: float | None = None
    trials: int | None = None
    device_s: float | None = None

    def better(self, a: float, b: float | None) -> bool:
        if b is None:
            return True
        return a > b if self.mode is Mode.MAX else a < b

    def reached(self, value: float | None) -> bool:
        if value is None or self.target is None:
            return False
        return value >= self.target if self.mode is Mode.MAX else value <= self.target
