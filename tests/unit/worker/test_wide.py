"""How a model is cut, seen from one process."""

from __future__ import annotations

from itertools import pairwise

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from foresail.core.layout import Layout  # noqa: E402
from foresail.errors import TrainingError  # noqa: E402
from foresail.worker.ranks import Ranks  # noqa: E402
from foresail.worker.wide import Wide, _micro_batches, _stage, automatic_plan  # noqa: E402

pytestmark = pytest.mark.torch


def layers(*widths: int) -> nn.Sequential:
    return nn.Sequential(*(nn.Linear(a, b) for a, b in pairwise(widths)))


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_stages_are_the_whole_model_under_its_own_names(stages):
    model = layers(4, 64, 4, 4, 64)
    parts = [_stage(model, stage, stages) for stage in range(stages)]
    assert all(len(part) for part in parts)
    assert [name for part in parts for name, _ in part.named_parameters()] == [n for n, _ in model.named_parameters()]
    x = torch.randn(2, 4)
    through = x
    for part in parts:
        through = part(through)
    assert torch.equal(through, model(x))


def test_the_heaviest_layer_does_not_take_the_others_along():
    first, second = (_stage(layers(8, 8, 8, 8, 8, 8), stage, 2) for stage in (0, 1))
    assert abs(len(first) - len(second)) <= 1


def test_what_cannot_be_staged_is_refused():
    with pytest.raises(TrainingError, match="a Linear cannot be cut into 2 stages"):
        _stage(nn.Linear(2, 2), 0, 2)


def test_pairs_of_linear_layers_are_found_where_the_width_allows():
    model = nn.Sequential(
        nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4), nn.LayerNorm(4), nn.Linear(4, 5), nn.Linear(5, 2)
    )
    plan = automatic_plan(model, 2)
    assert {name: type(style).__name__ for name, style in plan.items()} == {
        "0": "ColwiseParallel",
        "2": "RowwiseParallel",
    }
    block = nn.Sequential(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True))
    assert set(automatic_plan(block, 2)) == {"0.linear1", "0.linear2"}
    with pytest.raises(TrainingError, match="give a plan"):
        automatic_plan(nn.Linear(4, 4), 2)


def test_micro_batches_of_a_pipeline():
    assert _micro_batches(16, Layout(pp=2)) == 4
    assert _micro_batches(6, Layout(pp=2)) == 3
    assert _micro_batches(16, Layout(pp=2, micro_batch=2)) == 8
    with pytest.raises(TrainingError, match="not whole micro-batches"):
        _micro_batches(16, Layout(pp=2, micro_batch=3))


def test_one_process_with_micro_batches_has_the_gradients_of_the_whole_batch():
    torch.manual_seed(0)
    model, loss = layers(4, 8, 2), nn.functional.cross_entropy
    inputs, labels = torch.randn(12, 4), torch.arange(12) % 2
    loss(model(inputs), labels).backward()
    right = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    wide = Wide(Ranks(Layout(micro_batch=5), 0), seed=0)
    assert wide.parallelize(model, None) is model
    value = wide.backward(model, loss, inputs, labels)
    assert value == pytest.approx(loss(model(inputs), labels).item(), rel=1e-6)
    for parameter, gradient in zip(model.parameters(), right, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)
