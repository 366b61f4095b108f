"""Scores against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from foresail.curves.score import (
    brier,
    coverage,
    crps,
    interval,
    log_score,
    reliability,
    scorecard,
    tail_ratio,
)

GRID = np.linspace(-5, 5, 4001)


def normal_laws(means: np.ndarray) -> np.ndarray:
    return stats.norm.cdf(GRID[None, :] - means[:, None])


def test_crps_of_a_normal_matches_its_closed_form() -> None:
    outcome = np.array([-1.0, 0.0, 1.3])
    z = outcome
    expected = z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi)
    np.testing.assert_allclose(crps(GRID, normal_laws(np.zeros(3)), outcome), expected, atol=2e-3)


def test_log_score_is_the_log_density_and_the_floor_bounds_it() -> None:
    below, upto = interval(GRID, normal_laws(np.zeros(2)), np.array([0.3, 4.9]), 0.01)
    scores = log_score(below, upto, 0.01)
    assert scores[0] == pytest.approx(stats.norm.logpdf(0.3), abs=1e-3)
    assert log_score(below, upto, 0.01, floor=0.01)[1] == pytest.approx(np.log(0.01), abs=0.01)


def test_coverage_of_a_true_law_is_nominal_and_points_count_whole() -> None:
    u = np.random.default_rng(0).random(20_000)
    for level in (0.5, 0.8, 0.95):
        assert coverage(u, u, level) == pytest.approx(level, abs=0.01)
    assert coverage(np.array([0.1]), np.array([0.9]), 0.5) == pytest.approx(0.5 / 0.8)


def test_reliability_of_honest_chances_is_small_and_of_boasts_is_not() -> None:
    rng = np.random.default_rng(1)
    p = rng.random(20_000)
    event = (rng.random(20_000) < p).astype(float)
    assert reliability(p, event).error < 0.02
    assert reliability(p**4, event).error > 0.15
    assert brier(p, event) == pytest.approx(1 / 6, abs=0.01)


def test_tail_ratio_and_scorecard() -> None:
    p, event = np.array([0.01, 0.03, 0.5]), np.array([0.0, 1.0, 1.0])
    assert tail_ratio(p, event) == pytest.approx(25.0)
    assert np.isnan(tail_ratio(np.array([0.5]), np.array([1.0])))
    card = scorecard(GRID, normal_laws(np.zeros(3)), np.zeros(3), resolution=0.01, prob_M=p, event_M=event)
    assert card.forecasts == 3
    assert dict(card.coverage)[0.5] == pytest.approx(1.0)
    assert card.log_score == pytest.approx(-0.919, abs=0.01)
    empty = scorecard(
        GRID, normal_laws(np.zeros(0)), np.zeros(0), resolution=0.01, prob_M=p[:0], event_M=event[:0]
    )
    assert empty.forecasts == 0
    assert np.isnan(empty.crps)
