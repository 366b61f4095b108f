"""Seconds of one optimizer step, from a job, a system configuration, a device and named parameters.

    step = straggler x [ (m + pp - 2) micro + (micro^g + sync^g)^(1/g) + update + fixed ]
    micro = (work^q + launches^q)^(1/q) + head + tensor-parallel collectives + fixed per micro-batch

with m micro-batches. Pipelines follow Narayanan et al. (SC 2021, section 2.2: m + pp - 1 slots), collectives
the alpha-beta model of ring algorithms (Thakur et al. 2005), g is the overlap of Qiao et al. (OSDI 2021,
eq. 11), full sharding moves 3 parameter volumes for each micro-batch (Rajbhandari et al., SC 2020). On a
CPU the work is shared by threads with a serial part and a memory wall (`threads.py`).

Shapes: N rows; parameters are [P] or [..., P] for a value per row and draw; results [..., N].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from foresail.perf.law import Law, Named
from foresail.perf.parameters import STEP_TIME_PARAMETERS, STEP_TIME_RESIDUALS
from foresail.perf.rows import Floats, Rows
from foresail.perf.threads import useful_cores

_REPLICATED = 10.0 / 34.0
"""Part of a transformer's activations that tensor parallelism alone does not cut (Korthikanti et al., eq.
2)."""


_LOGIT_BYTES = 20.0
"""Moved for each logit: written, widened, its log-softmax, and their gradients (2 + 4 + 4 + 4 + 4 + 2)."""
_CPU_LAUNCH = 0.25
"""Of a launch on an accelerator: PyTorch's own part, without a driver (5 to 10 microseconds an operation)."""
_GRADIENT_BYTES = 16.0
"""Moved for each parameter in a micro-batch on a CPU: weights read, gradients written, added and read (4 each)."""
_SHARP = 6.0
"""Of the smooth maximum of a step and its loading: workers and work are not in lockstep."""


class Parts(NamedTuple):
    """Where the seconds of a step go; each [..., N]. `total` is not their sum: some overlap."""

    micro: Floats
    sync: Floats
    update: Floats
    total: Floats


def _stage_frac(rows: Rows) -> Floats:
    """The part of the blocks in the fullest pipeline stage."""
    blocks = np.where(rows.layers > 0, rows.layers, rows.pp)
    return np.ceil(blocks / rows.pp) / blocks


def _work_s(rows: Rows, p: Named) -> Floats:
    """Seconds of the blocks on one micro-batch in one stage: work and collectives, or launches if those are
    more.

    A device that waits for launches does its tensor-parallel collectives meanwhile.
    """
    passes = 3.0 + np.where(rows.recompute >= 1, 1.0, 0.2 * rows.recompute)
    share = passes * _stage_frac(rows)
    rate = rows.peak_flop_per_s * p["gemm_eff"] * np.where(rows.element_bytes < 2, p["fp8_eff"], 1.0)
    attention_rate = rows.attention_flop_per_s * p["gemm_eff"] * p["attention_eff"]
    samples = rows.micro_batch * p["compute_scale"]
    kernels = rows.kernels * p["kernel_scale"]
    products = (rows.gemm_flop / rate + rows.attention_flop / attention_rate) * samples / rows.tp
    launches = kernels * p["launch"]
    if rows.on_cpu.all():
        cores = useful_cores(rows, serial=p["serial"], wall=p["memory_wall"], sibling=p["sibling"])
        joins = kernels * p["thread_sync"] * np.log2(np.maximum(rows.threads, 1))
        over = np.maximum(rows.busy_threads / rows.cores - 1.0, 0.0) * (rows.threads > 1)
        spinning = 1.0 + p["crowding"] * over  # the others wait for a thread that is not running
        gradients = _GRADIENT_BYTES * rows.params / (rows.bandwidth_bytes_per_s * p["memory_eff"])
        seconds: Floats = share * (products / cores * spinning + _CPU_LAUNCH * launches + joins) + gradients
        return seconds
    ramp = kernels * p["gemm_half"] / rate
    cut = _REPLICATED + (1 - _REPLICATED) / rows.tp
    traffic = rows.traffic_bytes * samples * cut * (np.maximum(rows.element_bytes, 2.0) / 2)
    memory = traffic / (rows.bandwidth_bytes_per_s * p["memory_eff"])
    busy = share * (products + ramp + memory) + _tensor_s(rows, p)
    return (busy ** p["knee"] + (share * launches) ** p["knee"]) ** (1 / p["knee"])


