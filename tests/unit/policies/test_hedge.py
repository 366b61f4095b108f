"""Laws of the hedge between the index and ranks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.policies.hedge import LEAST, MOST, Hedge

reports = st.lists(st.tuples(st.floats(0.01, 10.0), st.booleans(), st.booleans()), max_size=30)


def after(told: list[tuple[float, bool, bool]]) -> Hedge:
    hedge = Hedge()
    for seconds, by_rank, leads in told:
        hedge.trained(seconds, by_rank=by_rank, leads=leads)
    return hedge


@given(reports, st.floats(LEAST, MOST))
def test_neither_adviser_is_ever_without_a_word(told: list[tuple[float, bool, bool]], prior: float) -> None:
    assert LEAST <= after(told).share(prior) <= MOST


@given(reports)
def test_a_lead_that_ranks_have_brought_speaks_for_ranks(told: list[tuple[float, bool, bool]]) -> None:
    more, less = after(told), after(told)
    more.trained(1.0, by_rank=True, leads=True)
    less.trained(1.0, by_rank=True, leads=False)
    assert more.share(0.25) >= less.share(0.25)


def test_who_brings_as_many_leads_as_its_time_would_keeps_its_share() -> None:
    assert Hedge(leads=8, leads_by_rank=2, total_s=100.0, by_rank_s=25.0).share(0.25) == pytest.approx(0.25)
    assert Hedge(leads=8, leads_by_rank=0, total_s=100.0, by_rank_s=25.0).share(0.25) < 0.2
    assert Hedge(leads=8, leads_by_rank=4, total_s=100.0, by_rank_s=25.0).share(0.25) > 0.35


def test_a_share_outside_the_bounds_is_what_was_asked_for() -> None:
    assert Hedge(leads=8, leads_by_rank=8, total_s=100.0, by_rank_s=1.0).share(0.0) == 0.0
