"""What `forecast` promises of its answers, on small studies."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from foresail.curves import Forecast, StudyState, forecast, summarise
from foresail.errors import CallerError

HORIZON = np.arange(1, 31)


def study(trials: int = 12, seed: int = 0) -> tuple[list[np.ndarray], list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    steps, values = [], []
    for i in range(trials):
        t = np.arange(1, [0, 3, 10, 20, 30][i % 5] + 1)
        steps.append(t)
        values.append(0.1 + rng.uniform(0.1, 0.8) * (1 - np.exp(-t / rng.uniform(2, 20))) + rng.normal(0, 0.01, len(t)))
    return steps, values


@pytest.fixture(scope="module")
def made() -> Forecast:
    return forecast(*study(), HORIZON, mode="max", draws=6000)


def test_shapes(made: Forecast) -> None:
    assert made.mean.shape == made.quantile(0.5).shape == (12, 30)
    assert made.draws.shape == (6000, 12, 30)
    assert made.prob_reach(0.6, by=20).shape == made.prob_best().shape == made.expected_steps_to(0.6).shape == (12,)
    assert made.prob_reach(0.6, by=[5, 20]).shape == (12, 2)


def test_observed_steps_hold_their_points(made: Forecast) -> None:
    steps, values = study()
    for i, (t, v) in enumerate(zip(steps, values, strict=True)):
        np.testing.assert_allclose(made.mean[i, t - 1], v, atol=1e-6)
        np.testing.assert_allclose(made.draws[:, i, t - 1], np.tile(v, (6000, 1)), atol=1e-6)


def test_draws_agree_with_mean_and_quantiles(made: Forecast) -> None:
    error = made.draws.std(axis=0) / np.sqrt(6000)
    assert (np.abs(made.draws.mean(axis=0) - made.mean) < 5 * error + 1e-6).all()
    below = (made.draws <= made.quantile(0.3)).mean(axis=0)
    assert np.abs(below[made.future] - 0.3).max() < 0.04


@pytest.mark.parametrize("target", [0.3, 0.6, 0.85])
def test_running_maxima_of_draws_agree_with_reach_probabilities(made: Forecast, target: float) -> None:
    best = np.maximum.accumulate(made.draws, axis=2)
    share = (best >= target).mean(axis=0)
    assert np.abs(share - made.prob_reach(target, by=HORIZON)).max() < 0.03


def test_many_targets_at_once_are_each_of_them(made: Forecast) -> None:
    targets = [0.2, 0.5, 0.6, 0.9]
    each = np.stack([made.prob_reach(target) for target in targets], axis=1)
    assert np.abs(made.prob_reach_each(targets) - each).max() < 0.01


def test_draws_agree_with_improvement_best_and_waiting_time(made: Forecast) -> None:
    best = made.draws.max(axis=2)
    assert np.abs(np.maximum(best - 0.7, 0).mean(axis=0) - made.expected_improvement(0.7)).max() < 0.01
    wins = np.bincount(best.argmax(axis=1), minlength=12) / 6000
    assert np.abs(wins - made.prob_best()).max() < 0.03
    reached = np.maximum.accumulate(made.draws, axis=2) >= 0.6
    ahead = HORIZON[reached.argmax(axis=2)] - made.last_step
    wait = np.array([ahead[hit, i].mean() if (hit := reached[:, i, -1]).any() else np.nan for i in range(12)])
    likely = (made.prob_reach(0.6) > 0.1) & (made.expected_steps_to(0.6) > 0)
    assert np.abs(wait - made.expected_steps_to(0.6))[likely].max() < 1.0


def test_reached_targets_are_certain_and_cost_nothing() -> None:
    made = forecast([[1, 2, 3]], [[0.2, 0.9, 0.5]], [4, 5, 6], mode="max")
    assert made.prob_reach(0.9, by=4).tolist() == [1.0]
    assert made.expected_steps_to(0.9).tolist() == [0.0]
    past = forecast([[1, 2, 3]], [[0.2, 0.9, 0.5]], [1, 2, 3, 4], mode="max")
    assert past.prob_reach(0.9, by=[1, 2]).tolist() == [[0.0, 1.0]]


def test_out_of_reach_is_nan() -> None:
    made = forecast(*study(), HORIZON, mode="max")
    assert np.isnan(made.expected_steps_to(1e9)).all()


def test_minimising_mirrors_maximising() -> None:
    steps, values = study()
    up = forecast(steps, values, HORIZON, mode="max", draws=10)
    down = forecast(steps, [-v for v in values], HORIZON, mode="min", draws=10)
    np.testing.assert_allclose(down.mean, -up.mean)
    np.testing.assert_allclose(down.quantile(0.2), -up.quantile(0.8), atol=1e-6)
    np.testing.assert_allclose(down.prob_reach(-0.6), up.prob_reach(0.6))
    np.testing.assert_allclose(down.expected_improvement(-0.6), up.expected_improvement(0.6))
    np.testing.assert_allclose(down.draws, -up.draws)
    np.testing.assert_allclose(down.cdf(-0.6), 1 - up.cdf(0.6), atol=1e-6)


def test_a_state_fed_point_by_point_gives_what_the_function_gives() -> None:
    steps, values = study()
    state = StudyState("max")
    for i, (t, v) in enumerate(zip(steps, values, strict=True)):
        state.update(i, [], [])
        for one_t, one_v in zip(t, v, strict=True):
            state.update(i, [one_t], [one_v])
    state.refit(HORIZON)
    np.testing.assert_allclose(state.forecast(HORIZON).mean, forecast(steps, values, HORIZON, mode="max").mean)
    some = state.forecast(HORIZON, trials=[7, 2])
    np.testing.assert_allclose(some.mean, state.forecast(HORIZON).mean[[7, 2]], rtol=1e-5)


def test_a_new_trial_may_join_with_its_features() -> None:
    steps, values = study()
    state = StudyState("max", features=np.random.default_rng(1).random((12, 3)))
    for i in range(12):
        state.update(i, steps[i], values[i])
    state.forecast(HORIZON)
    state.update(12, [], [], features=[0.1, 0.2, 0.3])
    assert np.isfinite(state.forecast(HORIZON, trials=[12]).mean).all()
    with pytest.raises(CallerError, match="3, as before"):
        state.update(13, [], [], features=[0.1])


def test_diverged_trials_end_on_the_floor_and_never_win() -> None:
    steps, values = study()
    made = forecast([*steps, [1, 2, 3]], [*values, [0.2, 0.5, np.inf]], HORIZON, mode="max")
    assert np.isfinite(made.mean).all()
    assert made.prob_reach(0.7)[-1] < 0.01
    assert made.prob_best()[-1] < 0.01


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: forecast([[1]], [[1.0, 2.0]], [3], mode="max"), "1 steps for 2 values"),
        (lambda: forecast([[1]], [[1.0]], [3], mode="maximum"), "mode is 'maximum'"),
        (lambda: forecast([[1]], [[1.0]], [3, 2], mode="max"), "increasing"),
        (lambda: forecast([[1]], [[1.0]], [], mode="max"), "at least one step"),
        (lambda: forecast([[1]], [[1.0]], [3], mode="max", features=[[1.0], [2.0]]), "as many as trials: 1"),
        (lambda: forecast([[1]], [[1.0]], [3], mode="max").quantile(1.5), "between 0 and 1"),
    ],
)
def test_mistakes_are_named(call: object, words: str) -> None:
    with pytest.raises(CallerError, match=words):
        call()  # type: ignore[operator]


def test_importing_costs_neither_scipy_nor_torch() -> None:
    code = "import sys, foresail.curves; print([m for m in ('scipy', 'torch') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_earlier_study_of_the_same_space_informs_a_new_one() -> None:
    rng = np.random.default_rng(5)
    t = np.arange(1, 31)

    def run(x: np.ndarray) -> list[np.ndarray]:
        return [0.1 + 0.8 * k[0] * (1 - np.exp(-t / 6)) + rng.normal(0, 0.01, 30) for k in x]

    x_old, x_new = rng.random((40, 2)), np.array([[0.05, 0.5], [0.95, 0.5], [0.5, 0.1]])
    old = summarise([t] * 40, run(x_old), x_old, mode="max")
    first = run(x_new[2:])[0][:6]
    made = forecast([[], [], t[:6]], [[], [], first], HORIZON, mode="max", features=x_new, earlier=[old])
    blind = forecast([[], [], t[:6]], [[], [], first], HORIZON, mode="max", features=x_new)
    truth = 0.1 + 0.8 * x_new[:2, 0]
    assert np.abs(made.mean[:2, -1] - truth).sum() < np.abs(blind.mean[:2, -1] - truth).sum()
    assert made.mean[1, -1] - made.mean[0, -1] > 0.1


def test_an_earlier_study_speaks_before_the_first_point() -> None:
    x = np.linspace(0, 1, 20)[:, None]
    old = summarise([[1, 2, 3]] * 20, [[5.0, 4.0, 4.0 - 2 * k[0]] for k in x], x, mode="min")
    made = forecast([[], []], [[], []], [1, 2, 3], mode="min", features=[[0.0], [1.0]], earlier=[old])
    assert made.mean[0, -1] > made.mean[1, -1]
    assert 1.0 < made.mean[1, -1] < 4.0


def test_a_study_scores_its_own_forecasts() -> None:
    state = StudyState("max")
    assert state.track_record(HORIZON).forecasts == 0
    for i, (t, v) in enumerate(zip(*study(40), strict=True)):
        state.update(i, t, v)
    card = state.track_record(HORIZON)
    assert card.forecasts == 8 * 6
    assert 0 < card.crps < 0.2
    assert dict(card.coverage)[0.95] > 0.7
