"""Shapes of learning curves, without level or noise: what the prior draws from.

Each family is a function `(t, end, rng) -> shape`, with `t` the steps (T,), `end` the length of the
schedule, and the result (B, T): 0 at the start, about 1 at the usual height, drawn afresh for each of the
B rows. The rises (power, stretched exponential, Hill) are those of Domhan et al. (IJCAI 2015); the rest is
what schedules, over-training and instability do to them. Letters: B curves, T steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Floats = NDArray[Any]
Family = Callable[[Floats, float, int, Generator], Floats]


def log_uniform(rng: Generator, low: float | Floats, high: float | Floats, rows: int) -> Floats:
    """Shape (rows, 1): between `low` and `high`, uniform in the logarithm; half of the time the rows of a call lie
    in one part of the range, as trials of one task are of a kind."""
    u = rng.random((rows, 1))
    if rng.random() < 0.5:
        u = rng.random() + (u - rng.random()) * rng.uniform(0.1, 0.8)
        u = 1.0 - np.abs(1.0 - np.abs(u))  # folded back at both ends
    result: Floats = np.exp(np.log(low) + u * (np.log(high) - np.log(low)))
    return result


def rise(t: Floats, tau: Floats, power: Floats, kind: Floats) -> Floats:
    """From 0 towards 1 with time scale `tau`; `kind` (B, 1): 0 power law, 1 stretched exponential, 2 Hill."""
    x = np.maximum(t, 0.0) / tau
    log_x = np.log(x + 1e-12)
    grown = np.exp(np.minimum(power * log_x, 60.0))
    law = 1.0 - np.exp(-power * np.log1p(x))
    result: Floats = np.where(kind == 0, law, np.where(kind == 1, 1.0 - np.exp(-grown), grown / (1 + grown)))
    return result


def _any_rise(t: Floats, low: float, high: float, rows: int, rng: Generator, steep: float = 0.3) -> Floats:
    kind = rng.integers(0, 3, (rows, 1)).astype(float)
    return rise(t, log_uniform(rng, low, high, rows), log_uniform(rng, steep, 3.0, rows), kind)


def plain(t: Floats, end: float, rows: int, rng: Generator) -> Floats:
    """A rise that slows down: the ordinary curve."""
    return _any_rise(t, 0.2, 3.0 * end, rows, rng)


def two_paces(t: Floats, end: float, rows: int, rng: Generator) -> Floats:
    """Most of the gain at once, the rest slowly: what many classifiers do."""
    share = rng.uniform(0.3, 0.98, (rows, 1))
    fast = _any_rise(t, 0.1, 0.08 * end + 0.3, rows, rng, 0.5)
    return share * fast + (1.0 - share) * _any_rise(t, 0.1 * end, 3.0 * end, rows, rng, 0.5)


def accelerating(t: Floats, end: float, rows: int, rng: Generator) -> Floats:
    """Slow first, then faster, as very low learning rates and many rewards do."""
    bent = (t / end) ** log_uniform(rng, 1.0, 4.0, rows)
    middle, pace = end * rng.uniform(0.1, 1.3, (rows, 1)), end * log_uniform(rng, 0.03, 0.4, rows)
    logistic = 1.0 / (1.0 + np.exp(np.clip((middle - t) / pace, -50, 50))) - 1.0 / (1.0 + np.exp(middle / pace))
    return np.where(rng.random((rows, 1)) < 0.35, bent, logistic)


def saturated(t: Floats, end: float, rows: int, rng: Generator) -> Floats:
    """Quick, then flat for good, as of a metric that reaches its ceiling."""
    return np.minimum(_any_rise(t, 0.2, 0.3 * end, rows, rng, 0.8) * rng.uniform(1.0, 1.5, (rows, 1)), 1.0)


def flat(t: Floats, end: float, rows: int, rng: Generator) -> Floats:
    """Never learns."""
    return np.zeros((rows, len(t)))


def delayed(t: Floats, end: float, rows: int, rng: Generator) -> Floats:
    """Warm-up plateau or late bloomer: nothing, then a rise."""
    wait = log_uniform(rng, 1.0, 0.95 * end, rows)
    return _any_rise(t - wait, 0.4, end, rows, rng)


def untrained_start(t: Floats, end: float, rows: int, rng: Generator) -> Floats:
    """The first reports come before anything was learnt."""
    wait = rng.integers(1, 4, (rows, 1)).astype(float)
    return _any_rise(t - wait, 0.3, end, rows, rng)


def dropped(t: Floats, end: float, rows: int, rng: Generator) -> Floats:
    """One or two cuts of the learning rate, each followed by a quick gain; rows share the cuts."""
    gain = log_uniform(rng, 0.03, 0.8, rows)
    base = (1.0 - gain) * _any_rise(t, 0.3, end, rows, rng)
    first = end * rng.uniform(0.15, 0.95)
    settle = log_uniform(rng, 0.3, max(0.1 * end, 0.6), rows)
    base = base + gain * _after(t, first, settle)
    if rng.random() < 0.5:
        second = first + (end - first) * rng.uniform(0.2, 0.9)
        base = base + 0.35 * gain * _after(t, second, settle)
    result: Floats = base
    return result


def cosine(t: Floats, end: float, rows: int, rng: Generator) -> Floats:
    """A learning rate that decays to nothing: part of the gain comes at the very end."""
    gain = log_uniform(rng, 0.03, 0.7, rows)
    late = ((1.0 - np.cos(np.pi * np.minimum(t / end, 1.0))) / 2.0) ** log_uniform(rng, 0.7, 4.0, rows)
    return (1.0 - gain) * _any_rise(t, 0.3, end, rows, rng) + gain * late


def overfitted(t: Floats, end: float, rows: int, rng: Generator) -> Floats:
    """A rise, then a slower decline."""
    tau = log_uniform(rng, 0.3, 0.4 * end, rows)
    kind = rng.integers(0, 3, (rows, 1)).astype(float)
    up = rise(t, tau, log_uniform(rng, 0.6, 3.0, rows), kind)
    down = rise(t, tau * log_uniform(rng, 2.0, 60.0, rows), log_uniform(rng, 0.6, 2.5, rows), kind)
    result: Floats = up - log_uniform(rng, 0.02, 2.0, rows) * down
    return result


def double_descent(t: Floats, end: float, rows: int, rng: Generator) -> Floats:
    """A rise, a decline, and a second, higher rise."""
    up = _any_rise(t, 0.3, 0.15 * end, rows, rng, 0.7)
    turn = end * log_uniform(rng, 0.04, 0.7, rows)
    dip = log_uniform(rng, 0.05, 0.9, rows) * np.exp(
        -0.5 * ((t - turn) / (turn * rng.uniform(0.2, 0.6, (rows, 1)))) ** 2
    )
    result: Floats = 0.8 * up - dip + rng.uniform(0.1, 0.4, (rows, 1)) * _any_rise(t - turn, 0.5, end, rows, rng)
    return result


def two_phase(t: Floats, end: float, rows: int, rng: Generator) -> Floats:
    """A plateau half-way, then a second rise."""
    share = log_uniform(rng, 0.1, 0.95, rows)
    first = _any_rise(t, 0.3, 0.2 * end, rows, rng, 0.6)
    wait = log_uniform(rng, 2.0, 0.9 * end, rows)
    late = wait * (rng.random((rows, 1)) < 0.6)
    result: Floats = (1 - share) * first + share * _any_rise(t - late, 0.5, end, rows, rng, 0.8)
    return result


def collapsing(t: Floats, end: float, rows: int, rng: Generator) -> Floats:
    """A rise broken by a fall at a random time; most of the falls are recovered from in part or in full."""
    at = end * rng.uniform(0.05, 1.0, (rows, 1))
    fall = log_uniform(rng, 0.05, 1.5, rows) * _after(t, at, log_uniform(rng, 0.2, max(0.2 * end, 0.4), rows))
    back = rng.uniform(0.0, 1.1, (rows, 1)) * (rng.random((rows, 1)) < 0.65)
    healing = 1.0 - back * rise(
        t - at, log_uniform(rng, 1.0, 0.6 * end, rows), np.full((rows, 1), 1.2), np.ones((rows, 1))
    )
    return _any_rise(t, 0.3, end, rows, rng) - fall * healing


def wandering(t: Floats, end: float, rows: int, rng: Generator) -> Floats:
    """As rewards do: a rise with slow swings that are not noise, growing with the level."""
    base = _any_rise(t, 0.05 * end, 2.0 * end, rows, rng, 0.6)
    phase, cycles = rng.uniform(0, 2 * np.pi, (2, rows, 1)), rng.uniform(0.5, 5.0, (2, rows, 1))
    swing = np.sin(cycles[0] * 2 * np.pi * t / end + phase[0]) + 0.6 * np.sin(
        2.3 * cycles[1] * 2 * np.pi * t / end + phase[1]
    )
    result: Floats = base * (1.0 + log_uniform(rng, 0.03, 0.5, rows) * swing)
    return result


def _after(t: Floats, at: Floats | float, settle: Floats) -> Floats:
    since = np.maximum(t - at + 0.5, 0.0)
    return np.where(t >= at, 1.0 - np.exp(-since / settle), 0.0)


def rewarded(t: Floats, end: float, rows: int, rng: Generator) -> Floats:
    """As of an agent: nothing, then a steep climb towards a ceiling that many of them reach, and lapses on the way."""
    wait = end * rng.uniform(0.0, 1.0, (rows, 1)) ** 2
    kind = rng.integers(0, 3, (rows, 1)).astype(float)
    climb = rise(t - wait, log_uniform(rng, 0.03 * end, 1.5 * end, rows), log_uniform(rng, 1.0, 5.0, rows), kind)
    at, settle = end * rng.uniform(0.1, 1.0, (rows, 1)), log_uniform(rng, 0.5, max(0.15 * end, 1.0), rows)
    lapse = rng.uniform(0.1, 1.0, (rows, 1)) * (rng.random((rows, 1)) < 0.3)
    return climb * (1.0 - lapse * _after(t, at, settle) * np.exp(-np.maximum(t - at, 0.0) / (6.0 * settle)))


# Shares of the draws. The order is part of the seed.
FAMILIES: tuple[tuple[Family, float], ...] = (
    (plain, 0.17),
    (two_paces, 0.13),
    (accelerating, 0.06),
    (saturated, 0.06),
    (flat, 0.10),
    (delayed, 0.08),
    (untrained_start, 0.05),
    (dropped, 0.07),
    (cosine, 0.06),
    (overfitted, 0.08),
    (double_descent, 0.04),
    (two_phase, 0.05),
    (collapsing, 0.05),
    (wandering, 0.03),
    (rewarded, 0.04),
)
