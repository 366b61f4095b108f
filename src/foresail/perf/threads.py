"""How many cores' worth of work the threads of a trial get on a socket.

A serial part (Amdahl 1967), a memory wall that all busy threads share, and hyperthreads that add a fraction
of a core: T threads on C physical cores, N busy threads in all,

    cores given  = min(T, C) + sibling x max(T - C, 0), times C' / N' where the socket is overbooked
    wall         = (1 + (N / n_wall)^3)^(-1/3)
    useful cores = 1 / (serial + (1 - serial) / (cores given x wall))

so a co-running trial slows this one through N alone, as the per-machine constants measured "with H co-running
threads" of Yan et al. (KDD 2015) do.
"""

from __future__ import annotations

import numpy as np

from foresail.perf.rows import Floats, Rows

_SHARPNESS = 3.0


def useful_cores(rows: Rows, *, serial: Floats, wall: Floats, sibling: Floats) -> Floats:
    """Cores' worth of work, [..., N]; at least a tenth of one and never above the threads.

    `serial` is a fraction, `wall` the threads that saturate memory, `sibling` what a hyperthread adds in
    cores.
    """
    own, busy, cores = rows.threads, rows.busy_threads, rows.cores
    capacity = np.minimum(busy, cores) + np.minimum(sibling, 1.0) * np.clip(busy - cores, 0.0, cores)
    given = own * capacity / busy
    crowded = (1.0 + (busy / wall) ** _SHARPNESS) ** (-1.0 / _SHARPNESS)
    alone = (1.0 + (1.0 / wall) ** _SHARPNESS) ** (-1.0 / _SHARPNESS)
    parallel = np.maximum(given * crowded / alone, 0.1)
    part = np.minimum(serial, 0.95)
    cores_used: Floats = 1.0 / (part + (1.0 - part) / parallel)
    return cores_used
