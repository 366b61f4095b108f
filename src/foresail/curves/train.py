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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor, nn

from foresail.curves.features import NO_LEVEL_SD, Context, Prefixes, features
from foresail.curves.network import (
    CENTRE_UNIT,
    KNOTS,
    LARGEST_LOADING,
    LEAST_STEP,
    MIDDLE,
    OUTPUTS,
    SCORES,
    STEP_UNIT,
    knot_lags,
)
from foresail.curves.prior import DIVERGED, sample_study
from foresail.curves.scale import Ends, Scale, fit_scale

Floats = NDArray[Any]

STUDIES, TRIALS = 8, 64
HIDDEN = 144
RESOLUTION = 0.0025  # outcomes are known to this, so that flat curves do not earn an infinite density
PEAK_RATE = 2e-3


@dataclass(frozen=True, slots=True)
class Batch:
    """One training batch: standardised later. `future_BJ` is relative to `level_B`."""

    features_BF: Floats
    future_BJ: Floats
    keep_B: NDArray[np.bool_]


def sample_batch(rng: Generator) -> Batch:
    """Trials of a few studies, each cut at a random step; what is finished is context and not a question."""
    steps = int(np.exp(rng.uniform(np.log(6), np.log(120))))
    raw = np.stack([sample_study(rng, TRIALS, steps) for _ in range(STUDIES)])
    group = int(rng.choice([1, 2, 4, 8, 16, 32, 64], p=[0.13, 0.05, 0.07, 0.10, 0.15, 0.22, 0.28]))
    raw = raw.reshape(-1, group, steps)
    finished = rng.random(raw.shape[:2]) < np.where(
        rng.random((len(raw), 1)) < 0.35, 0.0, rng.uniform(0, 0.6, (len(raw), 1))
    )
    count = _cuts(rng, raw.shape[:2], steps, finished)
    inner = _scale(rng, raw, count).inside(np.where(raw == DIVERGED, np.nan, raw))
    context = _context(rng, inner, count, finished)
    flat_values, flat_count = inner.reshape(-1, steps), count.reshape(-1)
    seen = np.where(np.arange(steps) < flat_count[:, None], flat_values, 0.0)
    grid = np.broadcast_to(np.arange(1.0, steps + 1), seen.shape)
    prefixes = Prefixes(grid, seen, flat_count, np.full(len(seen), float(steps)))
    x, level = features(prefixes, context)
    lags = np.rint(knot_lags((steps - flat_count).astype(float))).astype(np.int64)
    at = np.minimum(flat_count[:, None] + lags, steps) - 1
    future = np.take_along_axis(flat_values, at, axis=1) - level[:, None]
    return Batch(x, future.astype(np.float32), ~finished.reshape(-1))


def _cuts(rng: Generator, shape: tuple[int, ...], steps: int, finished: NDArray[np.bool_]) -> NDArray[np.int64]:
    share = np.exp(rng.uniform(np.log(0.02), np.log(0.99), shape))
    count = np.clip(np.rint(steps * share), 1, steps - 1).astype(np.int64)
    count[rng.random(shape) < 0.06] = 0
    return cast(NDArray[np.int64], np.where(finished, steps, count))


def _scale(rng: Generator, raw: Floats, count: NDArray[np.int64]) -> Scale:
    """The scale as the product would fit it on what has been seen; shape (G, 1, 1) in both fields."""
    known = (np.arange(raw.shape[2]) < count[:, :, None]) & (raw != DIVERGED)
    any_known = known.any(axis=2)
    first = np.where(known[:, :, 0], raw[:, :, 0], np.nan)
    last_at = np.where(any_known, raw.shape[2] - 1 - known[:, :, ::-1].argmax(axis=2), 0)
    last = np.where(any_known, np.take_along_axis(raw, last_at[:, :, None], axis=2)[:, :, 0], np.nan)
    high = np.where(any_known, np.where(known, raw, -np.inf).max(axis=2), np.nan)
    low = np.where(any_known, np.where(known, raw, np.inf).min(axis=2), np.nan)
    scale = fit_scale(Ends(first, last, high, low))
    single = np.nanmax(np.where(any_known, high, -9.0), axis=1) - np.nanmin(np.where(any_known, low, 9.0), axis=1) <= 0
    guess = np.exp(rng.uniform(np.log(0.1), np.log(1.5), len(raw)))
    width = np.where(single, guess, np.maximum(scale.width, 1e-6))
    return Scale(np.asarray(scale.best)[:, None, None], width[:, None, None])


def _context(rng: Generator, inner: Floats, count: NDArray[np.int64], finished: NDArray[np.bool_]) -> Context:
    final = inner[:, :, -1]
    sd = np.exp(rng.uniform(np.log(0.02), np.log(0.5), final.shape))
    level = final + sd * rng.normal(size=final.shape)
    wrong = rng.random(final.shape) < 0.08
    level = np.where(wrong, np.take_along_axis(final, rng.integers(0, final.shape[1], final.shape), axis=1), level)
    absent = rng.random(final.shape) < 0.4
    gain, gain_sd, weight = peer_gains(inner, count, finished)
    peers = np.broadcast_to((count > 0).sum(axis=1, keepdims=True), final.shape)
    return Context(
        level=np.where(absent, 0.0, level).reshape(-1),
        level_sd=np.where(absent, NO_LEVEL_SD, sd).reshape(-1),
        gain=gain.reshape(-1),
        gain_sd=gain_sd.reshape(-1),
        gain_weight=weight.reshape(-1),
        peers=np.maximum(peers, 1).reshape(-1).astype(float),
    )


