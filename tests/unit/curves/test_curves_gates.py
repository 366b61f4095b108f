"""What the global view must not do, and must do, on synthetic studies."""

from __future__ import annotations

import numpy as np
import pytest

from foresail.curves import Layers, StudyState
from foresail.curves.history import gather

HORIZON = np.arange(1, 41)


def error(kind: str, seed: int) -> float:
    """Mean absolute error of the ends of young trials; their height hangs on the first of three knobs."""
    rng = np.random.default_rng(seed)
    x = rng.random((40, 3))
    t = np.arange(1, 41)
    height = 0.3 + 0.6 * np.exp(-8 * (x[:, 0] - 0.6) ** 2)
    curves = [
        h * (1 - np.exp(-t / s)) + rng.normal(0, 0.01, 40)
        for h, s in zip(height, rng.uniform(4, 20, 40), strict=True)
    ]
    seen = np.where(np.arange(40) < 15, 40, 4)
    features = {"none": None, "true": x, "permuted": x[rng.permutation(40)], "alone": None}[kind]
    state = StudyState("max", layers=Layers(study=kind != "alone", honesty=kind != "alone"))
    state.load(
        gather(1.0, [t[:n] for n in seen], [c[:n] for c, n in zip(curves, seen, strict=True)]), features
    )
    truth = np.array([c[-1] for c in curves])
    return float(np.abs(state.forecast(HORIZON).quantile(0.5)[15:, -1] - truth[15:]).mean())


@pytest.fixture(scope="module")
def errors() -> dict[str, float]:
    return {
        kind: float(np.mean([error(kind, seed) for seed in range(4)]))
        for kind in ("none", "true", "permuted", "alone")
    }


def test_useful_hyperparameters_help(errors: dict[str, float]) -> None:
    assert errors["true"] < 0.85 * errors["none"]


def test_permuted_hyperparameters_do_no_harm(errors: dict[str, float]) -> None:
    assert errors["permuted"] < 1.05 * errors["none"]


def test_the_study_helps(errors: dict[str, float]) -> None:
    assert errors["true"] < errors["alone"]
