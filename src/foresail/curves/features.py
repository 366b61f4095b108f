"""What the posterior sees of a trial: its curve so far in numbers that do not depend on the step unit.

Differences are told twice: as they are, and in units of how much the curve has been moving lately, so that a
plateau that stands within a thousandth is seen as sharply as a steep start. Letters: C trials, T observed points
(padded), F features, P positions.
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
LEAST_UNIT = 1e-4  # no curve is taken to move less than this
YOUTH = 0.2  # how far a curve of one point may go; falls with the square of their number
FARTHEST_FEATURE = 6.0
_PLACES = np.arange(POSITIONS) / (POSITIONS - 1.0)


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
    """What a curve alone says: features (C, F'), the level (C,) that forecasts are relative to, and the unit (C,)
    in which they are."""

    columns: Floats
    level: Floats
    unit: Floats


def told(alone: Summary, context: Context) -> Floats:
    """The features of curves, (C, F), not yet standardised, with what the study says of them."""
    known = 1.0 / (1.0 + (context.level_sd / 0.25) ** 2)
    weight, apart = context.gain_weight, context.level - alone.level
    columns = np.empty((len(alone.level), alone.columns.shape[1] + 10), dtype=np.float32)
    columns[:, :-10] = alone.columns
    heard = columns[:, -10:]
    heard[:, 0] = np.arcsinh(apart / alone.unit) * known
    heard[:, 1] = apart * known
    heard[:, 2] = known
    heard[:, 3] = np.log(np.minimum(context.level_sd, 1.0) + 0.01) / 2
    heard[:, 4] = np.arcsinh(context.gain / alone.unit) * weight
    heard[:, 5] = context.gain * weight
    heard[:, 6] = np.log(context.gain_sd + 1e-3) * weight / 2
    heard[:, 7] = np.log((context.gain_sd + 1e-4) / alone.unit) * weight / 2
    heard[:, 8] = weight
    heard[:, 9] = np.log(context.peers) / 4
    np.minimum(heard, FARTHEST_FEATURE, out=heard)
    np.maximum(heard, -FARTHEST_FEATURE, out=heard)
    return columns


def summary(prefixes: Prefixes) -> Summary:
    """The features that a curve has by itself."""
    p = _pad(prefixes)
    steps, values, count, end = p.steps_CT, p.values_CT, p.count_C, p.end_C
    rows = np.arange(len(count))
    empty = count == 0
    n = np.maximum(count, 1)
    last = np.where(empty, EMPTY_LEVEL, values[rows, n - 1])
    last_step = np.where(empty, 0.0, steps[rows, n - 1])
    apart_CP = _along(steps, values, n)[:, :-1] - last[:, None]
    apart_CP[empty] = 0.0
    motion = _Motion.of(values, n)
    best, best_step, low = _extremes(steps, values, n, empty)
    tail = np.where(empty, EMPTY_LEVEL, motion.tail)
    unit = LEAST_UNIT + motion.late + np.abs(motion.moved) + YOUTH / (count + 1.0) ** 2
    remaining = np.maximum(end - last_step, 1.0)
    going = motion.moved / np.maximum((n + 3) // 4, 1) * remaining
    columns = np.empty((len(count), 2 * POSITIONS + 18), dtype=np.float32)
    columns[:, : POSITIONS - 1] = np.arcsinh(apart_CP / unit[:, None])
    columns[:, POSITIONS - 1 : 2 * POSITIONS - 2] = apart_CP
    rest = columns[:, 2 * POSITIONS - 2 :]
    rest[:, 0], rest[:, 1] = last, best - last
    rest[:, 2], rest[:, 3], rest[:, 4] = best - last, tail - last, going
    rest[:, 2:5] /= unit[:, None]
    np.arcsinh(rest[:, 2:5], out=rest[:, 2:5])
    rest[:, 5] = (last_step - best_step) / np.maximum(last_step, 1.0)
    rest[:, 6] = np.tanh(going * 2)
    rest[:, 7], rest[:, 8], rest[:, 9], rest[:, 10] = motion.late + 1e-4, motion.whole + 1e-4, best - low + 1e-4, unit
    np.log(rest[:, 7:11], out=rest[:, 7:11])
    rest[:, 7:11] *= 0.5
    rest[:, 7:11] += 2.0
    rest[:, 11] = motion.roughness
    rest[:, 12] = np.minimum(n, 3) / 3.0
    rest[:, 13] = empty
    rest[:, 14] = last_step / end
    rest[:, 15], rest[:, 16] = n, np.minimum(np.maximum(end, 4.0), 200.0)
    rest[:, 17], rest[:, 18] = remaining, (last_step + 1) / end
    np.log(rest[:, 15:19], out=rest[:, 15:19])
    rest[:, 15:19] /= 3.0
    rest[:, 19] = np.log(1.0 - np.minimum(rest[:, 14], 0.999))
    np.minimum(columns, FARTHEST_FEATURE, out=columns)
    np.maximum(columns, -FARTHEST_FEATURE, out=columns)
    return Summary(columns, last, unit)


def _pad(p: Prefixes) -> Prefixes:
    if p.values_CT.shape[1] > 0:
        return p
    one = np.ones((len(p.count_C), 1))
    return Prefixes(one, one * EMPTY_LEVEL, p.count_C, p.end_C)


def _along(steps: Floats, values: Floats, n: NDArray[np.int64]) -> Floats:
    """Values at log-spaced steps from the first to the last observed, (C, P)."""
    rows = np.arange(len(n))[:, None]
    first = np.maximum(steps[:, :1], 0.25)
    wanted = first * (np.maximum(steps[rows, n[:, None] - 1], first) / first) ** _PLACES
    reach = wanted * (1 + 1e-9)
    padded = np.where(np.arange(steps.shape[1]) < n[:, None], steps, np.inf)
    if len(n) <= _FEW:
        index = (padded[:, None, :] <= reach[:, :, None]).sum(axis=2) - 1
    else:  # without the large temporary
        index = np.empty(wanted.shape, dtype=np.int64)
        for j in range(POSITIONS):
            index[:, j] = (padded <= reach[:, j : j + 1]).sum(axis=1) - 1
    index = np.maximum(np.minimum(index, n[:, None] - 1), 0)
    after = np.minimum(index + 1, n[:, None] - 1)
    left = steps[rows, index]
    part = (wanted - left) / np.maximum(steps[rows, after] - left, 1e-9)
    part = np.minimum(np.maximum(part, 0.0), 1.0)
    low = values[rows, index]
    result: Floats = low + part * (values[rows, after] - low)
    return result


_FEW = 64


def _extremes(
    steps: Floats, values: Floats, n: NDArray[np.int64], empty: NDArray[np.bool_]
) -> tuple[Floats, Floats, Floats]:
    """Best value, its step, and the lowest value, (C,) each."""
    rows, ahead = np.arange(len(n)), np.arange(values.shape[1]) >= n[:, None]
    at = np.where(ahead, -np.inf, values).argmax(axis=1)
    best, best_step, low = values[rows, at], steps[rows, at], np.where(ahead, np.inf, values).min(axis=1)
    best[empty] = low[empty] = EMPTY_LEVEL
    best_step[empty] = 0.0
    return best, best_step, low


@dataclass(frozen=True, slots=True)
class _Motion:
    """How a curve has been moving, (C,) each: mean of the last quarter of its points, and how much more that is than of
    the quarter before; size of the noise from second differences, late and over the whole; how white it looks."""

    tail: Floats
    moved: Floats
    late: Floats
    whole: Floats
    roughness: Floats

    @staticmethod
    def of(values: Floats, n: NDArray[np.int64]) -> _Motion:
        trials, width = values.shape
        first = values[:, 1:] - values[:, :-1]
        running = np.zeros((3, trials, width + 1))  # sums of values, of their differences' sizes, and of second ones
        np.cumsum(values, axis=1, out=running[0, :, 1:])
        np.cumsum(np.abs(first), axis=1, out=running[1, :, 1:width])
        if width > 2:
            np.cumsum(np.abs(first[:, 1:] - first[:, :-1]), axis=1, out=running[2, :, 1 : width - 1])
        quarter, half = (n + 3) // 4, np.maximum(n // 2 - 1, 0)
        ends = np.empty((2, len(_OF_WHAT), trials), dtype=np.int64)  # the means are of values[low:high]
        low, high = ends
        low[0], low[1], low[2], low[3], low[4] = n - quarter, n - 2 * quarter, half, 0, half
        high[0], high[1], high[2], high[3], high[4] = n, n - quarter, n - 2, n - 2, n - 1
        np.maximum(low, 0, out=low)
        np.maximum(high, low, out=high)
        sums = running[_OF_WHAT, np.arange(trials), ends]
        tail, before, late, whole, steps = (sums[1] - sums[0]) / np.maximum(high - low, 1)
        enough = n >= 3
        late, whole = np.where(enough, late * 0.51, 0.02), np.where(enough, whole * 0.51, 0.02)
        roughness = np.where(enough, np.log((late + 1e-4) / (steps + 1e-4)), 0.0)
        return _Motion(tail, (tail - before) * enough, late, whole, roughness)


_OF_WHAT = np.array([[0], [0], [2], [2], [1]])
