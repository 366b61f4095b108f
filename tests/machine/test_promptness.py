"""The world of these histories answers a deletion at once, and its clock moves on at each look, as real ones do."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from foresail.core import events as ev
from foresail.core.commands import Command, DeleteCheckpoint
from foresail.core.spec import Choice
from foresail.testing import history
from foresail.testing.history import Case, play
from foresail.testing.world import World


class PromptWorld(World):
    def now_s(self) -> float:
        self.t += 1e-6
        return super().now_s()

    def driver_comes(self, now_s: float) -> None:
        super().driver_comes(now_s)
        self.answers: list[ev.Fact] = []

    def perform(self, command: Command) -> None:
        if not isinstance(command, DeleteCheckpoint):
            return super().perform(command)
        self.files.pop(command.path, None)
        return self.answers.append(ev.CheckpointDeleted(at_s=self.now_s(), path=command.path))

    def poll(self, until_s: float) -> Sequence[ev.Fact]:
        answers, self.answers = self.answers, []
        return answers or super().poll(until_s)


@pytest.mark.parametrize("seed", range(25, 50))
def test_time_does_not_fall_when_a_driver_takes_over(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """What it did for the last words of the attempts that it adopted was answered before it looked at the time."""
    monkeypatch.setattr(history, "World", PromptWorld)
    play(Case.drawn(seed, Choice("asha")))
