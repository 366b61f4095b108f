"""Ray in tests: small and silent. `make test` runs these tests after the others, in one process: one cluster does.

They wait long (`PATIENCE_S`), since a process of Ray takes seconds to come where two cores are busy with other things.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

ON_RAY = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(600)]
PATIENCE_S = 180.0
STORE_BYTES = 80 << 20
_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_raylet_start_wait_time_s": "150",
    "RAY_memory_monitor_refresh_ms": "0",  # what other tests take is no reason to kill
    "RAY_prestart_worker_first_driver": "0",  # a process for each CPU, of which agents need one
    "RAY_enable_worker_prestart": "0",
}


T = TypeVar("T")


def patiently(start: Callable[[], T], tries: int = 4) -> T:
    """Ray gives its own processes thirty seconds to come, whatever it is told: on a busy machine it is asked again."""
    try:
        return start()
    except Exception:  # its very class
        if tries == 1:
            raise
        return patiently(start, tries - 1)


def import_ray(name: str = "ray") -> Any:
    """The module; the test is skipped where Ray is not installed."""
    module = pytest.importorskip(name, reason="Ray is not installed: pip install foresail[ray]")
    os.environ |= _SETTINGS
    return module
