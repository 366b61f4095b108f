"""Three small real jobs to measure on this machine: a convolutional network, an MLP, a small transformer.

Each `make(system)` returns a function that runs one optimizer step of the global batch with the replicas,
micro-batch, accumulation and loader workers of the system configuration.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from foresail.perf.words import SystemConfiguration

GLOBAL_BATCH = 64
Step = Callable[[], object]


class _Made(Dataset[Any]):
    """Samples made on the fly, with some work for each: what a loader worker does."""

    def __init__(self, shape: tuple[int, ...], classes: int, *, tokens: bool = False) -> None:
        self.shape, self.classes, self.tokens = shape, classes, tokens

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        generator = torch.Generator().manual_seed(index)
        if self.tokens:
            return torch.randint(0, 256, self.shape, generator=generator), index % self.classes
        image = torch.randn(self.shape, generator=generator)
        return (image - image.mean()) / (image.std() + 1e-6), index % self.classes


def conv(system: SystemConfiguration) -> Step:
    """A convolutional network on 3 x 32 x 32 images."""
    net = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3, padding=1, stride=2),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(64 * 8 * 8, 10),
    )
    return _step(net, _Made((3, 32, 32), 10), system)


def mlp(system: SystemConfiguration) -> Step:
    """A multi-layer perceptron of 2.1 million parameters."""
    net = nn.Sequential(
        nn.Linear(784, 1024),
        nn.ReLU(),
        nn.Linear(1024, 1024),
        nn.ReLU(),
        nn.Linear(1024, 256),
        nn.ReLU(),
        nn.Linear(256, 10),
    )
    return _step(net, _Made((784,), 10), system)


class _Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(256, 96)
        layer = nn.TransformerEncoderLayer(96, 4, 192, batch_first=True, dropout=0.0)
        self.stack = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(96, 10)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.head(self.stack(self.embed(tokens)).mean(1))
        return out


def small_transformer(system: SystemConfiguration) -> Step:
    """Two encoder layers of width 96 on 32 tokens."""
    return _step(_Small(), _Made((32,), 10, tokens=True), system)


def _step(net: nn.Module, data: Dataset[Any], system: SystemConfiguration) -> Step:
    torch.manual_seed(0)
    model: nn.Module = net
    unsynchronised: Callable[[], AbstractContextManager[None]] = nullcontext
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        torch.distributed.init_process_group("gloo")
        model = nn.parallel.DistributedDataParallel(net)
        unsynchronised = model.no_sync
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    batches = _batches(data, system)
    loss = nn.CrossEntropyLoss()

    def step() -> None:
        optimizer.zero_grad()
        for left in reversed(range(system.accumulation)):
            inputs, labels = next(batches)
            with unsynchronised() if left else nullcontext():
                (loss(model(inputs), labels) / system.accumulation).backward()
        optimizer.step()

    return step


def _batches(data: Dataset[Any], system: SystemConfiguration) -> Iterator[Any]:
    loader = DataLoader(data, batch_size=system.micro_batch, num_workers=system.loader_workers)
    while True:
        yield from loader
