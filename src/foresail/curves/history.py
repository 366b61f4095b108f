"""Observed points of many trials in padded arrays, growing in place.

Rules: rows are sorted by step, hold finite values only, and are oriented (higher is better). A row longer
than `LONGEST` is thinned: the older half loses every second point. The best, worst, first and latest value
are kept apart and are never lost. Letters: C trials, T points.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foresail.curves.scale import Ends
from foresail.errors import CallerError

Floats = NDArray[Any]

LONGEST = 256
LARGEST = 1e100  # in size: finite values are held within it, so that differences stay finite


class History:
    """All points of a study. `extend` costs the same however many trials there are."""

    def __init__(self, sign: float, trials: int, width: int = 8) -> None:
        self.sign = sign
        self.steps = np.zeros((trials, width))
        self.values = np.zeros((trials, width))
        self.count = np.zeros(trials, dtype=np.int64)
        self.total = np.zeros(trials, dtype=np.int64)  # points before thinning
        self.lost = np.zeros(trials, dtype=np.bool_)  # diverged for good, as far as is known
        self.ends = Ends(*(np.full(trials, np.nan) for _ in range(4)))
        self._gap = np.zeros(trials, dtype=np.int64)  # trailing values that were not numbers

    def __len__(self) -> int:
        return len(self.count)

    @property
    def last_step(self) -> Floats:
        """Step of the latest finite point, (C,); 0 where there is none."""
        if not len(self):
            return np.zeros(0)
        return np.where(self.count > 0, self.steps[np.arange(len(self)), np.maximum(self.count - 1, 0)], 0.0)

    @property
    def first_step(self) -> Floats:
        """Step of the first finite point, (C,); 0 where there is none."""
        return np.where(self.count > 0, self.steps[:, 0], 0.0)

    def extend(self, trial: int, steps: ArrayLike, values: ArrayLike) -> None:
        """Adds points to a trial, which may be one more than there are.

        Raises:
            CallerError: different lengths, or a trial number that leaves a hole.
        """
        new_steps, new_values = _pair(trial, steps, values, self.sign)
        if trial == len(self):
            self._grow(1)
        if not 0 <= trial < len(self):
            raise CallerError(f"trial {trial} of {len(self)}", allowed=f"0 to {len(self)} (a new one)")
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

    def _grow(self, trials: int) -> None:
        self.steps = np.pad(self.steps, ((0, trials), (0, 0)))
        self.values = np.pad(self.values, ((0, trials), (0, 0)))
        self.count, self.total, self._gap = (
            np.pad(a, (0, trials)) for a in (self.count, self.total, self._gap)
        )
        self.lost = np.pad(self.lost, (0, trials))
        e = self.ends
        self.ends = Ends(
            *(np.pad(a, (0, trials), constant_values=np.nan) for a in (e.first, e.last, e.high, e.low))
        )

    def _widen(self, width: int) -> None:
        more = max(width, min(2 * self.steps.shape[1], LONGEST)) - self.steps.shape[1]
        self.steps = np.pad(self.steps, ((0, 0), (0, more)))
        self.values = np.pad(self.values, ((0, 0), (0, more)))


def gather(sign: float, steps: Sequence[ArrayLike], values: Sequence[ArrayLike]) -> History:
    """The history of whole studies at once: quick for ten thousand trials.

    Raises:
        CallerError: `steps` and `values` do not pair up.
    """
    if len(steps) != len(values):
        raise CallerError(
            f"{len(steps)} arrays of steps for {len(values)} of values", allowed="one of each a trial"
        )
    pairs = [_pair(i, s, v, sign) for i, (s, v) in enumerate(zip(steps, values, strict=True))]
    lengths = np.array([len(s) for s, _ in pairs], dtype=np.int64)
    history = History(sign, len(pairs), width=int(min(max(lengths.max(initial=1), 1), LONGEST)))
    if not lengths.sum():
        return history
    flat_steps, flat_values = (np.concatenate(side) for side in zip(*pairs, strict=True))
    owner = np.repeat(np.arange(len(pairs)), lengths)
    usable = np.isfinite(flat_values) & np.isfinite(flat_steps)
    ordered = np.diff(flat_steps, prepend=-np.inf) > 0
    ordered[np.cumsum(lengths)[:-1][lengths[1:] > 0]] = True
    simple = np.ones(len(pairs), dtype=np.bool_)
    simple[owner[~(usable & ordered)]] = False
    simple &= (lengths <= LONGEST) & (lengths > 0)
    _fill(history, simple, lengths, owner, flat_steps, flat_values)
    for i in np.flatnonzero(~simple):
        history.extend(int(i), pairs[i][0], sign * pairs[i][1])
    return history


def _fill(h: History, simple: NDArray[np.bool_], lengths: NDArray[np.int64], owner: NDArray[np.int64],
          steps: Floats, values: Floats) -> None:  # fmt: skip
    """Rows that need no care, all in one go."""
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


def _pair(trial: int, steps: ArrayLike, values: ArrayLike, sign: float) -> tuple[Floats, Floats]:
    s = np.asarray(steps, dtype=np.float64).reshape(-1)
    v = np.asarray(values, dtype=np.float64).reshape(-1)
    if len(s) != len(v):
        raise CallerError(
            f"trial {trial}: {len(s)} steps for {len(v)} values", allowed="as many steps as values"
        )
    return s, np.where(np.isfinite(v), np.clip(v * sign, -LARGEST, LARGEST), v * sign)