def _tensor_s(rows: Rows, p: Named) -> Floats:
    """Seconds of the tensor-parallel collectives of one micro-batch in one stage."""
    collectives = rows.layers * _stage_frac(rows) * (4.0 + 2.0 * (rows.recompute >= 1))
    volume = 2.0 * (rows.tp - 1) / rows.tp * rows.boundary_bytes * rows.micro_batch
    one = p["tp_latency"] + p["tp_latency_step"] * (rows.tp - 1) + volume / _tensor_link(rows, p)
    return np.where(rows.tp > 1, collectives * one, 0.0)


def _tensor_link(rows: Rows, p: Named) -> Floats:
    inside = rows.link_bytes_per_s * p["tp_link_eff"]
    return np.where(rows.tp > rows.per_node, rows.network_bytes_per_s * p["sync_network_eff"], inside)


def _micro_s(rows: Rows, p: Named) -> Floats:
    """Seconds of one micro-batch in the slowest stage, forward and backward."""
    rate = rows.peak_flop_per_s * p["gemm_eff"] * p["head_eff"]
    head = 3.0 * rows.head_flop * rows.micro_batch / rows.tp / rate * p["compute_scale"]
    logits = rows.seq_len * rows.vocab * rows.micro_batch / rows.tp * p["compute_scale"]
    head = head + _LOGIT_BYTES * logits / (rows.bandwidth_bytes_per_s * p["memory_eff"])
    sent = rows.boundary_bytes * rows.micro_batch
    handover = np.where(rows.pp > 1, p["boundary"] + sent / _tensor_link(rows, p), 0.0)
    return _work_s(rows, p) + head + handover + p["per_micro_batch"]


def _sync_s(rows: Rows, p: Named) -> Floats:
    """Seconds of the data-parallel exchange of one step (of one micro-batch under full sharding)."""
    full = rows.stage >= 3
    volumes = np.where(full, 3.0, 2.0)
    held = rows.params * _stage_frac(rows) / rows.tp
    sent = volumes * (rows.dp - 1) / rows.dp * held * np.maximum(rows.element_bytes, 2.0)
    inside = rows.link_bytes_per_s * p["sync_link_eff"]
    beside = np.clip(rows.per_node / rows.tp, 1.0, rows.dp)  # members of the group in one machine share its ports
    between = np.minimum(rows.network_bytes_per_s * p["sync_network_eff"] * beside, inside)
    link = np.where(rows.nodes > 1, between, inside)
    latency = p["sync_latency"] + p["sync_latency_step"] * (rows.dp - 1)
    return np.where(rows.dp > 1, (sent / link + latency) * p["sync_scale"], 1e-9)


def parts(theta: Floats, rows: Rows) -> Parts:
    """Where the seconds of a step go, at log-parameters `theta` ([P] or [..., N, P])."""
    p = STEP_TIME.named(theta)
    micro, sync = _micro_s(rows, p), _sync_s(rows, p)
    full = rows.stage >= 3
    power = 1.0 + np.where(full, p["prefetch"], p["overlap"])
    joined = (micro**power + sync**power) ** (1 / power)
    slots = rows.accumulation + rows.pp - 1
    busy = np.where(full, slots * joined, (slots - 1) * micro + joined)
    shared = np.where(rows.stage >= 1, rows.dp, 1.0)
    bandwidth = rows.bandwidth_bytes_per_s * p["memory_eff"]
    update = p["optimizer"] * rows.params * _stage_frac(rows) / rows.tp / shared / bandwidth
    devices = rows.dp * rows.tp * rows.pp
    slower = 1.0 + p["straggler"] * np.log2(devices)
    total = (busy + update + p["fixed"]) * slower * p["total_scale"]
    return Parts(micro, sync, update, _with_input(total, rows, p))


def _with_input(total: Floats, rows: Rows, p: Named) -> Floats:
    """A step cannot end before its samples were loaded: in line without workers, beside it with them.

    On a CPU workers take cores too: the step is not shorter than all of that work on all of the cores.
    """
    if not rows.input_s.any():
        return total
    loading = rows.input_s * rows.micro_batch * rows.accumulation * p["loading"]
    each = loading / np.maximum(rows.loader_workers, 1.0)
    cores = np.where(rows.on_cpu, rows.cores, np.inf)
    computing = loading * p["loading_work"] * rows.dp
    stepping = np.maximum(total, (total * np.minimum(rows.threads * rows.dp, cores) + computing) / cores)
    beside = (stepping**_SHARP + each**_SHARP) ** (1 / _SHARP) + p["handoff"] * rows.accumulation
    return np.where(rows.loader_workers > 0, beside, total + loading)


def log_step_s(theta: Floats, rows: Rows) -> Floats:
    """Log of the seconds of a step, [..., N]."""
    return np.log(parts(theta, rows).total)


STEP_TIME = Law("step time", STEP_TIME_PARAMETERS, STEP_TIME_RESIDUALS, log_step_s)
