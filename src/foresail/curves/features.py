"""What the posterior sees of a trial: its curve so far in 70 numbers that do not depend on the step unit.

Letters: C trials, T observed points (padded), F features, P positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[Any]

POSITIONS = 14
NO_LEVEL_SD = 9.0  # standard deviation that stands for "no pseudo-observation"
EMPTY_LEVEL = 0.4  # where forecasts of trials without points are centred, in internal units


@dataclass(frozen=True, slots=True)
class Prefixes:
    """Observed parts of C curves in internal units, padded to the longest.

    Steps count from 1 in units of the trial's own spacing, so that a report each 200 iterations and a
    report each epoch look alike.
    """

    steps_CT: Floats
    values_CT: Floats
    count_C: NDArray[np.int64]
    end_C: Floats  # length of the schedule, in the same units


@dataclass(frozen=True, slots=True)
class Context:
    """What the rest of the study says about each trial; all of shape (C,).

    `level`, `level_sd`: pseudo-observation of the final value. `gain`, `gain_sd`, `gain_weight`: what
    finished trials of the study gained from this trial's step to their end, and how far to trust it (0..1).
    `peers`: trials with points.
    """

    level: Floats
    level_sd: Floats
    gain: Floats
    gain_sd: Floats
    gain_weight: Floats
    peers: Floats


def no_context(trials: int, peers: float = 1.0) -> Context:
    """The context of trials about which the study says nothing."""
    zero = np.zeros(trials)
    return Context(zero, np.full(trials, NO_LEVEL_SD), zero, zero, zero, np.full(trials, peers))


@dataclass(frozen=True, slots=True)
class Summary:
    """What a curve alone says: features (C, F'), and the level (C,) that forecasts are relative to."""

    columns: Floats
    level: Floats


def features(prefixes: Prefixes, context: Context) -> tuple[Floats, Floats]:
    """Features (C, F), not yet standardised, and the level (C,) that forecasts are relative to."""
    return told(summary(prefixes), context)


def told(alone: Summary, context: Context) -> tuple[Floats, Floats]:
    """The features of curves, (C, F), with what the study says of them; and their level (C,)."""
    known = 1.0 / (1.0 + (context.level_sd / 0.25) ** 2)
    weight = context.gain_weight
    heard = (
        (context.level - alone.level) * known, context.level * known, known,
        np.log(np.minimum(context.level_sd, 1.0) + 0.01) / 2,
        context.gain * weight, np.log(context.gain_sd + 0.01) * weight / 2, weight, np.log(context.peers) / 4,
    )  # fmt: skip
    columns = np.concatenate([alone.columns, np.stack(heard, axis=1)], axis=1, dtype=np.float32)
    return np.clip(columns, -6.0, 6.0, out=columns), alone.level


def summary(prefixes: Prefixes) -> Summary:
    """The features that a curve has by itself."""
    p = _pad(prefixes)
    steps, values, count = p.steps_CT, p.values_CT, p.count_C
    rows = np.arange(len(count))
    empty = count == 0
    n = np.maximum(count, 1)
    last = np.where(empty, EMPTY_LEVEL, values[rows, n - 1])
    last_step = np.where(empty, 0.0, steps[rows, n - 1])
    shape_CP = _along(steps, values, n)
    shape_CP[empty] = EMPTY_LEVEL
    noise = _Noise.of(values, n)
    best, best_step, low = _extremes(steps, values, n)
    trend, tail = _trend(values, n)
    remaining = np.maximum(p.end_C - last_step, 1.0)
    quick = (shape_CP[:, -6:-1] - last[:, None]) / (noise.late[:, None] + 0.003) * 0.1
    rest = (
        last, best - last, tail - last, (last_step - best_step) / np.maximum(last_step, 1.0),
        np.tanh(trend * remaining * 2), trend * n, np.log(noise.late + 3e-4) / 2 + 2,
        np.log(noise.whole + 3e-4) / 2 + 2, noise.roughness, np.log(best - low + 1e-3) / 2 + 1,
        np.minimum(n, 3) / 3.0, empty * 1.0, last_step / p.end_C, np.log(n) / 3,
        np.log(np.clip(p.end_C, 4.0, 200.0)) / 4, np.log(remaining) / 3, np.log((last_step + 1) / p.end_C),
    )  # fmt: skip
    shape = (shape_CP, shape_CP[:, :-1] - last[:, None], quick, np.stack(rest, axis=1))
    return Summary(np.concatenate(shape, axis=1, dtype=np.float32), last)


def _pad(p: Prefixes) -> Prefixes:
    if p.values_CT.shape[1] > 0:
        return p
    one = np.ones((len(p.count_C), 1))
    return Prefixes(one, one * EMPTY_LEVEL, p.count_C, p.end_C)


def _along(steps: Floats, values: Floats, n: NDArray[np.int64]) -> Floats:
    """Values at log-spaced steps from the first to the last observed, (C, P)."""
    rows = np.arange(len(n))[:, None]
    first, final = steps[:, :1], steps[rows, n[:, None] - 1]
    first = np.maximum(first, 0.25)
    wanted = first * (np.maximum(final, first) / first) ** (np.arange(POSITIONS) / (POSITIONS - 1.0))
    padded = np.where(np.arange(steps.shape[1]) < n[:, None], steps, np.inf)
    index = np.empty(wanted.shape, dtype=np.int64)
    for j in range(POSITIONS):
        index[:, j] = (padded <= wanted[:, j : j + 1] * (1 + 1e-9)).sum(axis=1) - 1
    index = np.clip(index, 0, n[:, None] - 1)
    after = np.minimum(index + 1, n[:, None] - 1)
    left, right = steps[rows, index], steps[rows, after]
    part = np.clip((wanted - left) / np.maximum(right - left, 1e-9), 0.0, 1.0)
    result: Floats = values[rows, index] * (1 - part) + values[rows, after] * part
    return result


def _extremes(steps: Floats, values: Floats, n: NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
    seen = np.arange(values.shape[1]) < n[:, None]
    at = np.where(seen, values, -np.inf).argmax(axis=1)
    rows = np.arange(len(n))
    return values[rows, at], steps[rows, at], np.where(seen, values, np.inf).min(axis=1)


def _mean_between(total: Floats, low: NDArray[np.int64], high: NDArray[np.int64]) -> Floats:
    """Means of values[low:high] from their running sums (a leading zero column), 0 where empty."""
    rows = np.arange(len(low))
    result: Floats = (total[rows, high] - total[rows, low]) / np.maximum(high - low, 1)
    return result


def _running(values: Floats) -> Floats:
    total = np.zeros((values.shape[0], values.shape[1] + 1))
    np.cumsum(values, axis=1, out=total[:, 1:])
    return total


def _trend(values: Floats, n: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Slope a point between the last two quarters, and the mean of the last."""
    total = _running(values)
    k = (n + 3) // 4
    tail = _mean_between(total, n - k, n)
    before = _mean_between(total, np.maximum(n - 2 * k, 0), np.maximum(n - k, 1))
    return (tail - before) / k * (n >= 3), tail


@dataclass(frozen=True, slots=True)
class _Noise:
    """Size of the noise from second differences, late and over the whole, and how white it looks."""

    late: Floats
    whole: Floats
    roughness: Floats

    @staticmethod
    def of(values: Floats, n: NDArray[np.int64]) -> _Noise:
        trials, width = values.shape
        if width < 3:
            return _Noise(np.full(trials, 0.02), np.full(trials, 0.02), np.zeros(trials))
        first = np.abs(np.diff(values, axis=1))
        second = np.abs(np.diff(values, n=2, axis=1))
        last = np.maximum(n - 2, 0)
        enough = n >= 3
        total, half = _running(second), np.maximum(n // 2 - 1, 0)
        late = np.where(enough, _mean_between(total, half, np.maximum(last, half)) * 0.51, 0.02)
        whole = np.where(enough, _mean_between(total, np.zeros_like(n), last) * 0.51, 0.02)
        steps = _mean_between(_running(first), half, np.maximum(n - 1, half))
        return _Noise(late, whole, np.where(enough, np.log((late + 1e-3) / (steps + 1e-3)), 0.0))
