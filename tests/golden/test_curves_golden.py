"""Fifty forecasts of the shipped weights; `python tests/golden/test_curves_golden.py` writes them anew."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from foresail.curves import forecast

FILE = Path(__file__).with_name("curves.json")
HORIZON = np.arange(1, 41)


def answers() -> dict[str, list[list[float]]]:
    """Five studies of ten trials each: what is forecast for their ends."""
    made = {}
    for seed in range(5):
        rng = np.random.default_rng(seed)
        steps = [np.arange(1, n + 1) for n in rng.integers(0, 41, 10)]
        values = [
            rng.normal(0.1, 0.05)
            + rng.random() * (1 - np.exp(-t / rng.uniform(1, 30)))
            + rng.normal(0, 0.01, len(t))
            for t in steps
        ]
        features = rng.random((10, 3)) if seed % 2 else None
        f = forecast(steps, values, HORIZON, mode="max", features=features)
        columns = [
            f.mean[:, -1],
            f.quantile(0.1)[:, -1],
            f.quantile(0.9)[:, -1],
            f.prob_reach(0.7),
            f.prob_best(),
        ]
        made[f"study {seed}"] = np.round(np.stack(columns, axis=1), 6).tolist()
    return made


def test_forecasts_are_those_of_the_shipped_weights() -> None:
    wanted, found = json.loads(FILE.read_text()), answers()
    assert wanted.keys() == found.keys()
    for name in wanted:
        np.testing.assert_allclose(found[name], wanted[name], atol=2e-3, err_msg=name)


if __name__ == "__main__":
    FILE.write_text(json.dumps(answers(), indent=1) + "\n")
