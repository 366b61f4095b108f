"""What all parts of the benchmark share: the row that is printed, summaries of errors, histories."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np
from benchmarks.perf.tables import Runs

from foresail.perf.fitting import Fit, Prediction, fit, predict
from foresail.perf.intervals import calibrate, scores
from foresail.perf.rows import join
from foresail.perf.step_time import STEP_TIME

HISTORY_ROWS = 240
"""Runs of other jobs that a history keeps: more help little and cost cubic time."""


@dataclasses.dataclass(frozen=True)
class Score:
    """One row of the report: a point, where it was measured, the goal, what was reached, and whether it
    holds."""

    point: str
    table: str
    goal: str
    reached: str
    holds: bool | None
    figures: dict[str, float]


def errors(prediction: Prediction, seconds: np.ndarray) -> np.ndarray:
    """Relative errors of the predicted median."""
    return np.abs(prediction.median / seconds - 1)


def summary(values: Iterable[np.ndarray]) -> dict[str, float]:
    """Median, mean and tail of errors, as fractions."""
    flat = np.concatenate(list(values))
    return {
        "n": float(len(flat)),
        "median": float(np.median(flat)),
        "mean": float(flat.mean()),
        "p90": float(np.quantile(flat, 0.9)),
        "p95": float(np.quantile(flat, 0.95)),
    }


def percent(figures: dict[str, float], *names: str) -> str:
    """Figures for a reader."""
    return ", ".join(f"{name} {100 * figures[name]:.1f} %" for name in names)


def measured(runs: Runs) -> np.ndarray:
    """Positions of runs with a usable time, one for each distinct configuration (the others are repeats)."""
    fine = np.flatnonzero(np.isfinite(runs.seconds) & (runs.seconds > 0))
    rows = runs.rows
    columns = [rows.job_id, rows.nodes, rows.dp, rows.tp, rows.pp, rows.micro_batch, rows.accumulation]
    columns += [rows.stage, rows.recompute, rows.element_bytes, rows.seq_len]
    keys = np.stack([np.asarray(c, float)[fine] for c in columns])
    _, first, which = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    for slot, position in enumerate(first):
        runs.seconds[fine[position]] = np.median(runs.seconds[fine[which.ravel() == slot]])
    return np.sort(fine[first])


def history(runs: list[Runs], chosen: list[np.ndarray], rng: np.random.Generator) -> Fit | None:
    """What other jobs' runs teach; at most `HISTORY_ROWS` of them, drawn evenly over tables."""
    parts, times = [], []
    total = sum(len(c) for c in chosen)
    for table, index in zip(runs, chosen, strict=True):
        count = min(len(index), max(1, round(HISTORY_ROWS * len(index) / max(total, 1))))
        picked = rng.choice(index, count, replace=False) if total > HISTORY_ROWS else index
        if len(picked):
            parts.append(table.rows.take(picked))
            times.append(table.seconds[picked])
    return fit(STEP_TIME, join(*parts), np.concatenate(times)) if parts else None


@dataclasses.dataclass
class Trials:
    """Predictions of jobs left out, for honest intervals: each job's scores calibrate the others."""

    errors: list[np.ndarray] = dataclasses.field(default_factory=list)
    scores: list[np.ndarray] = dataclasses.field(default_factory=list)
    jobs: list[str] = dataclasses.field(default_factory=list)

    def add(self, job: str, prior: Fit | None, runs: Runs, probes: np.ndarray, rest: np.ndarray) -> Fit | None:
        """Fit the probes of a job, predict the rest."""
        model = prior
        if len(probes):
            model = fit(STEP_TIME, runs.rows.take(probes), runs.seconds[probes], prior=prior)
        prediction = predict(STEP_TIME, model, runs.rows.take(rest))
        self.errors.append(errors(prediction, runs.seconds[rest]))
        self.scores.append(scores(prediction, runs.seconds[rest]))
        self.jobs.append(job)
        return model

    def coverage(self, level: float = 0.9) -> float:
        """The part of measurements inside intervals that other jobs' scores calibrated."""
        inside = []
        for job, own in zip(self.jobs, self.scores, strict=True):
            others = [s for name, s in zip(self.jobs, self.scores, strict=True) if name != job]
            past = np.concatenate(others) if others else np.array([])
            inside.append(own <= calibrate(past, level=level))
        return float(np.concatenate(inside).mean())
