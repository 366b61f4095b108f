"""The samples of a global batch are the same at any width."""

from __future__ import annotations

from itertools import chain

import pytest

from foresail.core.layout import Layout
from foresail.errors import TrainingError
from foresail.worker.ranks import Ranks
from foresail.worker.share import Batch, Order, Shared, batch_of


def together(layout: Layout, batches: list[list[int]]) -> list[list[int]]:
    """Global batches, put together from what replicas get."""
    shares = [[*Shared(batches, Ranks(layout, rank))] for rank in range(0, layout.ranks, layout.tp)]
    return [[*chain(*parts)] for parts in zip(*shares, strict=True)]


@pytest.mark.parametrize("layout", [Layout(), Layout(dp=2), Layout(dp=4), Layout(dp=2, tp=2)])
def test_shares_make_up_the_batch_in_its_order(layout):
    batches = [[3, 1, 4, 5], [9, 2, 6, 8]]
    assert together(layout, batches) == batches


def test_parts_of_a_layer_and_stages_of_a_pipeline_see_the_same_samples():
    layout = Layout(dp=2, tp=2, pp=2)
    shares = [tuple(next(iter(Shared([[0, 1, 2, 3]], Ranks(layout, rank))))) for rank in range(8)]
    assert shares == [(0, 1), (0, 1), (2, 3), (2, 3)] * 2
    assert [Ranks(layout, rank).stage for rank in range(8)] == [0] * 4 + [1] * 4


def test_a_global_batch_is_cut_into_shares_and_micro_batches():
    assert batch_of(Ranks(Layout(dp=2, micro_batch=4), 0), 32) == Batch(share=16, micro=4, accumulation=4)
    assert batch_of(Ranks(Layout(dp=2, micro_batch=64), 0), 32) == Batch(share=16, micro=16, accumulation=1)
    with pytest.raises(TrainingError, match="not shared evenly by 3"):
        batch_of(Ranks(Layout(dp=3), 0), 32)
    with pytest.raises(TrainingError, match="not whole micro-batches of 5"):
        batch_of(Ranks(Layout(dp=2, micro_batch=5), 0), 32)


@pytest.mark.torch
def test_the_order_follows_from_the_seed_and_the_step():
    step = [1]

    def order(seed: int = 7) -> Order:
        return Order(10, 4, shuffle=True, seed=seed, step=lambda: step[0])

    first, whole = [*order()], order()
    assert [*whole] == first, "another process draws the same"
    assert [*whole] != first, "a second pass in a step has an order of its own"
    assert [*order(8)] != first
    step[0] = 2
    assert [*whole] == [*order()] != first
    assert len(whole) == len(first) == 2
    assert [*Order(10, 4, shuffle=False, seed=0, step=lambda: 1)] == [[0, 1, 2, 3], [4, 5, 6, 7]]
