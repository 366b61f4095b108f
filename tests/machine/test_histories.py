"""Random histories of whole studies in a bad world: every rule of `foresail.testing.invariants` at every event.

By hand, more of them: pytest -m soak tests/machine
"""

from __future__ import annotations

import pytest

from foresail.core.spec import Choice
from foresail.policies.registry import NAMES
from foresail.testing.history import Case, play

SOME, BATCH = 60, 20
MANY = 3_000


@pytest.mark.parametrize("batch", range(SOME // BATCH))
@pytest.mark.parametrize("policy", NAMES)
def test_a_study_keeps_its_rules(policy: str, batch: int) -> None:
    drivers = 0
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        drivers += play(Case.drawn(seed, Choice(policy))).drivers
    assert drivers > BATCH  # some died, and others took over


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("policy", NAMES)
def test_a_study_keeps_its_rules_for_long(policy: str) -> None:
    for seed in range(SOME, SOME + MANY):
        play(Case.drawn(seed, Choice(policy)))
