"""Features of PyTorch models, counted without computing."""

from __future__ import annotations

import pytest

from foresail.errors import CallerError
from foresail.perf.characterize import characterize
from foresail.perf.transformer import transformer

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def _encoder(layers: int, hidden: int, heads: int) -> object:
    layer = torch.nn.TransformerEncoderLayer(hidden, heads, 4 * hidden, batch_first=True)
    return torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


def test_a_transformer_has_the_flops_and_the_shape_of_the_formula() -> None:
    job = characterize(_encoder(4, 256, 4), (torch.zeros(8, 64, 256),), name="encoder")
    known = transformer("x", layers=4, hidden=256, heads=4, seq_len=64)
    assert job.gemm_flop == known.gemm_flop
    assert job.attention_flop == known.attention_flop
    assert (job.layers, job.hidden, job.heads) == (4, 256, 4)
    assert job.is_known
    assert job.activation_bytes is not None
    assert known.activation_bytes is not None
    assert 0.5 < job.activation_bytes / known.activation_bytes < 2.0


def test_a_convolution_is_counted_and_the_model_left_alone() -> None:
    conv = torch.nn.Conv2d(3, 8, 3, padding=1, bias=False)
    before = conv.weight.detach().clone()
    job = characterize(conv, (torch.zeros(4, 3, 16, 16),), name="conv")
    assert job.gemm_flop == 2 * 16 * 16 * 8 * 3 * 9
    assert job.params == 8 * 3 * 9
    assert job.kernels == 1
    assert conv.weight.device.type == "cpu"
    assert bool((conv.weight == before).all())


def test_twice_the_batch_is_the_same_job() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    one, two = (characterize(model, (torch.zeros(b, 32),), name="mlp") for b in (8, 16))
    assert one.gemm_flop == two.gemm_flop == 2 * (32 * 64 + 64 * 10)
    assert one.activation_bytes == two.activation_bytes


def test_a_forward_pass_that_needs_data_is_explained() -> None:
    class Branch(torch.nn.Module):  # type: ignore[name-defined, misc]
        def forward(self, x: object) -> object:
            return x if bool((x > 0).all()) else -x  # type: ignore[operator]

    with pytest.raises(CallerError, match="cannot run without data"):
        characterize(Branch(), (torch.zeros(2, 2),), name="branch")
    with pytest.raises(CallerError, match="no tensor"):
        characterize(torch.nn.Linear(1, 1), (3,), name="none")
