"""Makes the shipped weights from nothing: `python -m foresail.curves.train`.

Draws synthetic studies from the prior, cuts every trial at a random step, shows the network what the
product would show it (the study's own scale, features, a noisy pseudo-observation of the final value, the
gains of finished peers) and teaches it the laws at the knots by maximum likelihood. Needs torch; nothing
else in Foresail does. The same seed and steps give the same weights on the same machine.

Letters: B trials of a batch, T steps, F features, J knots, Q normal scores.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from foresail.curves.lessons import Batch, sample_batches
from foresail.curves.network import (
    FARTHEST_CENTRE,
    KNOTS,
    LARGEST_LOADING,
    MIDDLE,
    OUTPUTS,
    THINNEST,
    WIDEST,
    Network,
    knot_position,
)
from foresail.curves.passage import NODE_WEIGHTS, below_given_factor
from foresail.curves.tables import SCORES, scores_at

Floats = NDArray[Any]

HIDDEN = 144
# Outcomes are known to this (internal units), so that flat curves do not earn an infinite density: to a part of the
# trial's own unit, within limits.
RESOLUTION_FRAC, FINEST, COARSEST = 0.05, 1e-4, 8e-4
PEAK_RATE = 2e-3


class Learner(nn.Module):
    """The torch twin of `foresail.curves.network.Network`."""

    def __init__(self, mean: Floats, spread: Floats) -> None:
        super().__init__()
        sizes = [len(mean), HIDDEN, HIDDEN, HIDDEN, OUTPUTS]
        self.layers = [nn.Linear(a, b) for a, b in itertools.pairwise(sizes)]
        self.registered = nn.ModuleList(self.layers)
        self.mean, self.spread = torch.from_numpy(mean), torch.from_numpy(spread)
        self.gaps = torch.from_numpy(np.diff(SCORES))
        with torch.no_grad():
            self.layers[-1].weight.mul_(0.3)

    def hidden(self, x: Tensor) -> Tensor:
        hidden = (x - self.mean) / self.spread
        for layer in self.layers[:-1]:
            hidden = nn.functional.silu(layer(hidden))
        return hidden

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Centres (B, J), increments (B, J, Q - 1) in the trial's unit, and loadings (B, J)."""
        raw = self.layers[-1](self.hidden(x))[:, :-1].view(len(x), KNOTS, len(SCORES) + 1)
        increments = torch.exp(raw[:, :, 2:].clamp(THINNEST, WIDEST)) * self.gaps
        centre = torch.sinh(raw[:, :, 1].clamp(-FARTHEST_CENTRE, FARTHEST_CENTRE))
        return centre, increments, LARGEST_LOADING * torch.sigmoid(raw[:, :, 0])

    def scores(self, centre: Tensor, increments: Tensor, value: Tensor) -> Tensor:
        """Normal scores of `value` (B, J) under the tables; straight beyond the last scores."""
        up = torch.cumsum(increments[:, :, MIDDLE:], 2)
        down = torch.cumsum(increments[:, :, :MIDDLE].flip(2), 2).flip(2)
        lower = torch.cat([-down, torch.zeros_like(up[:, :, :1]), up[:, :, :-1]], 2)
        offset = (value - centre)[:, :, None] - lower
        part = (offset / increments).clamp(0.0, 1.0)
        z = SCORES[0].item() + (part * self.gaps).sum(2)
        beyond = (offset[:, :, -1] - increments[:, :, -1]).clamp(min=0) * (self.gaps[-1] / increments[:, :, -1])
        short = (-offset[:, :, 0]).clamp(min=0) * (self.gaps[0] / increments[:, :, 0])
        scores: Tensor = (z + beyond - short).clamp(-7.5, 7.5)
        return scores


