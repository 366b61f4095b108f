"""The parts that forecasts are made of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats

from foresail.curves.history import LONGEST, History, gather
from foresail.curves.honesty import REPLAYED, defended, record_of, replays_of
from foresail.curves.neighbours import fit_neighbours
from foresail.curves.network import KNOTS, Laws
from foresail.curves.normal import ndtr, ndtri
from foresail.curves.passage import passed_by, stays_below
from foresail.curves.peers import gains_of
from foresail.curves.scale import FLOOR, START, Ends, Scale, fit_scale
from foresail.curves.tables import MEAN_WEIGHTS, SCORES, quantile_at, read, scores_at
from foresail.errors import CallerError


def test_normal_functions_match_scipy() -> None:
    x = np.linspace(-6, 6, 301)
    np.testing.assert_allclose(ndtr(x), special.ndtr(x), atol=1e-7)
    p = special.ndtr(np.linspace(-6, 6, 101))
    np.testing.assert_allclose(ndtri(p), special.ndtri(p), atol=1e-6)


def test_scale_is_a_line_above_the_start_and_a_logarithm_below() -> None:
    scale = fit_scale(
        Ends(*(np.array(v, dtype=float) for v in ([0.1, 0.1, 0.2], [0.5, 0.9, 0.4], [0.5, 0.9, 0.4], [0.1, 0.1, 0.2])))
    )
    assert scale.inside(np.array([0.1, 0.9, 1.7])) == pytest.approx([0.2, 0.6, 1.0])
    low = scale.inside(np.array([-1e4, -0.7, np.nan, -np.inf]))
    assert low[1] == pytest.approx(START - 0.4 * np.log(2.0))
    assert (low[[0, 2, 3]] == FLOOR).all()


def test_scale_inverts() -> None:
    inner = np.linspace(FLOOR, 2.0, 50)
    scale = Scale(best=3.0, width=0.7)
    np.testing.assert_allclose(scale.inside(scale.outside(inner)), inner, atol=1e-9)


def test_a_diverged_half_does_not_move_the_scale() -> None:
    first, last = np.full(10, 0.1), np.array([0.5] * 6 + [-1e30] * 4)
    scale = fit_scale(Ends(first, last, np.maximum(first, last), np.minimum(first, last)))
    assert float(scale.width) == pytest.approx(0.4)


def test_history_thins_but_keeps_the_ends() -> None:
    history = History(1.0, 1)
    for t in range(1, 3001):
        history.extend(0, [t], [np.sin(t / 100)])
    assert history.count[0] <= LONGEST
    assert history.total[0] == 3000
    assert (np.diff(history.steps[0, : history.count[0]]) > 0).all()
    assert history.ends.high[0] == pytest.approx(1.0, abs=1e-3)
    assert history.last_step[0] == 3000


def test_gathering_and_extending_agree() -> None:
    steps = [[1, 2, 3], [], [3, 1, 2, 2], [1, 2], [1, 2, 3]]
    values = [[1, np.nan, 3], [], [3, 1, 2, 5], [1, np.inf], [1, np.nan, np.nan]]
    one, two = gather(1.0, steps, values), History(1.0, 5)
    for i in range(5):
        two.extend(i, steps[i], values[i])
    for name in ("count", "lost", "last_step", "first_step"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    np.testing.assert_array_equal(one.lost, [False, False, False, True, True])
    assert two.values[2, :3].tolist() == [1, 5, 3]


def test_growing_trial_by_trial_is_gathering() -> None:
    rng = np.random.default_rng(0)
    steps = [np.arange(1, n + 1) for n in rng.integers(1, 30, 100)]
    values = [rng.normal(size=len(s)) for s in steps]
    one, two = gather(1.0, steps, values), History(1.0, 0)
    for i, (s, v) in enumerate(zip(steps, values, strict=True)):
        for step, value in zip(s, v, strict=True):
            two.extend(i, [step], [value])
    for name in ("count", "total", "lost", "last_step", "first_step"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    for name in ("first", "last", "high", "low"):
        np.testing.assert_array_equal(getattr(one.ends, name), getattr(two.ends, name))
    assert all((two.values[i, : len(v)] == v).all() for i, v in enumerate(values))


def test_steps_take_half_the_room_until_that_would_lose_digits() -> None:
    history = History(1.0, 0)
    history.extend(0, [1, 2.5], [0.1, 0.2])
    assert history.steps.dtype == np.float32
    history.extend(1, [2**24 + 1, 2**24 + 2], [0.1, 0.2])
    assert history.steps[1, :2].tolist() == [2**24 + 1, 2**24 + 2]
    assert history.steps[0, :2].tolist() == [1, 2.5]


def test_a_trial_is_not_its_own_peer() -> None:
    steps = [np.arange(1, 11)] * 3
    history = gather(1.0, steps, [t * slope for t, slope in zip(steps, (0.1, 0.1, 0.02), strict=True)])
    gains = gains_of(history, np.arange(3), Scale(best=1.0, width=1.0), end=10.0)
    assert gains is not None
    half, nowhere = np.full(3, 0.5), np.full(3, np.nan)
    mean, sd, trust = gains.of(half, nowhere, np.arange(3))
    others = np.array([[0.2, 0.04], [0.2, 0.04], [0.2, 0.2]])  # 0.4 of the scale for a metric of one
    np.testing.assert_allclose(mean, others.mean(axis=1), atol=1e-6)
    np.testing.assert_allclose(sd, others.std(axis=1), atol=1e-6)
    np.testing.assert_allclose(trust, 2.0 / 5.0)
    near = gains.of(half, np.array([0.4, 0.4, 0.4]), np.array([7, 8, 9]))[0]
    far = gains.of(half, np.array([0.0, 0.0, 0.0]), np.array([7, 8, 9]))[0]
    assert (near > far).all()  # who stood near a trial that is well up gained more


def test_a_hole_in_trial_numbers_is_refused() -> None:
    with pytest.raises(CallerError, match="trial 3 of 1"):
        History(1.0, 1).extend(3, [1], [1.0])


def test_tables_read_invert_and_integrate() -> None:
    rng = np.random.default_rng(0)
    table = np.sort(rng.normal(size=(5, len(SCORES))).astype(np.float32), axis=-1)
    for score in (-4.0, -1.0, 0.1, 3.5):
        values = quantile_at(table, score)
        np.testing.assert_allclose(scores_at(table, values), score, atol=1e-4)
    np.testing.assert_allclose(read(table, np.tile(SCORES, (5, 1))), table, atol=1e-5)
    z = rng.normal(size=200_000)
    drawn = read(np.tile(table[0], (1, 1)), z[None].astype(np.float32))
    assert float(table[0] @ MEAN_WEIGHTS) == pytest.approx(float(drawn.mean()), abs=0.02)
    assert float(SCORES @ MEAN_WEIGHTS) == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize("fresh", [0.001, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("loading", [0.3, 0.9])
def test_first_passage_matches_simulated_paths(fresh: float, loading: float) -> None:
    rng = np.random.default_rng(3)
    steps, paths = 25, 40_000
    z = np.linspace(2.2, 1.0, steps)
    g, e = rng.normal(size=(paths, 1)), rng.normal(size=(paths, steps))
    for h in range(1, steps):
        kept = rng.random(paths) > fresh
        e[kept, h] = e[kept, h - 1]
    over = loading * g + np.sqrt(1 - loading**2) * e >= z
    share = np.maximum.accumulate(over, axis=1).mean(axis=0)
    a, r = np.full((steps, 1), loading, np.float32), np.full((steps, 1), fresh, np.float32)
    passed = passed_by(z[:, None].astype(np.float32), a, r)[:, 0]
    np.testing.assert_allclose(passed, share, atol=0.015)
    whole = 1 - stays_below(z[:, None, None].astype(np.float32), a, r)
    assert whole[0, 0] == pytest.approx(passed[-1], abs=1e-4)


def test_neighbours_recover_a_smooth_surface_and_leave_each_out() -> None:
    rng = np.random.default_rng(0)
    x = rng.random((60, 3))
    truth = 0.4 + 0.3 * np.sin(3 * x[:, 0])
    fitted = fit_neighbours(x, truth + 0.02 * rng.normal(size=60), np.full(60, 1e-4))
    assert np.abs(fitted.level - truth).mean() < 0.04
    assert fitted.lengths[0] < fitted.lengths[1:].min()
    level, sd = fitted.predict(x[:5] + 0.01)
    assert np.abs(level - truth[:5]).max() < 0.1
    assert (sd < 0.2).all()


def test_neighbours_leave_one_out_as_refitting_does() -> None:
    rng = np.random.default_rng(1)
    x, noise = rng.random((12, 2)), np.full(12, 0.01)
    m = 0.4 + 0.2 * x[:, 0] + 0.05 * rng.normal(size=12)
    f = fit_neighbours(x, m, noise)
    kernel = f.amplitude * np.exp(-0.5 * ((f.sites[:, None] - f.sites[None]) ** 2).sum(-1))
    rest = np.arange(1, 12)
    weights = kernel[0, rest] @ np.linalg.inv(kernel[np.ix_(rest, rest)] + np.diag(noise[rest] + f.nugget))
    assert f.level[0] == pytest.approx(f.centre + weights @ (m[rest] - f.centre), abs=1e-6)


def test_defended_tails_are_no_thinner_than_their_share() -> None:
    tight = np.tile(0.5 + 0.001 * SCORES, (1, 1, 1)).astype(np.float32)
    one = np.ones(1)
    wide = defended(tight, 0.5 * one, 0.5 * one, 0.3 * one, 0.1 * one, np.ones((1, 1)))
    share = 1.0 - ndtr(scores_at(wide[0, 0], np.float32(1.0)))
    assert share >= 0.8 * 0.08 * (1.0 - stats.norm.cdf(0.5 / 0.3))
    np.testing.assert_array_equal(defended(tight, 0.5 * one, 0.5 * one, 0.3 * one, 0.6 * one, np.ones((1, 1))), tight)


def _recalled(said: np.ndarray, trials: int = 400) -> np.ndarray:
    """Where `SCORES` belong at the end, half-way, once `trials` have ended where a standard normal law has it although
    `said` (Q,) was forecast."""
    end = 40
    values = np.tile(np.linspace(0.0, 1.0, end), (trials, 1))
    history = gather(1.0, [np.arange(1.0, end + 1)] * trials, list(values))
    replays = replays_of(history, np.arange(trials), Scale(1.0, 1.0), float(end), 1.0)
    z = ndtri((np.arange(60) + 0.5) / 60)
    replays = [replace(r, truth=np.tile(z[: len(r.truth), None], KNOTS).astype(np.float32)) for r in replays]
    tables = [np.tile(said, (len(r.truth), KNOTS, 1)).astype(np.float32) for r in replays]
    laws = Laws(np.tile(said, (1, KNOTS, 1)).astype(np.float32), np.zeros((1, KNOTS)), np.zeros(1))
    corrected: np.ndarray = record_of(replays, tables).corrected(laws, np.array([REPLAYED[3]])).tables[0, -1]
    return corrected


def test_a_record_leaves_right_forecasts_and_mends_wrong_ones() -> None:
    middle = np.abs(SCORES) < 1.9
    np.testing.assert_allclose(_recalled(SCORES)[middle], SCORES[middle], atol=0.12)
    for said in (SCORES + 1.0, 0.4 * SCORES, SCORES * np.where(np.abs(SCORES) < 1, 0.5, 1.5)):
        mended = np.abs(_recalled(said) - SCORES)[middle]
        assert mended.max() < 0.5 * np.abs(said - SCORES)[middle].max()


def test_a_record_raises_small_chances_and_never_lowers_them() -> None:
    upper = SCORES > 1.9
    assert (_recalled(2.0 * SCORES)[upper] >= 2.0 * SCORES[upper] - 1e-4).all()
    assert (_recalled(0.4 * SCORES)[upper] > 0.8 * SCORES[upper]).all()


def test_without_a_record_nothing_is_corrected() -> None:
    laws = Laws(np.tile(SCORES, (2, KNOTS, 1)), np.zeros((2, KNOTS)), np.zeros(2))
    untouched = record_of([], []).corrected(laws, np.array([0.0, 0.5]))
    np.testing.assert_allclose(untouched.tables, laws.tables, atol=1e-6)
