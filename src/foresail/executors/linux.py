"""What only Linux offers, each a no-op elsewhere: it makes sure that nothing is left behind."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Final

_SET_PDEATHSIG: Final = 1
_SET_CHILD_SUBREAPER: Final = 36
_OOM_SCORE: Final = 500
"""In thousandths of the machine's memory, which the kernel adds to what a process uses when it chooses one."""
_CGROUP_ROOT: Final = Path("/sys/fs/cgroup")


def die_with_parent(signal_number: int) -> None:
    """Have the kernel signal this process when the thread that forked it ends."""
    _prctl(_SET_PDEATHSIG, signal_number)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent died, so that they can be reaped."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def die_first() -> None:
    """Have the kernel, where memory runs out, end this process before the driver, the template and what else runs."""
    score = Path("/proc/self/oom_score_adj")
    try:
        score.write_text(str(max(_OOM_SCORE, int(score.read_text()))))
    except (OSError, ValueError):
        pass  # it is not Linux, or it may not be changed here


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def count_threads() -> int:
    """Threads of this process as the kernel counts them; 0 where it does not tell."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 0


def count_oom_kills() -> int:
    """Processes of our control group that the kernel has killed for memory; 0 where it does not tell."""
    for counter in _oom_counters():
        try:
            fields = dict(line.split() for line in counter.read_text().splitlines())
            return int(fields["oom_kill"])
        except (OSError, KeyError, ValueError):
            continue
    return 0


def _oom_counters() -> list[Path]:
    """Where the count may lie: control groups of version 2, of version 1, then the whole machine's."""
    groups: dict[str, str] = {}
    try:
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            groups[controllers] = path.lstrip("/")
    except (OSError, ValueError):
        return []
    second = [_CGROUP_ROOT / groups[""] / "memory.events"] if "" in groups else []
    memory = next((path for names, path in groups.items() if "memory" in names.split(",")), None)
    first = [_CGROUP_ROOT / "memory" / memory / "memory.oom_control"] if memory is not None else []
    return [*second, *first, _CGROUP_ROOT / "memory.events", Path("/proc/vmstat")]
