"""Random histories of whole studies in a bad world: every rule of `foresail.testing.invariants` at every event.

By hand, more of them: pytest -m soak tests/machine
"""

from __future__ import annotations

import pytest

from foresail.core.spec import Choice
from foresail.policies.registry import NAMES
from foresail.testing.history import Case, play

BATCH = 20
BATCHES = {"fifo": 3, "median": 3, "asha": 3, "asha-stop": 3, "pop": 3, "hybrid": 3}
MANY = 3_000


@pytest.mark.parametrize(
    ("policy", "batch"), [(policy, batch) for policy in NAMES for batch in range(BATCHES.get(policy, 1))]
)
def test_a_study_keeps_its_rules(policy: str, batch: int) -> None:
    drivers = 0
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        drivers += play(Case.drawn(seed, Choice(policy))).drivers
    assert drivers > BATCH  # some died, and others took over


@pytest.mark.usefixtures("learnt")
@pytest.mark.slow
@pytest.mark.parametrize("policy", ["pop", "earlyterm", "freezethaw"])
def test_so_it_does_with_the_learnt_forecasts(policy: str) -> None:
    for seed in (2, 5, 18):
        play(Case.drawn(seed, Choice(policy)))


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("policy", NAMES)
def test_a_study_keeps_its_rules_for_long(policy: str) -> None:
    for seed in range(MANY):
        play(Case.drawn(1_000 + seed, Choice(policy)))
