"""Small real trainings over several ranks: a transformer and a convolutional network, without batch norm or dropout."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import torch
from torch import nn
from torch.utils.data import TensorDataset

SAMPLES, BATCH = 64, 16


class Mean(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(dim=1)


def transformer() -> nn.Module:
    layers = [nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True) for _ in range(2)]
    return nn.Sequential(nn.Embedding(11, 16), *layers, Mean(), nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.GroupNorm(2, 8), nn.ReLU(), nn.Conv2d(8, 4, 3), nn.ReLU(), nn.Flatten(),
        nn.Linear(4 * 16, 32), nn.ReLU(), nn.Linear(32, 4),
    )  # fmt: skip


def samples(kind: str) -> TensorDataset:
    numbers = torch.Generator().manual_seed(5)
    labels = torch.arange(SAMPLES) % 4
    if kind == "transformer":
        return TensorDataset((torch.randint(0, 7, (SAMPLES, 6), generator=numbers) + labels[:, None]), labels)
    return TensorDataset(torch.randn(SAMPLES, 1, 8, 8, generator=numbers) + labels[:, None, None, None], labels)


def train(run: Any) -> None:
    """Reports the mean loss of each epoch, and a number that follows from the samples of each global batch."""
    kind = run.config.kind
    data = samples(kind)
    numbered = TensorDataset(*data.tensors, torch.arange(SAMPLES))
    model = run.parallelize(transformer() if kind == "transformer" else network())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
    run.track(model=model, optimizer=optimizer, schedule=schedule)
    batches = run.shard(numbered, batch=BATCH)
    for epoch in run.steps(max=run.config.steps):
        losses, order = [], 0.0
        for number, (inputs, labels, numbers) in enumerate(batches):
            optimizer.zero_grad()
            losses.append(run.backward(model, nn.functional.cross_entropy, inputs, labels))
            optimizer.step()
            order += (number + 1) * run.mean(float(numbers.double().pow(2).mean()))
        schedule.step()
        _misbehave(run, epoch)
        run.report(accuracy=-sum(losses) / len(losses), order=order, ranks=run.layout.ranks)
        if str(epoch) in run.config.leave_after.split() and run.rank == 0:
            (run.folder / "yield").touch()
        time.sleep(run.config.get("pause_s", 0.0))


def _misbehave(run: Any, epoch: int) -> None:
    """One rank does what `config.fault` names, at its first pass over `config.fault_at`."""
    mark = run.folder.parents[1] / f"fault-{run.trial}"
    if run.rank != run.layout.ranks - 1 or epoch != run.config.get("fault_at", 0) or mark.exists():
        return
    mark.touch()
    match run.config.fault:
        case "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        case "raises":
            raise ValueError("only here")
        case "hangs":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            while True:
                signal.pause()
        case "leaves":
            raise SystemExit(0)
