"""Laws of what the hybrid policy rests on: the chain, its index, widths, ranks, costs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.core.words import TrialId
from foresail.policies.chain import GIFTS, LOWEST, PRICES, VALUES, Chain, index, looks, read, unit
from foresail.policies.ranks import promoted, rungs
from foresail.policies.widths import Scaling, Seat, pays, spread


def simulated(trials: int, *, seed: int = 0, mean: float = 0.2, width: float = 0.1, share: float = 0.5) -> np.ndarray:
    """Values of trials that follow the law, over the looks of 20 steps."""
    rng = np.random.default_rng(seed)
    gift = rng.standard_normal(trials)
    values = np.empty((trials, len(looks(20))))
    values[:, 0] = -3.5 + 0.3 * rng.standard_normal(trials)
    for k in range(1, values.shape[1]):
        r = np.sqrt(share) * gift + np.sqrt(1 - share) * rng.standard_normal(trials)
        values[:, k] = np.minimum(values[:, k - 1] + unit(values[:, k - 1]) * (mean + width * r), 0.0)
    return values


CHAIN = Chain.fit(looks(20), simulated(60))


def test_looks_are_geometric_and_end_with_the_trial() -> None:
    assert looks(20).tolist() == [1, 2, 3, 4, 6, 8, 11, 15, 20]
    assert looks(1).tolist() == [1]
    assert len(looks(100_000)) < 40


def test_the_law_is_found_again() -> None:
    chain = Chain.fit(looks(20), simulated(400))
    assert chain.mean_K[1:] == pytest.approx(0.2, abs=0.03)
    assert chain.spread_K[1:] == pytest.approx(0.1, abs=0.03)
    assert chain.rho in (0.35, 0.6), "0.5 is between"
    assert chain.stays == 1.0
    assert Chain.fit(looks(20), simulated(400, share=0.0)).rho == 0.15


def test_who_was_stopped_does_not_bias_the_law() -> None:
    """The worse half is stopped at each look, on what has been seen; later moves are still those of everybody."""
    values = simulated(800, seed=2)
    for k in range(1, 4):
        going = np.isfinite(values[:, k])
        values[going & (values[:, k] < np.nanmedian(values[:, k])), k + 1 :] = np.nan
    chain = Chain.fit(looks(20), values)
    assert chain.mean_K[1:5] == pytest.approx(0.2, abs=0.05)


def test_chances_rise_with_time_value_and_gift() -> None:
    reach = CHAIN.tables.reach[1:-1].reshape(len(CHAIN.steps_K) - 1, len(VALUES), len(GIFTS), -1)
    assert (np.diff(reach, axis=3) >= -1e-9).all()
    assert (reach >= 0).all()
    assert (reach <= 1 + 1e-9).all()
    far = reach[0, :, :, -1]
    assert (np.diff(far[:-1], axis=0) >= -0.02).all(), "nearer is likelier"
    assert (np.diff(far[:-1], axis=1) >= -0.02).all(), "gifted is likelier"


def test_the_index_falls_with_what_a_start_costs() -> None:
    going = CHAIN.tables.going[1]
    free, dear = index(going), index(going, np.full(len(going), 5.0))
    assert (dear <= free + 1e-12).all()
    assert (free >= 0).all()


def test_the_index_before_the_last_look_is_chance_over_cost() -> None:
    """One move is left: there is nothing to decide on the way."""
    tables = CHAIN.tables
    place = len(VALUES) // 2 * len(GIFTS) + len(GIFTS) // 2
    hit = tables.reach[-2, place, -1]
    steps = float(CHAIN.steps_K[-1] - CHAIN.steps_K[-2])
    wanted = hit / (steps * (1.0 - 0.5 * hit))
    found = index(tables.going[-2][place][None])[0]
    assert found == pytest.approx(wanted, rel=0.02) or wanted < PRICES[0]


def test_being_able_to_stop_is_worth_something() -> None:
    """The index is no less than the rate of training to the end come what may."""
    tables = CHAIN.tables
    whole = tables.reach[1, :, -1] / float(CHAIN.steps_K[-1] - CHAIN.steps_K[0])
    found = index(tables.going[1])
    assert (found >= 0.9 * whole - PRICES[0]).all()


def test_no_table_has_a_row_that_was_never_written() -> None:
    tables = CHAIN.tables  # what memory held before must not be read, were it with weight 0
    assert all(np.isfinite(table).all() for table in (tables.going, tables.reach, tables.end))
    assert ((tables.end >= LOWEST) & (tables.end <= 0.0)).all()
    rows = tables.end[0].reshape(len(VALUES), len(GIFTS))
    assert rows == pytest.approx(np.tile(rows[0], (len(VALUES), 1))), "before the first look no value counts"


def test_trials_that_come_to_an_early_end_are_expected_to() -> None:
    """Half of them end on their way to the look at 8 steps: less is expected of those before it, and as much after."""
    values, over = simulated(60), np.zeros((60, len(looks(20))))
    over[::2, 5] = 1.0
    over[::2, 6:], values[::2, 6:] = np.nan, np.nan
    chain = Chain.fit(looks(20), values, over)
    assert chain.gone_K[5] == pytest.approx(0.5, abs=0.05)
    assert chain.gone_K[[0, 4, 6]] == pytest.approx(0.0)
    whole = Chain.fit(looks(20), values).tables.reach[:, len(GIFTS) * 16, -1]
    ours = chain.tables.reach[:, len(GIFTS) * 16, -1]
    assert (ours[1:6] < 0.9 * whole[1:6]).all()
    assert ours[6:] == pytest.approx(whole[6:])


def test_tables_are_read_straight_between_their_corners() -> None:
    look, value, gift = np.array([2]), np.array([VALUES[10]]), np.array([GIFTS[3]])
    assert read(CHAIN.tables.end, look, value, gift)[0] == pytest.approx(CHAIN.tables.end[2, 10 * len(GIFTS) + 3])


@given(
    st.lists(st.floats(0.01, 1.0), min_size=1, max_size=4),
    st.integers(1, 6),
    st.floats(0.1, 0.95),
    st.integers(1, 4),
)
@settings(max_examples=60)
def test_greedy_widths_are_the_best_there_are(rates: list[float], units: int, exponent: float, widest: int) -> None:
    """A unit goes where it adds most, whether as the first of a trial or as one more of another's."""
    rates = sorted(rates, reverse=True)
    scaling = Scaling(exponent)
    given_ = spread([Seat(rate) for rate in rates], units, scaling, widest=widest, most=len(rates))
    assert sum(given_) == min(units, widest * len(rates))
    assert max(given_) <= widest
    assert given_ == sorted(given_, reverse=True) or len(set(rates)) < len(rates)

    def worth(widths: tuple[int, ...] | list[int]) -> float:
        return sum(r * scaling.speedup(k) for r, k in zip(rates, widths, strict=True) if k)

    options = product(range(widest + 1), repeat=len(rates))
    assert worth(given_) >= max(worth(o) for o in options if sum(o) <= units) - 1e-9


