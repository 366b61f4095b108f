"""What this machine offers to trials."""

from __future__ import annotations

import os
import socket


def usable_cores() -> tuple[int, ...]:
    """Ids of the cores that this process may use (affinity and container limits respected)."""
    if hasattr(os, "sched_getaffinity"):
        cores = tuple(sorted(os.sched_getaffinity(0)))
    else:
        cores = tuple(range(os.cpu_count() or 1))
    return cores[: _cpu_quota() or len(cores)]


def _cpu_quota() -> int | None:
    """Whole cores that the control group grants (cgroup v2, `cpu.max`); None without a limit."""
    try:
        with open("/sys/fs/cgroup/cpu.max", encoding="ascii") as file:
            quota, period = file.read().split()
    except (OSError, ValueError):
        return None
    return None if quota == "max" else max(1, int(quota) // int(period))


def host_name() -> str:
    return socket.gethostname()
