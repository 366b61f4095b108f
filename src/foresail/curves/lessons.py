"""What the network learns from: synthetic studies, cut and shown as the product would show them.

Every trial is cut at a random step. What has been seen gives the study's scale and the features; the final
value with noise stands for what neighbours would say; the gains of finished peers are what they were. What is
finished is context and not a question. Letters: G studies, C trials of a study, B = G C trials of a batch,
T steps, F features, J knots.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from foresail.curves.features import NO_LEVEL_SD, Context, Prefixes, summary, told
from foresail.curves.network import knot_lags
from foresail.curves.peers import nearness, weighed
from foresail.curves.prior import DIVERGED, sample_study
from foresail.curves.scale import Ends, Scale, fit_scale

Floats = NDArray[Any]

STUDIES, TRIALS, CUTS = 8, 64, 2


@dataclass(frozen=True, slots=True)
class Batch:
    """One training batch: standardised later. `future_BJ` is relative to `level_B`; `unit_B` is what the trial's
    forecast is measured in."""

    features_BF: Floats
    future_BJ: Floats
    unit_B: Floats
    keep_B: NDArray[np.bool_]
    values_BT: Floats  # the whole curves, internal units
    count_B: NDArray[np.int64]
    level_B: Floats


def sample_batches(rng: Generator, longest: int = 120) -> Iterator[Batch]:
    """Without end: batches of trials of a few studies; each study is cut in `CUTS` different ways."""
    while True:
        steps = int(np.exp(rng.uniform(np.log(4), np.log(longest))))
        raw = np.stack([sample_study(rng, TRIALS, steps) for _ in range(STUDIES)])
        for _ in range(CUTS):
            yield cut_batch(rng, raw)


def cut_batch(rng: Generator, raw: Floats) -> Batch:
    """Each trial cut at a random step; what is finished is context and not a question."""
    steps = raw.shape[2]
    group = int(rng.choice([1, 2, 4, 8, 16, 32, 64], p=[0.13, 0.05, 0.07, 0.10, 0.15, 0.22, 0.28]))
    raw = raw[:, rng.permutation(raw.shape[1])].reshape(-1, group, steps)
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
    alone = summary(prefixes)
    lags = np.rint(knot_lags((steps - flat_count).astype(float))).astype(np.int64)
    at = np.minimum(flat_count[:, None] + lags, steps) - 1
    future = np.take_along_axis(flat_values, at, axis=1) - alone.level[:, None]
    return Batch(
        features_BF=told(alone, context),
        future_BJ=future.astype(np.float32),
        unit_B=alone.unit.astype(np.float32),
        keep_B=~finished.reshape(-1),
        values_BT=flat_values,
        count_B=flat_count,
        level_B=alone.level,
    )


def _cuts(rng: Generator, shape: tuple[int, ...], steps: int, finished: NDArray[np.bool_]) -> NDArray[np.int64]:
    share = np.exp(rng.uniform(np.log(0.02), np.log(0.99), shape))
    count = np.clip(np.rint(steps * share), 1, steps - 1).astype(np.int64)
    count[rng.random(shape) < 0.06] = 0
    return np.where(finished, steps, count)


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
    """Mean and sd of what finished peers gained from each trial's step to the end, and how far to trust it, (G, C)
    each; peers count by how near they stood (`peers.nearness`)."""
    at = np.clip(count - 1, 0, inner.shape[2] - 1)
    stood_GCD = np.take_along_axis(inner.transpose(0, 2, 1), at[:, :, None], axis=1)  # of each peer at the trial's step
    own = np.where(count > 0, np.take_along_axis(inner, at[:, :, None], axis=2)[:, :, 0], np.nan)
    weight = nearness(stood_GCD - own[:, :, None]) * finished[:, None, :]
    return weighed(inner[:, None, :, -1] - stood_GCD, weight)
