"""Laws of forecasts: what holds for any study, however odd."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.curves import forecast

HORIZON = np.arange(1.0, 21.0)
ODD = st.floats(allow_nan=True, allow_infinity=True, width=64)
PLAIN = st.floats(-100, 100, width=32)


@st.composite
def studies(
    draw: st.DrawFn, values: st.SearchStrategy[float] = PLAIN, least: int = 1
) -> tuple[list[list[float]], ...]:
    trials = draw(st.integers(least, 5))
    steps = [sorted(draw(st.sets(st.integers(1, 20), max_size=8))) for _ in range(trials)]
    return steps, [[draw(values) for _ in s] for s in steps]


def waves(seed: int, trials: int = 6) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Curves with some sense to them."""
    rng = np.random.default_rng(seed)
    steps = [np.arange(1, rng.integers(1, 20)) for _ in range(trials)]
    return steps, [
        rng.normal(0, 0.3) + rng.random() * (1 - np.exp(-t / 5)) + rng.normal(0, 0.02, len(t)) for t in steps
    ]


seeds = st.integers(0, 2**32 - 1)
laws = settings(max_examples=40, deadline=None)


@laws
@given(studies(ODD), st.sampled_from(["max", "min"]))
def test_any_input_gives_finite_output(study: tuple[list[list[float]], ...], mode: str) -> None:
    made = forecast(*study, HORIZON, mode=mode, draws=5)
    for answer in (made.mean, made.quantile(0.01), made.quantile(0.99), made.draws, made.prob_best()):
        assert np.isfinite(answer).all()
    for answer in (made.prob_reach(0.5), made.cdf(0.5)):
        assert ((answer >= 0) & (answer <= 1)).all()
    assert (made.expected_improvement(0.5) >= 0).all()
    assert made.prob_best().sum() == pytest.approx(1.0)
    steps = made.expected_steps_to(0.5)
    assert (np.isnan(steps) | ((steps >= 0) & (steps <= 20))).all()


@laws
@given(seeds, st.permutations(range(6)), st.booleans())
def test_the_order_of_trials_does_not_matter(seed: int, order: list[int], knobs: bool) -> None:
    steps, values = waves(seed)
    features = np.random.default_rng(seed).random((6, 2)) if knobs else None
    one = forecast(steps, values, HORIZON, mode="max", features=features)
    two = forecast([steps[i] for i in order], [values[i] for i in order], HORIZON, mode="max",
                   features=None if features is None else features[order])  # fmt: skip
    np.testing.assert_allclose(two.mean, one.mean[order], atol=2e-3)
    np.testing.assert_allclose(two.prob_reach(0.4), one.prob_reach(0.4)[order], atol=0.02)


@laws
@given(seeds)
def test_reaching_falls_with_the_target_and_grows_with_time(seed: int) -> None:
    made = forecast(*waves(seed), HORIZON, mode="max")
    reach = np.stack([made.prob_reach(target, by=HORIZON) for target in np.linspace(-1, 2, 13)])
    assert (np.diff(reach, axis=0) <= 1e-6).all()
    assert (np.diff(reach, axis=2) >= 0).all()


@laws
@given(seeds)
def test_quantiles_grow_with_their_probability_and_improvement_falls_with_the_rival(seed: int) -> None:
    made = forecast(*waves(seed), HORIZON, mode="max")
    quantiles = np.stack([made.quantile(q) for q in (0.001, 0.05, 0.3, 0.5, 0.9, 0.999)])
    assert (np.diff(quantiles, axis=0) >= -1e-9).all()
    gains = np.stack([made.expected_improvement(over) for over in np.linspace(-0.5, 1.5, 9)])
    assert (np.diff(gains, axis=0) <= 1e-4).all()


@laws
@given(seeds, st.floats(1e-3, 1e3), st.floats(-1e3, 1e3))
def test_scaling_and_shifting_the_metric_scales_and_shifts_the_forecast(
    seed: int, by: float, plus: float
) -> None:
    steps, values = waves(seed)
    if sum(len(v) for v in values) < 2 or np.ptp(np.concatenate(values)) < 1e-3:
        return
    one = forecast(steps, values, HORIZON, mode="max", draws=3)
    two = forecast(steps, [by * v + plus for v in values], HORIZON, mode="max", draws=3)
    size = 1e-3 * by * one.unit + 1e-9 * abs(plus)
    np.testing.assert_allclose(two.mean, by * one.mean + plus, atol=size)
    np.testing.assert_allclose(two.quantile(0.9), by * one.quantile(0.9) + plus, atol=size)
    np.testing.assert_allclose(two.prob_reach(by * 0.4 + plus, by=15), one.prob_reach(0.4, by=15), atol=0.01)


@laws
@given(seeds)
def test_a_batch_gives_what_a_loop_gives(seed: int) -> None:
    from foresail.curves import StudyState

    steps, values = waves(seed)
    state = StudyState("max")
    for i, (t, v) in enumerate(zip(steps, values, strict=True)):
        state.update(i, t, v)
    batch = state.forecast(HORIZON)
    for i in range(len(steps)):
        one = state.forecast(HORIZON, trials=[i])
        np.testing.assert_allclose(one.mean[0], batch.mean[i], atol=1e-4 * batch.unit)
        np.testing.assert_allclose(one.prob_reach(0.5)[0], batch.prob_reach(0.5)[i], atol=1e-3)


@laws
@given(seeds)
def test_points_in_any_order_and_pieces_give_the_same_forecast(seed: int) -> None:
    steps, values = waves(seed)
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(len(t)) for t in steps]
    mixed = forecast([t[o] for t, o in zip(steps, orders, strict=True)],
                     [v[o] for v, o in zip(values, orders, strict=True)], HORIZON, mode="max")  # fmt: skip
    np.testing.assert_allclose(mixed.mean, forecast(steps, values, HORIZON, mode="max").mean, atol=1e-6)
