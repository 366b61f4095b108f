"""Many runs as arrays: what the formulas read. Shapes: N rows.

Rows are made from words (`rows_of`), or directly by a reader of tables. Nothing here knows a formula.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from foresail.errors import CallerError
from foresail.perf.hardware import Device
from foresail.perf.words import Job, Precision, Recompute, Sharding, SystemConfiguration

Floats = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_BYTES = {
    Precision.FP32: 4.0,
    Precision.TF32: 4.0,
    Precision.FP16: 2.0,
    Precision.BF16: 2.0,
    Precision.FP8: 1.0,
}

# Of one parameter's gradient: bf16 is summed in a wide copy beside the backward pass's own (Megatron,
# DeepSpeed).
_GRADIENT_BYTES = {
    Precision.FP32: 4.0,
    Precision.TF32: 4.0,
    Precision.FP16: 2.0,
    Precision.BF16: 6.0,
    Precision.FP8: 6.0,
}

# What stands in for a feature that nobody gave. The job's own multipliers have wide priors around it.
_ASSUMED_FLOP, _ASSUMED_KERNELS, _ASSUMED_PARAMS = 1e10, 200.0, 3e7


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """N runs. Ids are stable hashes of names, so rows of different sources can be compared."""

    job_id: Ints
    device_id: Ints
    known: Bools
    on_cpu: Bools
    # the job, per sample and forward pass
    gemm_flop: Floats
    attention_flop: Floats
    head_flop: Floats
    traffic_bytes: Floats
    kernels: Floats
    params: Floats
    layers: Floats
    hidden: Floats
    heads: Floats
    seq_len: Floats
    vocab: Floats
    activation_bytes: Floats
    boundary_bytes: Floats
    largest_layer_params: Floats
    input_s: Floats
    # how it runs
    dp: Floats
    tp: Floats
    pp: Floats
    micro_batch: Floats
    accumulation: Floats
    stage: Floats
    recompute: Floats
    element_bytes: Floats
    gradient_bytes: Floats
    threads: Floats
    loader_workers: Floats
    busy_threads: Floats
    nodes: Floats
    # the device
    peak_flop_per_s: Floats
    attention_flop_per_s: Floats
    bandwidth_bytes_per_s: Floats
    link_bytes_per_s: Floats
    network_bytes_per_s: Floats
    per_node: Floats
    cores: Floats
    memory_bytes: Floats

    def __len__(self) -> int:
        return len(self.job_id)

    def take(self, index: npt.ArrayLike) -> Rows:
        """The rows at these positions, or where a mask is true."""
        chosen = np.asarray(index)
        if chosen.size == 0:
            chosen = chosen.astype(np.int64)
        return Rows(**{f.name: getattr(self, f.name)[chosen] for f in dataclasses.fields(self)})

    def replace(self, **arrays: npt.ArrayLike) -> Rows:
        """The same rows with some columns given anew (a scalar stands for all rows)."""
        filled = {
            name: np.broadcast_to(np.asarray(value, getattr(self, name).dtype), self.job_id.shape).copy()
            for name, value in arrays.items()
        }
        return dataclasses.replace(self, **filled)


def join(*parts: Rows) -> Rows:
    """All rows one after the other."""
    if not parts:
        raise CallerError("no rows to join")
    return Rows(**{f.name: np.concatenate([getattr(part, f.name) for part in parts]) for f in dataclasses.fields(Rows)})


def identity(*names: str) -> int:
    """A number for a name that is the same in every process; 48 bits, so that a float holds it."""
    text = "\x1f".join(names).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=6).digest(), "big")


def row(  # the four things that a measurement depends on
    job: Job,
    system: SystemConfiguration,
    device: Device,
    *,
    nodes: int = 1,
    busy_threads: int | None = None,
    cores: int | None = None,
) -> dict[str, float]:
    """One run as the columns of `Rows`.

    `busy_threads` counts the threads of all trials on the socket, this one's included (default: its own);
    `cores` the physical cores there (default: the device's `per_node`).
    """
    recompute = {Recompute.NONE: 0.0, Recompute.SELECTIVE: 0.5, Recompute.FULL: 1.0}[system.recompute]
    own = float(system.threads * system.devices)
    wide = Precision.BF16 if system.precision is Precision.FP8 else system.precision
    flop = _ASSUMED_FLOP if job.gemm_flop is None else job.gemm_flop
    return {
        "job_id": identity(job.name, device.name),
        "device_id": identity(device.name),
        "known": job.is_known,
        "on_cpu": device.name == "cpu",
        "gemm_flop": flop,
        "attention_flop": job.attention_flop,
        "head_flop": job.head_flop,
        "traffic_bytes": job.traffic_bytes or 0.0,
        "kernels": _ASSUMED_KERNELS if job.kernels is None else max(job.kernels, 1.0),
        "params": _ASSUMED_PARAMS if job.params is None else job.params,
        "layers": float(job.layers or 0),
        "hidden": float(job.hidden or 1024),
        "heads": float(job.heads or 0),
        "seq_len": float(job.seq_len or 1),
        "vocab": float(job.vocab or 0),
        "activation_bytes": job.activation_bytes or 0.0,
        "boundary_bytes": job.boundary_bytes or 0.0,
        "largest_layer_params": job.largest_layer_params or 0.0,
        "input_s": job.input_s or 0.0,
        "dp": system.dp,
        "tp": system.tp,
        "pp": system.pp,
        "micro_batch": system.micro_batch,
        "accumulation": system.accumulation,
        "stage": float(system.sharding.stage),
        "recompute": recompute,
        "element_bytes": _BYTES[system.precision],
        "gradient_bytes": _GRADIENT_BYTES[system.precision],
        "threads": system.threads,
        "loader_workers": system.loader_workers,
        "busy_threads": max(own, float(busy_threads or 0)),
        "nodes": nodes,
        "peak_flop_per_s": device.peak_flop_per_s(system.precision) * device.achievable_frac,
        "attention_flop_per_s": device.peak_flop_per_s(wide) * device.achievable_frac,
        "bandwidth_bytes_per_s": device.bandwidth_gbps * 1e9,
        "link_bytes_per_s": device.link_gbps * 1e9,
        "network_bytes_per_s": device.network_gbps * 1e9,
        "per_node": device.per_node,
        "cores": float(cores or device.per_node),
        "memory_bytes": device.memory_gib * 2**30,
    }


def stack(rows: Sequence[dict[str, float]]) -> Rows:
    """Single runs, as `row` makes them, as arrays.

    Raises:
        CallerError: there are none.
    """
    if not rows:
        raise CallerError("no runs were given", do="give one at least")
    kinds = {"job_id": np.int64, "device_id": np.int64, "known": np.bool_, "on_cpu": np.bool_}
    return Rows(
        **{
            f.name: np.array([r[f.name] for r in rows], dtype=kinds.get(f.name, np.float64))
            for f in dataclasses.fields(Rows)
        }
    )


def rows_of(
    job: Job,
    systems: Sequence[SystemConfiguration],
    device: Device,
    *,
    nodes: Sequence[int] | int | None = None,
    busy_threads: int | None = None,
    cores: int | None = None,
) -> Rows:
    """One job under many system configurations on one kind of device.

    `nodes` says over how many machines each run is spread (default: as few as its devices need).
    """
    spans: Sequence[int | None]
    if nodes is None or isinstance(nodes, int):
        spans = [nodes] * len(systems)
    else:
        spans = list(nodes)
    return stack(
        [
            row(
                job,
                system,
                device,
                nodes=span or max(1, -(-system.devices // device.per_node)),
                busy_threads=busy_threads,
                cores=cores,
            )
            for system, span in zip(systems, spans, strict=True)
        ]
    )


__all__ = ["Bools", "Floats", "Ints", "Rows", "Sharding", "identity", "join", "row", "rows_of", "stack"]
