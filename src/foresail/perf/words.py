"""The words of the efficiency potential: a job, how it runs, and what one row of a table of runs says.

A `SystemConfiguration` says how a trial runs; nothing in it but `precision` touches what is learned, as
long as `global_batch` stays the same. A `Job` says what has to be computed, in features that a model of any
framework can give; `None` means not known, and the performance model then learns it from measured steps.
"""

from __future__ import annotations

import math
from enum import StrEnum

import msgspec

from foresail.errors import CallerError


class Sharding(StrEnum):
    """What data-parallel replicas share instead of holding it whole (ZeRO stages 0 to 3)."""

    NONE = "none"
    OPTIMIZER = "optimizer"
    GRADIENTS = "gradients"
    FULL = "full"

    @property
    def stage(self) -> int:
        """The ZeRO stage, 0 to 3 (Rajbhandari et al., SC 2020)."""
        return list(Sharding).index(self)


class Recompute(StrEnum):
    """Which activations are computed again in the backward pass."""

    NONE = "none"
    SELECTIVE = "selective"
    FULL = "full"


class Precision(StrEnum):
    """The number format of the matrix products."""

    FP32 = "fp32"
    TF32 = "tf32"
    FP16 = "fp16"
    BF16 = "bf16"
    FP8 = "fp8"


class SystemConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """How a trial runs.

    `threads` counts cores per replica (a CPU job), `share_frac` the part of a device that the trial has when
    it shares it with another one. `dp`, `tp`, `pp` are the data-, tensor- and pipeline-parallel degrees.

    Raises:
        CallerError: a degree is below one, or the share is outside (0, 1].
    """

    dp: int = 1
    tp: int = 1
    pp: int = 1
    sharding: Sharding = Sharding.NONE
    micro_batch: int = 1
    accumulation: int = 1
    recompute: Recompute = Recompute.NONE
    precision: Precision = Precision.FP32
    threads: int = 1
    loader_workers: int = 0
    share_frac: float = 1.0

    def __post_init__(self) -> None:
        for name in ("dp", "tp", "pp", "micro_batch", "accumulation", "threads"):
            if getattr(self, name) < 1:
                raise CallerError(
                    f"SystemConfiguration: {name} is {getattr(self, name)}", allowed="whole numbers from 1"
                )
        if self.loader_workers < 0:
            raise CallerError(f"SystemConfiguration: loader_workers is {self.loader_workers}", allowed="0 or more")
        if not 0 < self.share_frac <= 1:
            raise CallerError(f"SystemConfiguration: share_frac is {self.share_frac}", allowed="above 0, at most 1")

    @property
    def devices(self) -> int:
        """Accelerators (or, on a CPU, processes) that the trial occupies."""
        return self.dp * self.tp * self.pp

    @property
    def global_batch(self) -> int:
        """Samples in one optimizer step. Two configurations with the same one learn the same curve."""
        return self.dp * self.micro_batch * self.accumulation


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What has to be computed. Per sample and for the forward pass where not said otherwise.

    Args:
        name: jobs of one name share what is learned about them.
        gemm_flop: floating-point operations in matrix products and convolutions, without the next two.
        attention_flop: those between queries, keys and values, which stay in 16 bits when the rest is in 8.
        head_flop: those of the output layer, which is neither cut by pipeline stages nor recomputed.
        traffic_bytes: bytes that element-wise operations read and write.
        kernels: operations launched, for one micro-batch.
        params: parameters.
        layers: equal blocks that a pipeline can be cut into.
        hidden: width of what flows between blocks.
        heads: attention heads, which tensor parallelism must divide.
        seq_len: tokens of a sample.
        vocab: width of the output layer.
        activation_bytes: kept for the backward pass at two bytes an element, without recomputation.
        boundary_bytes: what flows between two blocks, two bytes an element.
        largest_layer_params: parameters of the largest layer, gathered whole under full sharding.
        input_s: seconds that one loader worker needs for a sample.
    """

    name: str
    gemm_flop: float | None = None
    attention_flop: float = 0.0
    head_flop: float = 0.0
    traffic_bytes: float | None = None
    kernels: float | None = None
    params: float | None = None
    layers: int | None = None
    hidden: int | None = None
    heads: int | None = None
    seq_len: int | None = None
    vocab: int | None = None
    activation_bytes: float | None = None
    boundary_bytes: float | None = None
    largest_layer_params: float | None = None
    input_s: float | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__[1:]:
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise CallerError(f"Job {self.name!r}: {name} is {value}", allowed="finite numbers from 0")

    @property
    def is_known(self) -> bool:
        """Whether the features say how much there is to compute."""
        return self.gemm_flop is not None and self.kernels is not None
