"""A real network with everything that has a state: dropout, batch norm, shuffled batches, momentum, schedules."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def images() -> TensorDataset:
    """Noisy copies of ten patterns: 320 images of 8 x 8."""
    numbers = torch.Generator().manual_seed(1)
    patterns = torch.rand(10, 1, 8, 8, generator=numbers)
    labels = torch.arange(320) % 10
    return TensorDataset(patterns[labels] + 0.5 * torch.randn(320, 1, 8, 8, generator=numbers), labels)


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Dropout(0.3), nn.Linear(8 * 36, 10)
    )


def train(run: Any) -> None:
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=run.config.lr)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=12)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    order, own = torch.Generator().manual_seed(run.seed), np.random.default_rng(run.seed)
    run.track(model=model, optimizer=optimizer, cosine=cosine, plateau=plateau, order=order, own=own)
    batches = DataLoader(images(), batch_size=32, shuffle=True, generator=order)
    for epoch in run.steps(max=12):
        losses = []
        for inputs, labels in batches:
            optimizer.zero_grad()
            noise = torch.from_numpy(own.normal(scale=0.1, size=inputs.shape)).float()
            loss = nn.functional.cross_entropy(model(inputs + noise), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        cosine.step()
        plateau.step(np.mean(losses))  # a best value of numpy's kind in its state
        run.report(accuracy=-np.mean(losses), luck=np.random.rand())  # noqa: NPY002  # the global state is kept, too
        if str(epoch) in run.config.leave_after.split():
            (run.folder / "yield").touch()
    torch.save(model.state_dict(), run.folder / "final.pt")
