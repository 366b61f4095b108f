"""The prior: whole synthetic studies, made from nothing but a seed.

A study is a set of trials that share what trials of one task share: where they start, how good the best
get, the schedule, the noise of the metric, its resolution and its curvature (a loss is a bent accuracy).
Within a study each trial has its own shape, height and luck. The posterior network is trained on these
and on nothing else, so its weights carry nobody's data. Letters: C trials of a study, T steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from foresail.curves.families import FAMILIES, log_uniform, rewarded

Floats = NDArray[Any]

REWARDS = 0.06  # share of the studies that are of agents
DIVERGED = -4.0  # raw level of a trial that has blown up; the scale puts it on the floor


def sample_study(rng: Generator, trials: int, steps: int) -> Floats:
    """Raw curves of one study, (C, T), higher is better; about 0 at the start and 1 for a good trial."""
    t = np.arange(1.0, steps + 1.0)
    if rng.random() < REWARDS:
        return _accidents(rng, _rewards(rng, t, trials), t)
    shapes = _shapes(rng, t, trials)
    start, height = _levels(rng, trials)
    curves = start + (height - start) * shapes
    curves = curves + _noise(rng, curves, t)
    curves = _bend(rng, curves)
    return _accidents(rng, curves, t)


def _shapes(rng: Generator, t: Floats, trials: int) -> Floats:
    """Each study has its favourite families; the shared shares pull it back to the middle."""
    shares = np.array([share for _, share in FAMILIES])
    own = rng.dirichlet(shares * 4.0)
    counts = rng.multinomial(trials, 0.5 * shares / shares.sum() + 0.5 * own)
    rows = [family(t, float(t[-1]), int(n), rng) for (family, _), n in zip(FAMILIES, counts, strict=True) if n]
    shapes = np.concatenate(rows)[rng.permutation(trials)]
    result: Floats = shapes / np.maximum(np.abs(shapes).max(axis=1, keepdims=True), 1.0)
    return result


def _rewards(rng: Generator, t: Floats, trials: int) -> Floats:
    """Scores of agents: a ceiling at 1 that part of them would pass if they could, and noise that is largest half-way
    up, where a lucky episode counts."""
    height = np.maximum(rng.uniform(0.4, 1.6) + rng.uniform(0.1, 0.6) * rng.normal(size=(trials, 1)), 0.02)
    curves = height * rewarded(t, float(t[-1]), trials, rng)
    curves = curves + log_uniform(rng, 0.003, 0.05, 1) * rng.normal(size=(trials, 1))
    half_way = 0.03 + np.sqrt(np.maximum(curves * (1.1 - curves), 0.0))
    level = log_uniform(rng, 0.02, 0.35, 1) * np.exp(rng.normal(0.0, 0.4, (trials, 1)))
    noise = rng.normal(size=curves.shape) + rng.uniform(0.0, 1.5) * _slow(rng, t, trials)
    result: Floats = np.minimum(curves + level * half_way * noise, 1.0)
    return result


def _levels(rng: Generator, trials: int) -> tuple[Floats, Floats]:
    """Where trials start and how high they get, (C, 1) each: broad, or a small gain over the start."""
    spread = float(log_uniform(rng, 0.005, 0.5, 1)[0, 0])
    start = spread * rng.normal(size=(trials, 1))
    own = float(log_uniform(rng, 0.03, 0.5, 1)[0, 0])
    height = rng.normal(0.8, 0.2) + own * np.minimum(rng.normal(size=(trials, 1)), 1.5)
    kind = rng.random((trials, 1))
    small_share = rng.uniform(0.1, 0.6)
    slight = start + rng.normal(0.12, 0.15, (trials, 1))
    tiny = start + rng.normal(0.03, 0.05, (trials, 1))
    height = np.where(kind < 0.5 * small_share, slight, np.where(kind < small_share, tiny, height))
    return start, height


def _noise(rng: Generator, curves: Floats, t: Floats) -> Floats:
    """White noise, which may grow with the level, fade or have heavy tails; and drift, rough or smooth.

    A part of the studies has next to no white noise, as large test sets and fitted surrogates have.
    """
    trials, steps = curves.shape
    quiet = rng.random() < 0.3
    shared = log_uniform(rng, 0.0001, 0.001, 1) if quiet else log_uniform(rng, 0.0007, 0.08, 1)
    white = shared * np.exp(rng.normal(0.0, rng.uniform(0.1, 1.3), (trials, 1))) * rng.normal(size=(trials, steps))
    if rng.random() < 0.25:
        white *= np.sqrt(0.15 + 3.0 * np.exp(-(t - 1.0) / (rng.uniform(0.05, 0.3) * steps)))
    if rng.random() < 0.3:
        white *= 0.2 + 1.5 * np.abs(curves) * rng.uniform(0.5, 4.0)
    if rng.random() < 0.15:
        white *= np.minimum(np.abs(rng.standard_t(3.0, size=(trials, steps))), 8.0) * 0.8
    size = log_uniform(rng, 0.0003, 0.06, 1) * np.exp(rng.normal(0.0, rng.uniform(0.2, 1.0), (trials, 1)))
    drift = _smooth(rng, t, trials) if rng.random() < 0.5 else _slow(rng, t, trials)
    result: Floats = white + size * drift * (rng.random((trials, 1)) < rng.uniform(0.3, 1.0))
    return result


def _slow(rng: Generator, t: Floats, trials: int) -> Floats:
    """An Ornstein-Uhlenbeck path of unit variance, in log time or in time, one kind a study."""
    clock = np.log(t + 0.5) if rng.random() < 0.6 else t / (len(t) * rng.uniform(0.03, 0.4))
    keep = np.exp(-np.diff(clock, prepend=clock[0]))
    path = rng.normal(size=(trials, len(t)))
    for j in range(1, len(t)):
        path[:, j] = keep[j] * path[:, j - 1] + np.sqrt(1.0 - keep[j] ** 2) * path[:, j]
    return path


def _smooth(rng: Generator, t: Floats, trials: int) -> Floats:
    """A smooth random path of about unit variance in log time: five waves of random length and phase."""
    clock = np.log(t + 0.5 if rng.random() < 0.7 else t / 4.0 + 1.0)
    path = np.zeros((trials, len(t)))
    for _ in range(5):
        path += np.sin(rng.uniform(0.2, 3.0, (trials, 1)) * clock + rng.uniform(0, 2 * np.pi, (trials, 1)))
    result: Floats = path * np.sqrt(2.0 / 5.0)
    return result


def _bend(rng: Generator, curves: Floats) -> Floats:
    """Curvature of the metric (loss-like), a ceiling, or a resolution, each for some of the studies."""
    if rng.random() < 0.5:
        bend = rng.uniform(0.3, 2.5)
        curves = (1.0 - np.exp(-bend * np.maximum(curves, -1.0))) / (1.0 - np.exp(-bend))
    if rng.random() < 0.12:
        curves = np.minimum(curves, rng.uniform(0.7, 1.1))
    if rng.random() < 0.15:
        grain = float(log_uniform(rng, 0.002, 0.03, 1)[0, 0])
        curves = np.round(curves / grain) * grain
    return curves


def _accidents(rng: Generator, curves: Floats, t: Floats) -> Floats:
    """Spikes that pass, and divergence that stays, more in some studies than in others."""
    trials, steps = curves.shape
    if rng.random() < 0.2:
        hit = rng.random((trials, steps)) < rng.uniform(0.005, 0.06)
        curves = curves - hit * log_uniform(rng, 0.05, 1.0, trials) * rng.random((trials, steps))
    lost = rng.random((trials, 1)) < rng.beta(0.4, 8.0)
    early = rng.random((trials, 1)) ** 2 * steps
    return np.where(lost & (t >= early), DIVERGED, curves)
