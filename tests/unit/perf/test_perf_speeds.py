"""Seconds of a step inside a study: what is foreseen before a trial starts and after its first steps."""

from __future__ import annotations

import math

import numpy as np
import pytest

from foresail.perf.smooth import SPEEDUP
from foresail.perf.speeds import Speeds


def study(trials: int, *, steps: int = 4, first: float = 1.0, width: int = 1, seed: int = 0) -> Speeds:
    """Trials whose seconds rise 8 times over the first knob and do not know of the second."""
    speeds, rng = Speeds(), np.random.default_rng(seed)
    for number in range(trials):
        unit = rng.random(2)
        for step in range(steps):
            seconds = truth(unit) * (first if step == 0 else 1.0) * math.exp(0.02 * rng.normal())
            speeds.add(number, unit, seconds, width=width, first=step == 0)
    return speeds


def truth(unit: np.ndarray) -> float:
    return 0.1 * 8.0 ** float(unit[0])


def test_nothing_is_foreseen_before_anything_was_measured() -> None:
    assert Speeds().expected(0, (0.5,)) is None


def test_a_trial_that_has_not_run_is_foreseen_from_the_others() -> None:
    speeds = study(20)
    for unit in np.random.default_rng(1).random((10, 2)):
        said = speeds.expected(99, unit)
        assert said is not None
        assert said.median == pytest.approx(truth(unit), rel=0.1)
        low, high = said.interval()
        assert low < said.median < high


def test_its_own_steps_outweigh_what_was_foreseen() -> None:
    speeds, unit = study(20), (0.5, 0.5)
    before = speeds.expected(99, unit)
    for step in range(8):
        speeds.add(99, unit, 5.0, first=step == 0)
    after = speeds.expected(99, unit)
    assert before is not None
    assert after is not None
    assert before.median < 0.5
    assert after.median == pytest.approx(5.0, rel=0.2)
    assert speeds.foreseen[99] == before


def test_what_is_paid_once_is_taken_off_a_first_report() -> None:
    speeds, unit = study(20, first=6.0), (0.5, 0.5)
    speeds.add(99, unit, 6.0 * truth(np.array(unit)), first=True)
    said = speeds.expected(99, unit)
    assert said is not None
    assert said.median == pytest.approx(truth(np.array(unit)), rel=0.15)


def test_the_speed_up_is_that_of_trials_that_ran_at_two_widths() -> None:
    speeds, rng = study(6), np.random.default_rng(2)
    prior_sd = speeds.speedup[1]
    for number in range(10, 16):
        unit = rng.random(2)
        for width in (1, 2, 4):
            for step in range(4):
                speeds.add(number, unit, truth(unit) / width**0.5, width=width, first=step == 0)
    exponent, sd = speeds.speedup
    assert exponent == pytest.approx(0.5, abs=0.1)
    assert sd < prior_sd
    one, four = speeds.expected(99, (0.5, 0.5), 1), speeds.expected(99, (0.5, 0.5), 4)
    assert one is not None
    assert four is not None
    assert one.median / four.median == pytest.approx(4**exponent)


def test_one_width_leaves_the_speed_up_at_the_prior() -> None:
    assert study(10).speedup[0] == pytest.approx(SPEEDUP)


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.inf, math.nan])
def test_absurd_seconds_are_no_measurement(seconds: float) -> None:
    speeds = Speeds()
    speeds.add(0, (0.5,), seconds)
    assert speeds.expected(0, (0.5,)) is None


@pytest.mark.parametrize("scale", [1e-6, 3.0, 1e6])
def test_another_unit_of_time_scales_what_is_foreseen(scale: float) -> None:
    plain, scaled = Speeds(), Speeds()
    rng = np.random.default_rng(3)
    for number in range(12):
        unit, seconds = rng.random(2), math.exp(rng.normal())
        for step in range(3):
            plain.add(number, unit, seconds, first=step == 0)
            scaled.add(number, unit, scale * seconds, first=step == 0)
    one, other = plain.expected(50, (0.2, 0.7)), scaled.expected(50, (0.2, 0.7))
    assert one is not None
    assert other is not None
    assert other.median / scale == pytest.approx(one.median, rel=1e-3)


def test_without_knobs_all_trials_are_alike() -> None:
    speeds = Speeds()
    for number in range(5):
        speeds.add(number, (), 2.0)
    said = speeds.expected(9, ())
    assert said is not None
    assert said.median == pytest.approx(2.0, rel=0.05)


def test_one_observation_repeated_is_certain_and_finite() -> None:
    speeds = Speeds()
    for number in range(40):
        for _ in range(5):
            speeds.add(number, (0.5, 0.5), 1.0)
    said = speeds.expected(50, (0.5, 0.5))
    assert said is not None
    assert said.median == pytest.approx(1.0, rel=0.02)
    assert 0.0 < said.log_sd < 0.2
