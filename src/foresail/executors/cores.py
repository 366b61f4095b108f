"""Cores and threads of an attempt: pinned to what it was granted, as many threads as cores.

Two trials that each start a thread for every core of the machine run many times slower than two that share it. What
the user set in the environment wins.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import suppress
from typing import Final, TypeVar

T = TypeVar("T")

THREAD_VARIABLES: Final = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def set_by_user(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The thread variables that the user has set."""
    return tuple(name for name in THREAD_VARIABLES if environment.get(name))


def set_thread_variables(environment: MutableMapping[str, str], threads: int, *, but: Sequence[str]) -> None:
    for name in THREAD_VARIABLES:
        if name not in but:
            environment[name] = str(threads)


def part(shared: Sequence[T], rank: int, ranks: int) -> tuple[T, ...]:
    """What one of several ranks gets of cores or devices: its equal part; one of them where there are too few.

    >>> part((4, 5, 6, 7), 1, 2), part((4, 5), 3, 4)
    ((6, 7), (5,))
    """
    if ranks == 1 or not shared:
        return tuple(shared)
    size = len(shared) // ranks
    return tuple(shared[rank * size : (rank + 1) * size]) if size else (shared[rank % len(shared)],)


def pin(cores: Sequence[int]) -> None:
    """Keep the process on these cores, where the platform can. Cores that the machine lacks are left out."""
    if not cores or not hasattr(os, "sched_setaffinity"):
        return
    allowed = os.sched_getaffinity(0).intersection(cores)
    if allowed:
        os.sched_setaffinity(0, allowed)


def set_library_threads(threads: int, *, user_set: Sequence[str]) -> None:
    """Tell libraries that were imported before the fork; they have read their variables already."""
    if "OMP_NUM_THREADS" not in user_set and (torch := sys.modules.get("torch")):
        torch.set_num_threads(threads)
    if "OMP_NUM_THREADS" not in user_set:
        for library in _mapped("libgomp", "libomp", "libiomp"):
            with suppress(OSError, AttributeError):
                ctypes.CDLL(library).omp_set_num_threads(threads)
    if "NUMEXPR_NUM_THREADS" not in user_set and (numexpr := sys.modules.get("numexpr")):
        numexpr.set_num_threads(threads)
    if "OPENBLAS_NUM_THREADS" not in user_set:
        for library in _openblas_libraries():
            _openblas(library, "set_num_threads", threads)


def count_openblas_threads() -> int:
    """Helper threads that OpenBLAS has started. It ends them before a fork and starts them again by itself."""
    return sum(_openblas(library, "get_num_threads") - 1 for library in _openblas_libraries() if _has_pthreads(library))


def _has_pthreads(library: str) -> bool:
    return _openblas(library, "get_parallel") == 1


def _openblas_libraries() -> set[str]:
    """Files of the OpenBLAS copies in this process: numpy and scipy each bring one."""
    return _mapped("openblas")


def _mapped(*words: str) -> set[str]:
    """Files of libraries in this process whose names hold one of these: Python packages bring copies of their own."""
    try:
        with open("/proc/self/maps") as maps:
            files = {parts[5].strip() for line in maps if len(parts := line.split(maxsplit=5)) == 6}
            return {file for file in files if any(word in os.path.basename(file) for word in words)}
    except OSError:
        return set()


def _openblas(library: str, function: str, *arguments: int) -> int:
    """Call a function of an OpenBLAS, under whichever name its builder gave it; 0 where there is none."""
    with suppress(OSError):
        loaded = ctypes.CDLL(library)
        for prefix in ("scipy_openblas", "openblas"):
            for suffix in ("64_", ""):
                if (found := getattr(loaded, f"{prefix}_{function}{suffix}", None)) is not None:
                    return int(found(*arguments))
    return 0
