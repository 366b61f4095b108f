"""The ranks of an attempt: how its processes find each other, and what they agree upon.

They meet through a file in the attempt's folder, so no port is chosen or listened on before they know each other. At
each step boundary one small collective carries all that must be the same everywhere: whether to leave, whether to
save, and at which step. A rank that died, hangs, or stands at another step is found there at the latest.

Rank r = (p * dp + d) * tp + t holds part t of the layers of stage p in replica d.
"""

from __future__ import annotations

import datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from foresail.core.layout import Layout
from foresail.errors import TrainingError

RENDEZVOUS = "rendezvous"


class Ranks:
    """This process among the ranks of its attempt. One that is alone asks nobody, and imports nothing."""

    def __init__(self, layout: Layout, rank: int = 0) -> None:
        self.layout, self.rank = layout, rank
        self._dist: Any = None
        self._control: Any = None
        self._meshes: dict[str, Any] = {}

    @property
    def size(self) -> int:
        return self.layout.ranks

    @property
    def replica(self) -> int:
        """Which share of the data it computes, from 0."""
        return self.rank // self.layout.tp % self.layout.dp

    @property
    def stage(self) -> int:
        """Which part of a pipeline it holds, from 0."""
        return self.rank // (self.layout.tp * self.layout.dp)

    def meet(self, folder: Path) -> None:
        """Wait for the others, for the layout's time limit at most."""
        if self.size == 1:
            return
        torch, self._dist = import_module("torch"), import_module("torch.distributed")
        cuda = torch.cuda.is_available()
        if cuda:
            torch.cuda.set_device(0)  # of those that the rank was given
        self._dist.init_process_group(
            "cpu:gloo,cuda:nccl" if cuda else "gloo",
            init_method=(folder / RENDEZVOUS).as_uri(),
            rank=self.rank,
            world_size=self.size,
            timeout=datetime.timedelta(seconds=self.layout.timeout_s),
        )
        self._control = self._dist.group.WORLD

    def mesh(self, axis: str, device: str) -> Any:
        """The ranks that differ from this one along "pp", "dp" or "tp" alone, as torch's device mesh."""
        if not self._meshes:
            make = import_module("torch.distributed.device_mesh").init_device_mesh
            shape = (self.layout.pp, self.layout.dp, self.layout.tp)
            whole = make(device, shape, mesh_dim_names=("pp", "dp", "tp"))
            self._meshes = {name: whole[name] for name in ("pp", "dp", "tp")}
        return self._meshes[axis]

    # --- agreement -----------------------------------------------------------------------------------------------

    def agree(self, *, step: int, last: bool = False, leave: bool = False, save: bool = False) -> tuple[bool, bool]:
        """Whether all leave now, and whether all save now: yes where any says so.

        Raises:
            TrainingError: the ranks stand at different steps, or for some the training is over and for others not.
        """
        if self.size == 1:
            return leave, save
        torch = import_module("torch")
        said = torch.tensor([leave, save, step, -step, last, -last], dtype=torch.int64)
        self._dist.all_reduce(said, op=self._dist.ReduceOp.MAX, group=self._control)
        leave_all, save_all, most, least, any_last, all_last = said.tolist()
        if most != -least:
            raise TrainingError(f"the ranks disagree: one is at step {-least} and another at step {most}")
        if any_last != -all_last:
            raise TrainingError(f"the ranks disagree: the training is over at step {step} for some of them only")
        return bool(leave_all), bool(save_all)

    def gather(self, value: Any) -> list[Any]:
        """The values of all ranks on rank 0, by rank; nothing elsewhere. For plain data."""
        if self.size == 1:
            return [value]
        everyone: list[Any] = [None] * self.size
        self._dist.gather_object(value, everyone if self.rank == 0 else None, group=self._control)
        return everyone if self.rank == 0 else []

    def mean(self, value: Any) -> Any:
        """The mean of a number, or of a tensor, over the replicas; the same on every rank.

        With a pipeline, only the value of the last stage counts.
        """
        if self.size == 1:
            return value
        torch = import_module("torch")
        total = torch.as_tensor(value, dtype=torch.float64).detach().cpu().clone()
        counts = self.stage == self.layout.pp - 1
        total = total * (1.0 if counts else 0.0)
        self._dist.all_reduce(total, group=self._control)
        total = total / (self.layout.dp * self.layout.tp)
        return total.item() if isinstance(value, int | float) else total
