"""How many cores' worth of work the threads of a trial get on a socket.

A serial part (Amdahl 1967), memory that all busy threads share (the contention of Gunther's universal scalability
law), and hyperthreads that add a fraction
of a core: T threads on C physical cores, N busy threads in all,

    cores given  = min(T, C) + sibling x max(T - C, 0), times C' / N' where the socket is overbooked
    wall         = 1 / (1 + (N - 1) / n_wall)
    useful cores = 1 / (serial + (1 - serial) / (cores given x wall))

so a co-running trial slows this one through N alone, as the per-machine constants measured "with H co-running
threads" of Yan et al. (KDD 2015) do.
"""

from __future__ import annotations

import numpy as np

from foresail.perf.rows import Floats, Rows


def useful_cores(rows: Rows, *, serial: Floats, wall: Floats, sibling: Floats) -> Floats:
    """Cores' worth of work, [..., N]; at least a tenth of one and never above the threads.

    `serial` is a fraction, `wall` the threads beside which memory gives each half, `sibling` what a hyperthread adds in
    cores.
    """
    own, busy, cores = rows.threads, rows.busy_threads, rows.cores
    capacity = np.minimum(busy, cores) + np.minimum(sibling, 1.0) * np.clip(busy - cores, 0.0, cores)
    given = own * capacity / busy
    parallel = np.maximum(given / (1.0 + (busy - 1.0) / wall), 0.1)
    part = np.minimum(serial, 0.95)
    cores_used: Floats = 1.0 / (part + (1.0 - part) / parallel)
    return cores_used
