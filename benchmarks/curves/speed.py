"""How long forecasts take, and against the MCMC in the same run. CPU seconds of this process, best of a
few."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.curves import mcmc
from benchmarks.curves.baselines import GRID
from benchmarks.curves.tables import Row
from numpy.typing import NDArray

from foresail.curves import Forecast, StudyState, forecast

Floats = NDArray[Any]

POINTS, END, KNOBS = 50, 100, 6
HORIZON = np.arange(POINTS + 1, END + 1)


def curves(trials: int, seed: int = 0) -> tuple[list[Floats], list[Floats], Floats]:
    """Trials with 50 points of a schedule of 100, and their hyperparameters."""
    rng = np.random.default_rng(seed)
    t = np.arange(1.0, POINTS + 1)
    height, tau = rng.uniform(0.2, 0.9, trials), rng.uniform(3, 60, trials)
    values = [0.1 + h * (1 - np.exp(-t / s)) + rng.normal(0, 0.01, POINTS) for h, s in zip(height, tau, strict=True)]
    return [t] * trials, values, rng.random((trials, KNOBS))


def everything(f: Forecast) -> None:
    """All quantities but the draws."""
    _ = f.mean, f.quantile(0.05), f.quantile(0.5), f.quantile(0.95)
    f.prob_reach(0.8, by=HORIZON)
    f.expected_steps_to(0.8)
    f.expected_improvement(0.8)
    f.prob_best()


def measure() -> dict[str, float]:
    """Milliseconds for one, 100 and 10,000 trials, megabytes for 10,000, and the MCMC beside them."""
    one, hundred, many = curves(1), curves(100), curves(10_000)
    result = {
        "one_ms": _best(lambda: _all_of(one[0], one[1], None), 40),
        "hundred_ms": _best(lambda: _all_of(*hundred), 7),
        "ten_thousand_ms": _best(lambda: _all_of(*many), 2),
        "one_of_a_study_of_10000_ms": _update_ms(many),
        "final_one_ms": _best(lambda: forecast(one[0], one[1], [END], mode="max").quantile(0.5), 40),
        "final_ten_thousand_ms": _best(lambda: forecast(many[0], many[1], [END], mode="max").quantile(0.5), 2),
        "mcmc_ms": _best(lambda: mcmc.law(one[1][0], float(END), GRID, 0), 2),
    }
    tracemalloc.start()
    _all_of(*many)
    result["ten_thousand_peak_mb"] = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    result["mcmc_over_one"] = result["mcmc_ms"] / result["final_one_ms"]
    result["mcmc_over_batch"] = 10_000 * result["mcmc_ms"] / result["final_ten_thousand_ms"]
    return result


def _all_of(steps: list[Floats], values: list[Floats], features: Floats | None) -> None:
    everything(forecast(steps, values, HORIZON, mode="max", features=features))


def _update_ms(study: tuple[list[Floats], list[Floats], Floats]) -> float:
    """A new point of one trial of a large study, then all quantities of that trial."""
    state = StudyState("max", features=study[2])
    for i, (t, v) in enumerate(zip(study[0], study[1], strict=False)):
        state.update(i, t[:-10], v[:-10])
    state.refit(HORIZON)
    new = iter(range(1000))

    def one() -> None:
        i = next(new)
        state.update(i, [POINTS - 9.0], [0.5])
        everything(state.forecast(HORIZON, trials=[i]))

    return _best(one, 40)


def _best(what: Callable[[], object], times: int) -> float:
    what()
    spent = []
    for _ in range(times):
        start = time.process_time()
        what()
        spent.append(time.process_time() - start)
    return 1e3 * min(spent)


def acceptance(speed: dict[str, float]) -> list[Row]:
    limits = {
        "one_ms": ("one trial, ms", 1.0),
        "hundred_ms": ("100 trials, ms", 20.0),
        "ten_thousand_ms": ("10,000 trials, ms", 2000.0),
        "ten_thousand_peak_mb": ("10,000 trials, peak MB", 500.0),
        "one_of_a_study_of_10000_ms": ("a new point and forecast in a study of 10,000, ms", 1.0),
    }
    rows = [Row(text, f"{speed[k]:.2f}", f"< {limit:g}", speed[k] < limit) for k, (text, limit) in limits.items()]
    for key, text, goal in (
        ("mcmc_over_one", "one by one", 1500.0),
        ("mcmc_over_batch", "in a batch of 10,000", 50_000.0),
    ):
        rows.append(Row(f"times faster than the MCMC, {text}", f"{speed[key]:.0f}", f">= {goal:g}", speed[key] >= goal))
    return rows
