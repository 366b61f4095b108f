"""What finished trials gained from where a trial stands now: the view that needs no hyperparameters.

Finished trials that stood at the same part of the schedule near the trial's value count most (a kernel regression,
Nadaraya and Watson 1964, with a Cauchy kernel so that no trial is without peers). Letters: C finished trials, M trials
asked for, R fractions of the schedule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foresail.curves.history import History
from foresail.curves.scale import Scale

Floats = NDArray[Any]
Rows = NDArray[np.int64]

MOST_CURVES = 200  # finished trials whose gains are averaged
FRACTIONS = np.linspace(0.0, 1.0, 33)  # where the gains of finished trials are kept
NEAR = 0.1  # internal units at which a peer counts half
TRUST = 3.0  # finished trials near by at which their gains are half trusted
_BLOCK = 1_000_000  # elements of a temporary


def nearness(apart: Floats) -> Floats:
    """How much a peer that stood so far away counts, 0 to 1; all count alike where the distance is not known."""
    weight: Floats = 1.0 / (1.0 + (apart / NEAR) ** 2)
    return np.where(np.isnan(weight), 1.0, weight)


def weighed(gain: Floats, weight: Floats) -> tuple[Floats, Floats, Floats]:
    """Weighted mean and sd along the last axis, and the trust that so much weight deserves."""
    total = weight.sum(axis=-1)
    share = weight / np.maximum(total, 1e-9)[..., None]
    mean = (share * gain).sum(axis=-1)
    square = (share * (gain - mean[..., None]) ** 2).sum(axis=-1)
    return mean, np.sqrt(square), total / (total + TRUST)


@dataclass(frozen=True, slots=True)
class Gains:
    """Finished trials (their numbers in `who`, rising) on a grid of fractions of the schedule: where they `stood`, and
    what they `gained` from there to their end, (R, C) each, internal units."""

    who: Rows
    stood: Floats
    gained: Floats

    def of(self, fraction_M: Floats, value_M: Floats, rows_M: Rows) -> tuple[Floats, Floats, Floats]:
        """Mean and sd of the gains from here on, and the trust in them, (M,) each, no trial being its own peer.

        `value_M`: where the trials stand, nan for those without points; `rows_M`: their numbers."""
        parts = max(1, _BLOCK // len(self.who))
        if len(rows_M) <= parts:
            return self._of(fraction_M, value_M, rows_M)
        blocks = (slice(i, i + parts) for i in range(0, len(rows_M), parts))
        found = [self._of(fraction_M[part], value_M[part], rows_M[part]) for part in blocks]
        mean, sd, trust = (np.concatenate(side) for side in zip(*found, strict=True))
        return mean, sd, trust

    def _of(self, fraction_M: Floats, value_M: Floats, rows_M: Rows) -> tuple[Floats, Floats, Floats]:
        at = fraction_M * (len(FRACTIONS) - 1.0)
        low = np.minimum(at.astype(np.int64), len(FRACTIONS) - 2)
        part = (at - low)[:, None]
        stood, gained = self.stood[low], self.gained[low]
        stood = stood + part * (self.stood[low + 1] - stood)
        gained = gained + part * (self.gained[low + 1] - gained)
        weight = nearness(stood - value_M[:, None]) * (rows_M[:, None] != self.who)
        return weighed(gained, weight)


def gains_of(history: History, finished: Rows, scale: Scale, end: float) -> Gains | None:
    """The gains of the finished trials; None without any."""
    if not len(finished):
        return None
    rows = finished[np.linspace(0, len(finished) - 1, min(len(finished), MOST_CURVES)).astype(np.int64)]
    curves = np.empty((len(rows), len(FRACTIONS)))
    for i, row in enumerate(rows):
        n = history.count[row]
        curves[i] = np.interp(FRACTIONS * end, history.steps[row, :n], history.values[row, :n])
    inner = scale.inside(curves)
    return Gains(rows, np.ascontiguousarray(inner.T), np.ascontiguousarray((inner[:, -1:] - inner).T))
