"""The posterior network in plain numpy: from features to the laws of the future values.

For each trial it gives, at J knots between the next step and the end of the schedule, a quantile table: the
value at Q fixed normal scores. Between scores the table is a straight line, and beyond the last ones it goes
on straight, so a law is a normal variable pushed through a monotone map. A loading a for each knot and a
freshness r for each trial tie the steps together: the normal score at a step is a g + sqrt(1 - a^2) e,
with g one normal draw for the trial's whole future and e another that is drawn anew at a step with
probability r and is kept from the step before otherwise.

Letters: C trials, F features, J knots, Q normal scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foresail.curves.tables import GAPS, SCORES

Floats = NDArray[Any]

KNOTS = 6
LAG_POWER = 1.7
# Raw outputs are in the trial's own unit: the hyperbolic sine of one is the centre, the exponential of the others
# the width of a step between scores. Both are held so that no output can overflow.
FARTHEST_CENTRE, THINNEST, WIDEST = 8.0, -5.0, 8.0
LARGEST_LOADING = 0.97
MIDDLE = len(SCORES) // 2
OUTPUTS = KNOTS * (len(SCORES) + 1) + 1

_KNOT_SHARES = (np.arange(KNOTS) / (KNOTS - 1.0)) ** LAG_POWER


def knot_lags(remaining: Floats) -> Floats:
    """Steps ahead of the last point at which the tables stand, (C, J), from 1 to `remaining` (C,)."""
    return 1.0 + np.maximum(remaining - 1.0, 0.0)[:, None] * _KNOT_SHARES


def knot_position(lag: Floats, remaining: Floats) -> Floats:
    """Where a step that is `lag` ahead lies among the knots, from 0 to J - 1."""
    share = (lag - 1.0) / np.maximum(remaining - 1.0, 1e-6)
    return (KNOTS - 1.0) * np.minimum(np.maximum(share, 0.0), 1.0) ** (1.0 / LAG_POWER)


@dataclass(frozen=True, slots=True)
class Laws:
    """Futures of C trials: quantile `tables` (C, J, Q) in internal units, `loadings` (C, J), `freshness`
    (C,)."""

    tables: Floats
    loadings: Floats
    freshness: Floats


@dataclass(frozen=True, slots=True)
class Network:
    """Three hidden layers. `mean` and `spread` standardise the features."""

    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]
    mean: Floats
    spread: Floats

    def outputs(self, features_CF: Floats) -> Floats:
        hidden = features_CF - self.mean
        hidden /= self.spread
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            hidden = hidden @ weight
            hidden += bias
            gate = np.maximum(hidden, -60.0)
            np.negative(gate, out=gate)
            np.exp(gate, out=gate)
            gate += 1.0
            hidden /= gate
        hidden = hidden @ self.weights[-1]
        hidden += self.biases[-1]
        return hidden

    def laws(self, features_CF: Floats, level_C: Floats, unit_C: Floats) -> Laws:
        """Futures from features; tables are `level` plus so many `unit` (C,)."""
        outputs = self.outputs(features_CF)
        raw = outputs[:, :-1].reshape(len(features_CF), KNOTS, len(SCORES) + 1)
        shares = _sigmoid(outputs[:, _SHARES])
        unit = unit_C.astype(np.float32)[:, None]
        steps = np.maximum(raw[:, :, 2:], THINNEST)
        np.minimum(steps, WIDEST, out=steps)
        np.exp(steps, out=steps)
        steps *= GAPS
        steps *= unit[:, :, None]
        centre = np.minimum(np.maximum(raw[:, :, 1], -FARTHEST_CENTRE), FARTHEST_CENTRE)
        centre = level_C.astype(np.float32)[:, None] + unit * np.sinh(centre)
        tables = np.empty((*raw.shape[:2], len(SCORES)), dtype=np.float32)
        np.cumsum(steps, axis=2, out=tables[:, :, 1:])
        tables[:, :, 0] = 0.0
        tables += (centre - tables[:, :, MIDDLE])[:, :, None]
        return Laws(tables, LARGEST_LOADING * shares[:, :-1], shares[:, -1])


_SHARES = np.arange(0, OUTPUTS, len(SCORES) + 1)  # of the outputs: a loading for each knot, and the freshness


def _sigmoid(x: Floats) -> Floats:
    result: Floats = 1.0 / (1.0 + np.exp(np.minimum(np.maximum(-x, -30.0), 30.0)))
    return result


@cache
def shipped() -> Network:
    """The network that comes with Foresail, made by `python -m foresail.curves.train`."""
    with (
        (files("foresail.curves") / "weights.npz").open("rb") as file,
        np.load(file, allow_pickle=False) as stored,
    ):
        arrays = {name: stored[name].astype(np.float32) for name in stored.files}
    layers = range(sum(name.startswith("weight") for name in arrays))
    return Network(
        weights=tuple(arrays[f"weight{i}"] for i in layers),
        biases=tuple(arrays[f"bias{i}"] for i in layers),
        mean=arrays["mean"],
        spread=arrays["spread"],
    )
