"""The training code of `benchmarks.digits_job`: a small convolutional network on scikit-learn's digits (8 x 8)."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

EPOCHS = 27
PIXELS, LABELS = load_digits(return_X_y=True)


def epochs(config, seed):
    """Yields the validation accuracy after each epoch."""
    torch.manual_seed(seed)
    x, y = torch.tensor(PIXELS, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16, torch.tensor(LABELS)
    layers, channels = [], 1
    for level in range(config["layers"]):
        layers += [nn.Conv2d(channels, config["channels"], 3, padding=1), nn.ReLU()]
        layers += [nn.MaxPool2d(2)] if level == 0 else []
        channels = config["channels"]
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels * 16, 10))
    optimizer = torch.optim.SGD(
        model.parameters(), lr=config["lr"], momentum=config["momentum"], weight_decay=config["weight_decay"]
    )
    for _ in range(EPOCHS):
        for batch in torch.randperm(1400).split(config["batch"]):
            optimizer.zero_grad()
            F.cross_entropy(model(x[batch]), y[batch]).backward()
            optimizer.step()
        with torch.no_grad():
            yield float((model(x[1400:]).argmax(1) == y[1400:]).float().mean())


def train(run):
    values = epochs(run.config, run.seed)
    for _ in run.steps(max=EPOCHS):
        run.report(accuracy=next(values))
