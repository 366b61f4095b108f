"""A ranked table of system configurations for a job and a cluster, without any hardware.

Step times come from the step-time law, memory from the memory law's 95 % bound, prices from the device
file. A fit of measured jobs (`model`, `memory_model`) sharpens both; without one the published efficiencies
in the priors speak.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from foresail.errors import CallerError
from foresail.perf.choice import feasible
from foresail.perf.fitting import Fit, predict
from foresail.perf.hardware import Cluster
from foresail.perf.memory import MEMORY, USABLE_FRAC, upper_bytes
from foresail.perf.rows import rows_of
from foresail.perf.step_time import STEP_TIME
from foresail.perf.words import Job, Precision, SystemConfiguration

_UNPROBED = 1.0
"""Deviations of a 90 % interval where nothing was measured. The 90 % scores of three published tables are 0.25, 0.44
and 0.83 (`benchmarks/perf/planning.py`): the prior is wider than need be there, and elsewhere it may not be."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One system configuration of a plan. Intervals hold 90 %, `memory_bound_bytes` 95 %."""

    system: SystemConfiguration
    devices: int
    nodes: int
    step_s: float
    step_low_s: float
    step_high_s: float
    samples_per_s: float
    memory_bytes: float
    memory_bound_bytes: float
    fits: bool
    mfu_frac: float
    dollars_per_million_samples: float
    dollars_per_million_tokens: float | None


def plan(
    job: Job,
    cluster: Cluster,
    *,
    global_batch: int,
    precision: Precision = Precision.BF16,
    all_devices: bool = True,
    model: Fit | None = None,
    memory_model: Fit | None = None,
) -> tuple[Option, ...]:
    """Every layout of a global batch, fastest first; those that may run out of memory come last.

    Raises:
        CallerError: nothing can be laid out, since no layout divides the global batch, the heads and the
        layers.
    """
    systems = feasible(job, cluster, global_batch=global_batch, precision=precision, all_devices=all_devices)
    if not systems:
        raise CallerError(
            f"no layout of a global batch of {global_batch} on {cluster.devices} devices",
            allowed="replicas must divide the global batch, tensor parallelism the heads, stages the layers",
            do="change the global batch or the number of devices, or ask for layouts of fewer devices",
        )
    options = assess(job, cluster, systems, model=model, memory_model=memory_model)
    return tuple(sorted(options, key=lambda o: (not o.fits, o.step_s)))


def assess(
    job: Job,
    cluster: Cluster,
    systems: Sequence[SystemConfiguration],
    *,
    model: Fit | None = None,
    memory_model: Fit | None = None,
) -> tuple[Option, ...]:
    """Time, memory, utilisation and price of given configurations, in their order."""
    width = cluster.devices_per_node
    nodes = [max(1, -(-s.devices // width)) for s in systems]
    rows = rows_of(job, systems, cluster.device, nodes=nodes).replace(per_node=width)
    times, memory = predict(STEP_TIME, model, rows), predict(MEMORY, memory_model, rows)
    low, high = times.interval(factor=_UNPROBED if model is None else 1.645)
    bound = upper_bytes(memory)
    fits = bound <= USABLE_FRAC * rows.memory_bytes
    flop = 3.0 * (rows.gemm_flop + rows.attention_flop + rows.head_flop)
    batch = rows.dp * rows.micro_batch * rows.accumulation
    devices = rows.dp * rows.tp * rows.pp
    sheet = rows.peak_flop_per_s / cluster.device.achievable_frac
    mfu = flop * batch / (times.median * devices * sheet)
    dollars = devices * cluster.device.dollars_per_hour / 3600 * times.median / batch * 1e6
    return tuple(
        Option(
            system=system,
            devices=int(devices[i]),
            nodes=nodes[i],
            step_s=float(times.median[i]),
            step_low_s=float(low[i]),
            step_high_s=float(high[i]),
            samples_per_s=float(batch[i] / times.median[i]),
            memory_bytes=float(memory.median[i]),
            memory_bound_bytes=float(bound[i]),
            fits=bool(fits[i]),
            mfu_frac=float(mfu[i]) if job.is_known else float(np.nan),
            dollars_per_million_samples=float(dollars[i]),
            dollars_per_million_tokens=float(dollars[i]) / job.seq_len if job.seq_len else None,
        )
        for i, system in enumerate(systems)
    )
