"""Simulation-based calibration: on fresh curves from its own prior the posterior is as sure as it should
be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from foresail.curves.lessons import sample_batches
from foresail.curves.network import shipped
from foresail.curves.normal import ndtr
from foresail.curves.tables import scores_at

BATCHES = 30
RESOLUTION = 0.0008


@pytest.fixture(scope="module")
def ranks() -> np.ndarray:
    """Randomised ranks of the true final values of some 6,000 trials, between 0 and 1 (Talts et al. 2018)."""
    rng = np.random.default_rng(987)
    found = []
    for batch, _ in zip(sample_batches(rng), range(BATCHES), strict=False):
        laws = shipped().laws(batch.features_BF, batch.level_B, batch.unit_B)
        truth = (batch.future_BJ[:, -1] + batch.level_B).astype(np.float32)
        low, high = (ndtr(scores_at(laws.tables[:, -1], truth + side)) for side in (-RESOLUTION, RESOLUTION))
        found.append((low + rng.random(len(low)) * (high - low))[batch.keep_B][::2])
    return np.concatenate(found)


def test_ranks_are_uniform(ranks: np.ndarray) -> None:
    counts = np.bincount((ranks * 10).astype(int).clip(0, 9), minlength=10)
    assert stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_intervals_cover_what_they_say(ranks: np.ndarray, level: float) -> None:
    assert np.mean(np.abs(ranks - 0.5) <= level / 2) == pytest.approx(level, abs=0.02)
