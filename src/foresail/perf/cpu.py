"""System configurations of a job on one CPU machine, and the runs that stand for them.

The device of a CPU run is one core; its figures are a typical server core's, and what this machine's cores
really do is learned from the first measured job and kept.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from foresail.errors import CallerError
from foresail.perf.hardware import Device, device
from foresail.perf.rows import Rows, rows_of
from foresail.perf.words import Job, SystemConfiguration

_LOADING_GUESS_S = 1e-5
"""Seconds to load a sample before anything is known of it; the job's own figure is learned."""


def cpu_configurations(
    *,
    global_batch: int,
    cores: int,
    threads: Sequence[int] | None = None,
    replicas: Sequence[int] | None = None,
    micro_batches: Sequence[int] | None = None,
    loader_workers: Sequence[int] = (0,),
) -> list[SystemConfiguration]:
    """Every way to run a global batch with threads x replicas on at most `cores`.

    Without `micro_batches`, the whole batch of a replica and its halves down to an eighth.

    Raises:
        CallerError: the batch or the cores are below one, or nothing fits.
    """
    if global_batch < 1 or cores < 1:
        raise CallerError(f"a global batch of {global_batch} on {cores} cores", allowed="1 or more of each")
    found: list[SystemConfiguration] = []
    for dp in replicas or _doublings(cores):
        for count in threads or _doublings(cores):
            if dp * count > cores or global_batch % dp:
                continue
            own = global_batch // dp
            for micro in micro_batches or [own // d for d in (1, 2, 4, 8) if own % d == 0]:
                if own % micro:
                    continue
                found.extend(
                    SystemConfiguration(
                        dp=dp,
                        threads=count,
                        micro_batch=micro,
                        accumulation=own // micro,
                        loader_workers=workers,
                    )
                    for workers in loader_workers
                )
    if not found:
        raise CallerError(
            f"no way to run a global batch of {global_batch} on {cores} cores",
            allowed="threads x replicas within the cores, micro-batches that divide a replica's batch",
        )
    return found


def cpu_rows(
    job: Job,
    systems: Sequence[SystemConfiguration],
    *,
    cores: int,
    logical: int | None = None,
    machine: str = "cpu",
    busy_threads: int | None = None,
) -> Rows:
    """Runs of a job on this machine: `cores` physical ones of `logical` processors, named `machine`.

    A job whose features say nothing of loading gets a guess that the first measurements correct.
    """
    kind = core(machine, logical or cores)
    if job.input_s is None:
        job = msgspec.structs.replace(job, input_s=_LOADING_GUESS_S)
    rows = rows_of(job, systems, kind, nodes=1, busy_threads=busy_threads, cores=cores)
    return rows.replace(on_cpu=True)


def core(machine: str, per_node: int) -> Device:
    """One core of a machine, with the figures of the device file's `cpu`."""
    return msgspec.structs.replace(device("cpu"), name=machine, per_node=per_node)


def _doublings(limit: int) -> list[int]:
    found = [1]
    while found[-1] * 2 <= limit:
        found.append(found[-1] * 2)
    return found if found[-1] == limit else [*found, limit]
