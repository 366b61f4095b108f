"""How many loader workers a training gets that leaves it to us: as many as hide its loading, if that makes it faster.

The first pass over the data loads in line. With L seconds of loading and T of all in a batch (medians of the pass), W
workers hide loading once L / W <= T - L (the step-time law's input term, `perf/step_time.py`). That many load the next
pass; from then on whatever was faster. Each pass is training. The order of samples is the same with any number of
workers; what a data set draws at random in `__getitem__` is not.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from statistics import median
from time import perf_counter
from typing import Any

LEAST_SAVED_FRAC = 0.05
"""Of a batch's seconds, under which workers are not worth trying; and what they must save to stay."""
_LEAST_BATCHES = 4


class Feed:
    """Batches of `loader(workers)`, pass after pass; `workers` is what the next pass will have."""

    def __init__(self, loader: Callable[[int], Any], *, most: int, clock: Callable[[], float] = perf_counter) -> None:
        self._loaders = {0: loader(0)}
        self._loader, self._most, self._clock = loader, most, clock
        self._batch_s: dict[int, float] = {}
        self.workers = 0

    def __len__(self) -> int:
        return len(self._loaders[0])

    def __iter__(self) -> Iterator[Any]:
        workers, clock = self.workers, self._clock
        if workers not in self._loaders:
            self._loaders[workers] = self._loader(workers)
        waits, wholes = [], []
        asked, batches = clock(), iter(self._loaders[workers])
        while (batch := next(batches, None)) is not None:
            waits.append(clock() - asked)
            yield batch
            now = clock()
            wholes.append(now - asked)
            asked = now
        if len(waits) >= _LEAST_BATCHES and workers not in self._batch_s:
            self._learn(workers, median(wholes), median(waits))

    def _learn(self, workers: int, batch_s: float, waited_s: float) -> None:
        """A whole pass had so many workers: which number the next has."""
        self._batch_s[workers] = batch_s
        if workers:
            if batch_s >= (1.0 - LEAST_SAVED_FRAC) * self._batch_s[0]:
                self.workers = 0
                del self._loaders[workers]  # and with it its processes
        elif waited_s > LEAST_SAVED_FRAC * batch_s:
            hidden = math.ceil(waited_s / max(batch_s - waited_s, 1e-9))
            self.workers = min(hidden, self._most)


def most_workers() -> int:
    """One for each processor of this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
