"""Features of a PyTorch job from one of its own steps: what a step computes, and how long it waits for its samples.

The step is a training step like any other, only slower. Nothing is known of the job but a function that runs a step, so
operations are counted as PyTorch dispatches them (forward, backward and update), and waiting is what its data loaders
take to give their next batch.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from typing import Any

import msgspec

from foresail.perf.words import Job, SystemConfiguration

_PASSES = 3.0
"""Forward passes that a step costs: the backward pass counts as two."""


class Waited:
    """Seconds that data loaders of this process took to give batches, since it was made."""

    def __init__(self) -> None:
        self.seconds, self.is_waiting = 0.0, False
        loader = sys.modules.get("torch.utils.data.dataloader")
        if loader is not None:
            loader._BaseDataLoaderIter.__next__ = self._timed(loader._BaseDataLoaderIter.__next__)

    def _timed(self, given: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def timed(loader: Any) -> Any:
            start, self.is_waiting = time.perf_counter(), True
            try:
                return given(loader)
            finally:
                self.seconds, self.is_waiting = self.seconds + time.perf_counter() - start, False

        return timed


def features(step: Callable[[], object], system: SystemConfiguration, waited: Waited) -> Job | None:
    """What one step shows of a job, nameless; None where PyTorch is not what it computes with.

    What loaders compute in this process is not counted: it is in the seconds that they take.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.flop_counter import FlopCounterMode

    seen = {"operations": 0}

    class Counter(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen["operations"] += not (func.is_view or waited.is_waiting)
            return func(*args, **(kwargs or {}))

    flops = FlopCounterMode(display=False)
    with flops, Counter():
        step()
    if not seen["operations"]:
        return None
    samples = system.micro_batch * system.accumulation
    known = [p for p in gc.get_objects() if issubclass(type(p), torch.nn.Parameter) and p.requires_grad]
    return Job(
        name="",
        gemm_flop=flops.get_total_flops() / samples / _PASSES,
        kernels=seen["operations"] / system.accumulation / _PASSES,
        params=float(sum(p.numel() for p in known)),
    )


def with_waiting(job: Job, name: str, system: SystemConfiguration, waited_s: float) -> Job:
    """The job under a name, with the seconds that loading a sample takes, given those of a step without workers."""
    samples = system.micro_batch * system.accumulation
    return msgspec.structs.replace(job, name=name, input_s=waited_s / samples)
