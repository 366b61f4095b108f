"""The posterior network in plain numpy: from features to the laws of the future values.

For each trial it gives, at J knots between the next step and the end of the schedule, a quantile table: the
value at Q fixed normal scores. Between scores the table is a straight line, and beyond the last ones it goes
on straight, so a law is a normal variable pushed through a monotone map. A loading a for each knot ties the
steps together: the normal score at a step is a g + sqrt(1 - a^2) e, with g one draw for the trial's whole
future and e fresh at each step (a one-factor Gaussian copula).

Letters: C trials, F features, J knots, Q normal scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[Any]

# Normal scores of the tables: dense where the mass is, out to one in a thousand.
SCORES = np.array(
    [-3.1, -2.5, -2.0, -1.55, -1.15, -0.8, -0.5, -0.25, 0.0, 0.25, 0.5, 0.8, 1.15, 1.55, 2.0, 2.5, 3.1],
    dtype=np.float32,
)
KNOTS = 6
LAG_POWER = 1.7
CENTRE_UNIT, STEP_UNIT, LEAST_STEP = 0.3, 0.5, 2e-4  # internal units of the raw outputs
LARGEST_LOADING = 0.97
MIDDLE = len(SCORES) // 2
OUTPUTS = KNOTS * (len(SCORES) + 1)


def knot_lags(remaining: Floats) -> Floats:
    """Steps ahead of the last point at which the tables stand, (C, J), from 1 to `remaining` (C,)."""
    share = (np.arange(KNOTS) / (KNOTS - 1.0)) ** LAG_POWER
    return cast(Floats, 1.0 + np.maximum(remaining - 1.0, 0.0)[:, None] * share)


def knot_position(lag: Floats, remaining: Floats) -> Floats:
    """Where a step that is `lag` ahead lies among the knots, from 0 to J - 1."""
    share = (lag - 1.0) / np.maximum(remaining - 1.0, 1e-6)
    return cast(Floats, (KNOTS - 1.0) * np.clip(share, 0.0, 1.0) ** (1.0 / LAG_POWER))


@dataclass(frozen=True, slots=True)
class Network:
    """Three hidden layers. `mean` and `spread` standardise the features."""

    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]
    mean: Floats
    spread: Floats

    def outputs(self, features_CF: Floats) -> Floats:
        hidden = (features_CF - self.mean) / self.spread
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            hidden = hidden @ weight
            hidden += bias
            hidden /= 1.0 + np.exp(-np.maximum(hidden, -60.0))
        return cast(Floats, hidden @ self.weights[-1] + self.biases[-1])

    def laws(self, features_CF: Floats, level_C: Floats) -> tuple[Floats, Floats]:
        """Quantile tables (C, J, Q) in internal units and loadings (C, J)."""
        raw = self.outputs(features_CF).reshape(len(features_CF), KNOTS, len(SCORES) + 1)
        steps = (LEAST_STEP + STEP_UNIT * _softplus(raw[:, :, 2:] - 3.0)) * np.diff(SCORES)
        tables = np.empty((*raw.shape[:2], len(SCORES)), dtype=np.float32)
        centre = CENTRE_UNIT * raw[:, :, 1] + level_C[:, None]
        tables[:, :, MIDDLE] = centre
        np.cumsum(steps[:, :, MIDDLE:], axis=2, out=tables[:, :, MIDDLE + 1 :])
        np.cumsum(-steps[:, :, MIDDLE - 1 :: -1], axis=2, out=tables[:, :, MIDDLE - 1 :: -1])
        tables[:, :, :MIDDLE] += centre[:, :, None]
        tables[:, :, MIDDLE + 1 :] += centre[:, :, None]
        loadings = LARGEST_LOADING / (1.0 + np.exp(-np.clip(raw[:, :, 0], -30.0, 30.0)))
        return tables, loadings


def _softplus(x: Floats) -> Floats:
    return cast(Floats, np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))


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
