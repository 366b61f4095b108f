"""Which samples a rank computes: its part of each global batch, which is the same at any width."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any

import msgspec

from foresail.errors import TrainingError
from foresail.worker.feed import Feed, most_workers
from foresail.worker.ranks import Ranks


class Batch(msgspec.Struct, frozen=True):
    """Samples of one optimizer step: of this rank (`share`), computed at a time (`micro`), and how many times."""

    share: int
    micro: int
    accumulation: int


def batch_of(ranks: Ranks, size: int) -> Batch:
    """How a global batch is cut.

    Raises:
        TrainingError: the replicas cannot share it evenly, or their shares are no whole number of micro-batches.
    """
    replicas = ranks.layout.dp
    if size % replicas:
        raise TrainingError(f"a batch of {size} samples is not shared evenly by {replicas} replicas")
    share = size // replicas
    micro = ranks.layout.micro(share)
    if share % micro:
        raise TrainingError(f"a share of {share} samples is not whole micro-batches of {micro}")
    return Batch(share, micro, share // micro)


class Shared:
    """A sampler of batches: of each global batch, the samples of this rank."""

    def __init__(self, batches: Iterable[Sequence[int]], ranks: Ranks) -> None:
        self._batches, self._ranks = batches, ranks

    def __iter__(self) -> Iterator[list[int]]:
        for batch in self._batches:
            share = batch_of(self._ranks, len(batch)).share
            begin = share * self._ranks.replica
            yield list(batch[begin : begin + share])

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]


class Order:
    """Global batches of a data set in an order that the seed and the step fix; an incomplete last one is left out."""

    def __init__(self, count: int, size: int, *, shuffle: bool, seed: int, step: Callable[[], int]) -> None:
        self._count, self._size, self._shuffle, self._seed, self._step = count, size, shuffle, seed, step
        self._pass = (0, 0)

    def __iter__(self) -> Iterator[list[int]]:
        step, passes = self._step(), 0
        if self._pass[0] == step:
            passes = self._pass[1] + 1
        self._pass = (step, passes)
        order = self._order(step, passes)
        for begin in range(0, len(self) * self._size, self._size):
            yield order[begin : begin + self._size]

    def _order(self, step: int, passes: int) -> list[int]:
        if not self._shuffle:
            return list(range(self._count))
        torch = import_module("torch")
        numbers = torch.Generator().manual_seed(self._seed * 1_000_003 + step * 1_009 + passes)
        order: list[int] = torch.randperm(self._count, generator=numbers).tolist()
        return order

    def __len__(self) -> int:
        return self._count // self._size


def loader_of(dataset: Any, order: Order, ranks: Ranks, workers: int | str) -> Any:
    """Batches of this rank by so many loader workers; "auto": as its passes tell (`feed.py`)."""
    load = import_module("torch.utils.data").DataLoader

    def loader(count: int) -> Any:
        return load(dataset, batch_sampler=Shared(order, ranks), num_workers=count, persistent_workers=count > 0)

    return Feed(loader, most=most_workers()) if workers == "auto" else loader(int(workers))
