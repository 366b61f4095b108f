"""Observed points of many trials in padded arrays, growing in place.

The arrays are views of larger ones, so that a new trial costs the same however many there are; steps take four bytes
for as long as that loses nothing. Rules: rows are sorted by step, hold finite values only, and are oriented (higher is
better). A row longer than `LONGEST` is thinned: the older half loses every second point. The best, worst, first and
latest value are kept apart and are never lost. Letters: C trials, T points.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foresail.curves.scale import Ends
from foresail.errors import CallerError

Floats = NDArray[Any]

LONGEST = 256
_FEW = 2  # trials that are quicker to take one by one
LARGEST = 1e100  # in size: finite values are held within it, so that differences stay finite


class History:
    """All points of a study. `extend` costs the same however many trials there are."""

    def __init__(self, sign: float, trials: int, width: int = 8) -> None:
        self.sign = sign
        self._steps: Floats = np.zeros((trials, width), dtype=np.float32)
        self._values: Floats = np.zeros((trials, width))
        self._numbers = np.zeros((3, trials), dtype=np.int64)
        self._lost = np.zeros(trials, dtype=np.bool_)
        self._ends = np.full((4, trials), np.nan)
        self._show(trials)

    def _show(self, trials: int) -> None:
        """The public arrays: of so many trials."""
        self.steps, self.values = self._steps[:trials], self._values[:trials]
        self.count = self._numbers[0, :trials]
        self.total = self._numbers[1, :trials]  # points before thinning
        self._gap = self._numbers[2, :trials]  # trailing values that were not numbers
        self.lost = self._lost[:trials]  # diverged for good, as far as is known
        self.ends = Ends(*self._ends[:, :trials])

    def __len__(self) -> int:
        return len(self.count)

    @property
    def last_step(self) -> Floats:
        """Step of the latest finite point, (C,); 0 where there is none."""
        if not len(self):
            return np.zeros(0)
        at = np.maximum(self.count - 1, 0)
        return np.where(self.count > 0, self.steps[np.arange(len(self)), at], 0.0).astype(np.float64)

    @property
    def first_step(self) -> Floats:
        """Step of the first finite point, (C,); 0 where there is none."""
        return np.where(self.count > 0, self.steps[:, 0], 0.0).astype(np.float64)

    def extend(self, trial: int, steps: ArrayLike, values: ArrayLike) -> None:
        """Adds points to a trial, which may be one more than there are.

        Raises:
            CallerError: different lengths, or a trial number that leaves a hole.
        """
        new_steps, raw = _pair(trial, steps, values)
        new_values = _oriented(raw, self.sign)
        if trial == len(self):
            self._grow()
        if not 0 <= trial < len(self):
            raise CallerError(f"trial {trial} of {len(self)}", allowed=f"0 to {len(self)} (a new one)")
        if len(raw) == 1 and self._appended(trial, float(new_steps[0]), float(new_values[0])):
            return
        self._note_losses(trial, new_values)
        keep = np.isfinite(new_values) & np.isfinite(new_steps)
        new_steps, new_values = new_steps[keep], new_values[keep]
        if not len(new_steps):
            return
        n = int(self.count[trial])
        self.total[trial] += len(new_steps)
        if (n and new_steps[0] <= self.steps[trial, n - 1]) or (np.diff(new_steps) <= 0).any():
            new_steps, new_values = self._merged(trial, new_steps, new_values)
            n = 0
        self._write(trial, n, new_steps, new_values)

    def _appended(self, trial: int, step: float, value: float) -> bool:
        """The usual case, quickly: one finite point after the others; False if it is another."""
        n = self.count[trial]
        if not (math.isfinite(step) and math.isfinite(value) and n < self.steps.shape[1]):
            return False
        if (n and step <= self.steps[trial, n - 1]) or (self._steps.dtype == np.float32 and np.float32(step) != step):
            return False
        self.steps[trial, n], self.values[trial, n] = step, value
        self.count[trial] = n + 1
        self.total[trial] += 1
        self._gap[trial], self.lost[trial] = 0, False
        first, _, high, low = self._ends[:, trial] if n else (value,) * 4
        self._ends[:, trial] = first, value, max(high, value), min(low, value)
        return True

    def _write(self, trial: int, n: int, steps: Floats, values: Floats) -> None:
        if n + len(steps) > LONGEST:
            steps = np.concatenate([self.steps[trial, :n], steps])
            values = np.concatenate([self.values[trial, :n], values])
            n = 0
            while len(steps) > LONGEST:
                half = len(steps) // 2
                kept = np.concatenate([np.arange(0, half, 2), np.arange(half, len(steps))])
                steps, values = steps[kept], values[kept]
        m = n + len(steps)
        if m > self.steps.shape[1]:
            self._widen(m)
        self._hold(steps)
        self.steps[trial, n:m], self.values[trial, n:m] = steps, values
        self.count[trial] = m
        ends = self.ends
        ends.first[trial], ends.last[trial] = self.values[trial, 0], values[-1]
        ends.high[trial] = np.fmax(ends.high[trial], values.max())
        ends.low[trial] = np.fmin(ends.low[trial], values.min())

    def _merged(self, trial: int, steps: Floats, values: Floats) -> tuple[Floats, Floats]:
        """Old and new points in order of step; a step seen twice keeps its newest value."""
        n = int(self.count[trial])
        steps = np.concatenate([self.steps[trial, :n], steps])
        values = np.concatenate([self.values[trial, :n], values])
        unique, last = np.unique(steps[::-1], return_index=True)
        return unique, values[::-1][last]

    def _note_losses(self, trial: int, values: Floats) -> None:
        """A trial is lost once its latest value is infinite, or two in a row are not numbers."""
        if not len(values):
            return
        finite = np.flatnonzero(np.isfinite(values))
        trailing = len(values) - 1 - finite[-1] if len(finite) else len(values) + self._gap[trial]
        self._gap[trial] = trailing
        self.lost[trial] = trailing >= 2 or (trailing == 1 and np.isinf(values[-1]))

    def _grow(self) -> None:
        """One more trial."""
        trials = len(self) + 1
        if trials > len(self._lost):
            more = 8 + trials // 8
            self._steps, self._values = (np.pad(a, ((0, more), (0, 0))) for a in (self._steps, self._values))
            self._numbers, self._lost = np.pad(self._numbers, ((0, 0), (0, more))), np.pad(self._lost, (0, more))
            self._ends = np.pad(self._ends, ((0, 0), (0, more)), constant_values=np.nan)
        self._show(trials)

    def _widen(self, width: int) -> None:
        more = max(width, min(self.steps.shape[1] * 5 // 4, LONGEST)) - self.steps.shape[1]
        self._steps, self._values = (np.pad(a, ((0, 0), (0, more))) for a in (self._steps, self._values))
        self._show(len(self))

    def _hold(self, steps: Floats) -> None:
        """Room for the digits of these steps."""
        if self._steps.dtype == np.float32 and (steps.astype(np.float32) != steps).any():
            self._steps = self._steps.astype(np.float64)
            self._show(len(self))


def gather(sign: float, steps: Sequence[ArrayLike], values: Sequence[ArrayLike]) -> History:
    """The history of whole studies at once: quick for ten thousand trials.

    Raises:
        CallerError: `steps` and `values` do not pair up.
    """
    if len(steps) != len(values):
        raise CallerError(f"{len(steps)} arrays of steps for {len(values)} of values", allowed="one of each a trial")
    pairs = [_pair(i, s, v) for i, (s, v) in enumerate(zip(steps, values, strict=True))]
    lengths = np.array([len(s) for s, _ in pairs], dtype=np.int64)
    history = History(sign, len(pairs), width=int(min(max(lengths.max(initial=1), 1), LONGEST)))
    if len(pairs) <= _FEW or not lengths.any():
        for trial, pair in enumerate(pairs):
            history.extend(trial, *pair)
        return history
    flat_steps, flat_values = (np.concatenate(side) for side in zip(*pairs, strict=True))
    flat_values = _oriented(flat_values, sign)
    owner = np.repeat(np.arange(len(pairs)), lengths)
    usable = np.isfinite(flat_values) & np.isfinite(flat_steps)
    ordered = np.diff(flat_steps, prepend=-np.inf) > 0
    ordered[np.cumsum(lengths)[:-1][lengths[1:] > 0]] = True
    simple = np.ones(len(pairs), dtype=np.bool_)
    simple[owner[~(usable & ordered)]] = False
    simple &= (lengths <= LONGEST) & (lengths > 0)
    _fill(history, simple, lengths, owner, flat_steps, flat_values)
    for i in np.flatnonzero(~simple):
        history.extend(int(i), *pairs[i])
    return history


def _fill(h: History, simple: NDArray[np.bool_], lengths: NDArray[np.int64], owner: NDArray[np.int64],
          steps: Floats, values: Floats) -> None:  # fmt: skip
    """Rows that need no care, all in one go."""
    h._hold(steps)
    start = np.cumsum(lengths) - lengths
    column = np.arange(len(owner)) - start[owner]
    of_simple = simple[owner]
    h.steps[owner[of_simple], column[of_simple]] = steps[of_simple]
    h.values[owner[of_simple], column[of_simple]] = values[of_simple]
    rows = np.flatnonzero(simple)
    if not len(rows):
        return
    n = lengths[rows]
    h.count[rows] = h.total[rows] = n
    known = np.arange(h.values.shape[1]) < n[:, None]
    block = h.values[rows]
    h.ends.first[rows], h.ends.last[rows] = block[:, 0], block[np.arange(len(rows)), n - 1]
    h.ends.high[rows] = np.where(known, block, -np.inf).max(axis=1)
    h.ends.low[rows] = np.where(known, block, np.inf).min(axis=1)


def _pair(trial: int, steps: ArrayLike, values: ArrayLike) -> tuple[Floats, Floats]:
    s, v = _line(steps), _line(values)
    if len(s) != len(v):
        raise CallerError(f"trial {trial}: {len(s)} steps for {len(v)} values", allowed="as many steps as values")
    return s, v


def _line(given: ArrayLike) -> Floats:
    if type(given) is np.ndarray and given.ndim == 1 and given.dtype == np.float64:
        return given  # ten thousand of them are nearly always this
    return np.asarray(given, dtype=np.float64).reshape(-1)


def _oriented(values: Floats, sign: float) -> Floats:
    """Higher is better, finite values held within `LARGEST`; what is not finite stays so."""
    oriented = values * sign
    held = np.minimum(np.maximum(oriented, -LARGEST), LARGEST)
    return np.where(np.isfinite(oriented), held, oriented)