def peer_gains(inner: Floats, count: NDArray[np.int64], finished: NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
    """Mean and sd of what finished peers gained from each trial's step to the end, and its weight."""
    done = finished[:, :, None]
    gains = np.where(done, inner[:, :, -1:] - inner, 0.0)
    number = np.maximum(finished.sum(axis=1), 1)[:, None]
    mean = gains.sum(axis=1) / number
    square = np.where(done, (gains - mean[:, None, :]) ** 2, 0.0).sum(axis=1) / number
    at = np.clip(count - 1, 0, inner.shape[2] - 1)
    weight = finished.sum(axis=1, keepdims=True) / (finished.sum(axis=1, keepdims=True) + 3.0)
    return (
        np.take_along_axis(mean, at, 1),
        np.sqrt(np.take_along_axis(square, at, 1)),
        np.broadcast_to(weight, at.shape),
    )


class Learner(nn.Module):
    """The torch twin of `foresail.curves.network.Network`."""

    def __init__(self, mean: Floats, spread: Floats) -> None:
        super().__init__()
        sizes = [len(mean), HIDDEN, HIDDEN, HIDDEN, OUTPUTS]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(sizes))
        self.mean, self.spread = torch.from_numpy(mean), torch.from_numpy(spread)
        self.gaps = torch.from_numpy(np.diff(SCORES))
        with torch.no_grad():
            self.layers[-1].weight *= 0.3

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Centres (B, J), increments (B, J, Q - 1) and loadings (B, J)."""
        hidden = (x - self.mean) / self.spread
        for layer in self.layers[:-1]:
            hidden = nn.functional.silu(layer(hidden))
        raw = self.layers[-1](hidden).view(len(x), KNOTS, len(SCORES) + 1)
        increments = (LEAST_STEP + STEP_UNIT * nn.functional.softplus(raw[:, :, 2:] - 3.0)) * self.gaps
        return CENTRE_UNIT * raw[:, :, 1], increments, LARGEST_LOADING * torch.sigmoid(raw[:, :, 0])

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
        return cast(Tensor, (z + beyond - short).clamp(-7.5, 7.5))


def loss_of(learner: Learner, x: Tensor, future: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
    """Mean negative log score of the values at the knots, and of the copula that ties them."""
    centre, increments, loading = learner(x)
    low = learner.scores(centre, increments, future - RESOLUTION)
    high = learner.scores(centre, increments, future + RESOLUTION)
    marginal = -_log_interval(low, high) + math.log(2 * RESOLUTION)
    z = (0.5 * (low + high)).detach().clamp(-3.5, 3.5)
    own = 1.0 - loading**2
    shared = 1.0 + (loading**2 / own).sum(1)
    quad = (z**2 / own).sum(1) - ((loading * z / own).sum(1)) ** 2 / shared
    copula = 0.5 * (torch.log(own).sum(1) + torch.log(shared) + quad - (z**2).sum(1))
    return marginal.mean(1)[keep].mean(), copula[keep].mean()


def _log_interval(low: Tensor, high: Tensor) -> Tensor:
    """log(Phi(high) - Phi(low)), stable in both tails."""
    flip = (low + high) > 0
    a, b = torch.where(flip, -low, high), torch.where(flip, -high, low)
    top, under = torch.special.log_ndtr(a), torch.special.log_ndtr(b)
    return top + torch.log1p(-torch.exp((under - top).clamp(max=-1e-6)))


def train(steps: int, seed: int) -> dict[str, Floats]:
    """Arrays of the trained network, ready for `numpy.savez`."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    sample = np.concatenate([sample_batch(rng).features_BF for _ in range(40)])
    learner = Learner(sample.mean(axis=0), sample.std(axis=0) + 0.02)
    optimizer = torch.optim.AdamW(learner.parameters(), lr=PEAK_RATE, weight_decay=1e-4)
    seen, start = [], time.process_time()
    for step in range(steps):
        rate = PEAK_RATE * min(1.0, (step + 1) / 300) * 0.5 * (1 + math.cos(math.pi * step / steps)) + 1e-6
        for group in optimizer.param_groups:
            group["lr"] = rate
        batch = sample_batch(rng)
        tensors = (torch.from_numpy(a) for a in (batch.features_BF, batch.future_BJ, batch.keep_B))
        marginal, copula = loss_of(learner, *tensors)
        optimizer.zero_grad()
        (marginal + 0.3 * copula).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(learner.parameters(), 1.0)
        optimizer.step()
        seen.append((marginal.item(), copula.item()))
        if (step + 1) % 1000 == 0:
            means = np.mean(seen[-1000:], axis=0)
            print(
                f"step {step + 1}: log score {-means[0]:.4f}, copula {-means[1]:.4f}, {time.process_time() - start:.0f} CPU s",
                flush=True,
            )
    return _arrays(learner)


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
    np.savez_compressed(arguments.out, allow_pickle=False, **train(arguments.steps, arguments.seed))


if __name__ == "__main__":
    main()