def test_a_strong_trial_is_widened_before_a_weak_one_starts() -> None:
    strong, weak = Seat(1.0), Seat(0.2)
    assert spread([strong, weak, weak], 3, Scaling(0.8), widest=4, most=3) == [3, 0, 0]
    assert spread([strong, strong, weak], 3, Scaling(0.8), widest=4, most=3) == [2, 1, 0]
    assert spread([strong, weak, weak], 3, Scaling(0.8), widest=1, most=3) == [1, 1, 1]
    assert spread([strong, Seat(0.0, now=1, least=1), weak], 3, Scaling(0.8), widest=4, most=3) == [2, 1, 0]


def test_who_runs_is_widened_only_if_that_pays_its_restart() -> None:
    """What the change would not pay goes to the next."""
    seats = [Seat(1.0, now=1, least=1, dwell_s=10.0), Seat(0.1)]
    shared = lambda restart_s: spread(seats, 3, Scaling(0.8), widest=4, most=2, restart_s=restart_s)
    assert shared(1.0) == [3, 0]
    assert shared(8.0) == [1, 2]


def test_no_more_trials_run_than_may() -> None:
    assert spread([Seat(1.0)] * 4, 4, Scaling(0.8), widest=4, most=2) == [2, 2, 0, 0]


def test_the_exponent_is_learned_from_pairs_of_widths() -> None:
    scaling = Scaling(0.8)
    for _ in range(20):
        scaling.add(2.0, 1.0)
    assert scaling.exponent < 0.1
    assert Scaling(0.8).speedup(4) == pytest.approx(4**0.8)


def test_a_wider_run_must_pay_its_restart() -> None:
    assert pays(1, 2, Scaling(0.8), dwell_s=100.0, restart_s=10.0)
    assert not pays(1, 2, Scaling(0.8), dwell_s=100.0, restart_s=60.0)
    assert not pays(1, 2, Scaling(0.0), dwell_s=100.0, restart_s=0.0)


def test_the_best_third_of_a_rung_goes_on_from_the_highest_rung() -> None:
    steps = looks(20).tolist()
    assert [steps[p] for p in rungs(steps)] == [1, 3, 11, 20]
    seen = {TrialId(n): [0.1 * n] for n in range(6)}
    assert promoted(seen, steps, list(seen), 1.0) == TrialId(5)
    assert promoted(seen, steps, list(seen), -1.0) == TrialId(0)
    assert promoted(seen, steps, [TrialId(3)], 1.0) is None
    assert promoted({}, steps, [], 1.0) is None


def test_values_that_were_missing_at_first_are_no_moves() -> None:
    values = simulated(20)
    values[3, :2] = np.nan
    chain = Chain.fit(looks(20), values)
    assert np.isfinite(chain.mean_K).all()
    assert np.isnan(chain.moves(values)[3, :3]).all()