def loss_of(learner: Learner, x: Tensor, future: Tensor, unit: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
    """Mean negative log score of the values at the knots, in units of each trial, and of the copula that ties
    them."""
    centre, increments, loading = learner(x)
    known = resolution_of(unit)[:, None]
    low = learner.scores(centre, increments, (future - known) / unit[:, None])
    high = learner.scores(centre, increments, (future + known) / unit[:, None])
    marginal = -_log_interval(low, high) + torch.log(2 * known)
    z = (0.5 * (low + high)).detach().clamp(-3.5, 3.5)
    own = 1.0 - loading**2
    shared = 1.0 + (loading**2 / own).sum(1)
    quad = (z**2 / own).sum(1) - ((loading * z / own).sum(1)) ** 2 / shared
    copula = 0.5 * (torch.log(own).sum(1) + torch.log(shared) + quad - (z**2).sum(1))
    return marginal.mean(1)[keep].mean(), copula[keep].mean()


def resolution_of(unit: Tensor) -> Tensor:
    """To what outcomes of trials with these units are known, (B,)."""
    return (RESOLUTION_FRAC * unit).clamp(FINEST, COARSEST)


def _log_interval(low: Tensor, high: Tensor) -> Tensor:
    """log(Phi(high) - Phi(low)), stable in both tails."""
    flip = (low + high) > 0
    a, b = torch.where(flip, -low, high), torch.where(flip, -high, low)
    top, under = torch.special.log_ndtr(a), torch.special.log_ndtr(b)
    result: Tensor = top + torch.log1p(-torch.exp((under - top).clamp(max=-1e-6)))
    return result


def train(steps: int, seed: int) -> dict[str, Floats]:
    """Arrays of the trained network, ready for `numpy.savez`."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    batches = sample_batches(rng)
    sample = np.concatenate([next(batches).features_BF for _ in range(60)])
    learner = Learner(sample.mean(axis=0), sample.std(axis=0) + 0.02)
    _teach_laws(learner, batches, steps)
    _teach_freshness(learner, sample_batches(rng, longest=60), max(steps // 10, 1))
    return _arrays(learner)


def _teach_laws(learner: Learner, batches: Iterator[Batch], steps: int) -> None:
    """Tables and loadings, by maximum likelihood."""
    optimizer = torch.optim.AdamW(learner.parameters(), lr=PEAK_RATE, weight_decay=1e-4)
    seen, start = [], time.process_time()
    for step in range(steps):
        _set_rate(optimizer, PEAK_RATE * min(1.0, (step + 1) / 300), step / steps)
        batch = next(batches)
        tensors = (torch.from_numpy(a) for a in (batch.features_BF, batch.future_BJ, batch.unit_B, batch.keep_B))
        marginal, copula = loss_of(learner, *tensors)
        optimizer.zero_grad()
        (marginal + 0.3 * copula).backward()
        nn.utils.clip_grad_norm_(learner.parameters(), 1.0)
        optimizer.step()
        seen.append((marginal.item(), copula.item()))
        if (step + 1) % 1000 == 0:
            log_score, copula_gain = -np.mean(seen[-1000:], axis=0)
            spent = time.process_time() - start
            print(
                f"step {step + 1}: log score {log_score:.4f}, copula {copula_gain:.4f}, {spent:.0f} CPU s",
                flush=True,
            )


def _teach_freshness(learner: Learner, batches: Iterator[Batch], steps: int) -> None:
    """The one number that says how white the path is, by whether targets are passed; all else stands
    still."""
    weight, bias = learner.layers[-1].weight, learner.layers[-1].bias
    head = nn.Linear(HIDDEN, 1)
    with torch.no_grad():
        head.weight.copy_(weight[-1:] * 0.1)
        head.bias.fill_(-1.5)
    optimizer = torch.optim.AdamW(head.parameters(), lr=1e-2)
    rng = np.random.default_rng(1)
    seen = []
    for step in range(steps):
        _set_rate(optimizer, 1e-2, step / steps)
        batch = next(batches)
        with torch.no_grad():
            hidden = learner.hidden(torch.from_numpy(batch.features_BF))
            below, ahead, event = _passages(learner, batch, rng)
        fresh = torch.sigmoid(head(hidden))[:, :, None]
        keep = torch.from_numpy(batch.keep_B)
        stay = torch.log((1.0 - fresh * (1.0 - below) * ahead).clamp(min=1e-6))
        lowest = torch.log(torch.where(ahead > 0, below, torch.ones_like(below)).amin(1).clamp(min=1e-9))
        stayed = torch.exp(stay.sum(1) + (1.0 - fresh[:, 0]) * lowest) @ torch.from_numpy(NODE_WEIGHTS)
        loss = nn.functional.binary_cross_entropy((1.0 - stayed).clamp(1e-5, 1 - 1e-5)[keep], event[keep])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen.append((loss.item(), fresh.mean().item()))
        if (step + 1) % 500 == 0:
            print(f"freshness step {step + 1}: cross entropy, mean {np.mean(seen[-500:], axis=0)}", flush=True)
    with torch.no_grad():
        weight[-1:] = head.weight
        bias[-1:] = head.bias


def _passages(learner: Learner, batch: Batch, rng: np.random.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """One target a trial: below it given the factor (B, T, G), steps ahead (B, T, 1), and whether it was
    passed (B,)."""
    laws = _network(learner).laws(batch.features_BF, batch.level_B, batch.unit_B)
    steps = batch.values_BT.shape[1]
    remaining = (steps - batch.count_B).astype(float)
    ahead = np.arange(steps) >= batch.count_B[:, None]
    position = knot_position(np.arange(1, steps + 1) - batch.count_B[:, None], remaining[:, None])
    low = np.minimum(position.astype(np.int64), KNOTS - 2)
    part, rows = position - low, np.arange(len(low))[:, None]
    table = laws.tables[rows, low] + part[:, :, None] * (laws.tables[rows, low + 1] - laws.tables[rows, low])
    loading = laws.loadings[rows, low] + part * (laws.loadings[rows, low + 1] - laws.loadings[rows, low])
    target = np.interp(rng.uniform(-0.5, 3.0, len(low)), SCORES, np.arange(len(SCORES)))
    k = np.minimum(target.astype(np.int64), len(SCORES) - 2)
    end = laws.tables[:, -1]
    level = end[rows[:, 0], k] + (target - k) * (end[rows[:, 0], k + 1] - end[rows[:, 0], k])
    event = np.where(ahead, batch.values_BT, -np.inf).max(axis=1) >= level
    z = scores_at(table.astype(np.float32), level[:, None].astype(np.float32))
    below = below_given_factor(z, loading.astype(np.float32))
    return (
        torch.from_numpy(below),
        torch.from_numpy(ahead[:, :, None].astype(np.float32)),
        torch.from_numpy(event.astype(np.float32)),
    )


def _set_rate(optimizer: torch.optim.Optimizer, peak: float, done: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = peak * 0.5 * (1 + math.cos(math.pi * done)) + 1e-6


def _network(learner: Learner) -> Network:
    arrays = _arrays(learner)
    layers = range(len(learner.layers))
    return Network(
        tuple(arrays[f"weight{i}"] for i in layers),
        tuple(arrays[f"bias{i}"] for i in layers),
        arrays["mean"],
        arrays["spread"],
    )


def _arrays(learner: Learner) -> dict[str, Floats]:
    arrays = {"mean": learner.mean.numpy(), "spread": learner.spread.numpy()}
    for i, layer in enumerate(learner.layers):
        arrays[f"weight{i}"] = np.ascontiguousarray(layer.weight.detach().numpy().T)
        arrays[f"bias{i}"] = layer.bias.detach().numpy()
    return arrays


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=16000)
    parser.add_argument("--seed", type=int, default=20240)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("weights.npz"))
    arguments = parser.parse_args()
    arrays: dict[str, Any] = train(arguments.steps, arguments.seed)
    np.savez_compressed(arguments.out, **arrays)


if __name__ == "__main__":
    main()
