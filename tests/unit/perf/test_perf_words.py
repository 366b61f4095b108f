"""Words, devices and features: what they say, and what they refuse."""

from __future__ import annotations

import math

import pytest

from foresail.errors import CallerError
from foresail.perf.hardware import Cluster, Device, device, devices, unknown_device
from foresail.perf.transformer import transformer, transformer_of_size
from foresail.perf.words import Job, Sharding, SystemConfiguration


def test_a_configuration_knows_its_devices_and_its_global_batch() -> None:
    system = SystemConfiguration(dp=2, tp=4, pp=2, micro_batch=3, accumulation=5)
    assert system.devices == 16
    assert system.global_batch == 30


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("dp", 0),
        ("tp", 0),
        ("pp", -1),
        ("micro_batch", 0),
        ("accumulation", 0),
        ("threads", 0),
        ("loader_workers", -1),
        ("share_frac", 0.0),
        ("share_frac", 1.5),
        ("share_frac", math.nan),
    ],
)
def test_absurd_configurations_are_refused_by_name(field: str, value: float) -> None:
    with pytest.raises(CallerError, match=field):
        SystemConfiguration(**{field: value})


@pytest.mark.parametrize("value", [-1.0, math.inf, math.nan])
def test_absurd_features_are_refused(value: float) -> None:
    with pytest.raises(CallerError, match="gemm_flop"):
        Job(name="x", gemm_flop=value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("memory_gib", 0.0),
        ("bandwidth_gbps", -1.0),
        ("link_gbps", math.inf),
        ("network_gbps", math.nan),
        ("per_node", 0),
        ("tflops", {"fp32": 0.0}),
        ("tflops", {}),
    ],
)
def test_absurd_devices_are_refused(field: str, value: object) -> None:
    good: dict[str, object] = {
        "name": "d",
        "tflops": {"fp32": 1.0},
        "memory_gib": 1.0,
        "bandwidth_gbps": 1.0,
        "link_gbps": 1.0,
        "network_gbps": 1.0,
    }
    with pytest.raises(CallerError, match=r"device 'd'"):
        Device(**(good | {field: value}))  # type: ignore[arg-type]


def test_a_cluster_needs_devices() -> None:
    with pytest.raises(CallerError, match="0 nodes"):
        Cluster(device=device("A100"), nodes=0)


def test_devices_are_found_whatever_the_spelling_and_misspellings_are_answered() -> None:
    assert device("a100_80gb") == device("A100 80GB") == device("A100")
    with pytest.raises(CallerError, match="did you mean 'H100'"):
        device("H1000")


def test_every_device_of_the_file_is_complete_and_a_wider_format_stands_in() -> None:
    for one in devices().values():
        assert one.is_known
        assert one.peak_flop_per_s("fp8") >= one.peak_flop_per_s("fp32") > 0
    assert device("V100").peak_flop_per_s("bf16") == 125e12
    assert not unknown_device("X9").is_known


def test_published_parameter_counts_are_met() -> None:
    # Narayanan et al., SC 2021, table 1
    for layers, hidden, heads, billions in (
        (24, 2304, 24, 1.7),
        (80, 12288, 96, 145.6),
        (128, 25600, 160, 1008),
    ):
        job = transformer("gpt", layers=layers, hidden=hidden, heads=heads, seq_len=2048)
        assert job.params == pytest.approx(billions * 1e9, rel=0.03)


def test_flops_are_those_of_the_papers_formula() -> None:
    # Narayanan et al., SC 2021, equation 3: 96 B s l h^2 (1 + s/6h + V/16lh) with recomputation, 4 forward
    # passes
    layers, hidden, seq, vocab = 24, 2304, 2048, 51_200
    job = transformer("gpt", layers=layers, hidden=hidden, heads=24, seq_len=seq, vocab=vocab)
    paper = 96 * seq * layers * hidden**2 * (1 + seq / (6 * hidden) + vocab / (16 * layers * hidden))
    assert job.gemm_flop is not None
    ours = 4 * (job.gemm_flop + job.attention_flop) + 3 * job.head_flop
    assert ours == pytest.approx(paper, rel=1e-9)


@pytest.mark.parametrize(
    ("params", "hidden", "layers"), [(1.25e8, 768, 12), (6.66e9, 4096, 32), (1.2854e10, 5120, 40)]
)
def test_a_size_alone_gives_the_family_shape(params: float, hidden: int, layers: int) -> None:
    job = transformer_of_size("mpt", params, seq_len=2048)
    assert (job.hidden, job.layers) == (hidden, layers)


@pytest.mark.parametrize(
    "dimensions",
    [
        {"layers": 0, "hidden": 64, "heads": 4, "seq_len": 8},
        {"layers": 1, "hidden": 64, "heads": 5, "seq_len": 8},
        {"layers": 1, "hidden": 64, "heads": 4, "seq_len": 0},
    ],
)
def test_impossible_dimensions_are_refused(dimensions: dict[str, int]) -> None:
    with pytest.raises(CallerError, match="transformer 'x'"):
        transformer("x", **dimensions)


@pytest.mark.parametrize("params", [0.0, -1.0, math.nan, 1e5])
def test_impossible_sizes_are_refused(params: float) -> None:
    with pytest.raises(CallerError, match="parameters"):
        transformer_of_size("x", params, seq_len=2048)


def test_sharding_stages_are_zeros() -> None:
    assert [s.stage for s in Sharding] == [0, 1, 2, 3]
