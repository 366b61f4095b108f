"""Recorded learning curves: reads trace folders and makes studies of them.

The format is that of `foresail export`: `trace.json`, `configs.csv.gz`, `curves.csv.gz`.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[Any]

CLIP = (-1.0, 1.25)  # of the scoring scale
FAMILIES = ("algoperf", "deepobs", "hyperjump", "own-cartpole", "own", "taskset", "yahpo")
MOST_STEPS = 120


@dataclass(frozen=True)
class Trace:
    """One trace, cut at the largest step that half of its trials reached; shorter trials are left out."""

    name: str
    family: str
    mode: str
    steps: list[Floats]
    values: list[Floats]
    features: Floats
    horizon: Floats
    start: float  # oriented: median first value, 0 of the scoring scale
    top: float  # oriented: best value of all, 1 of the scoring scale

    @property
    def sign(self) -> float:
        return 1.0 if self.mode == "max" else -1.0

    @property
    def end(self) -> float:
        return float(self.horizon[-1])

    def scored(self, values: Floats) -> Floats:
        """The scoring scale: affine in the metric, higher is better, clipped; not finite is the lowest."""
        inner = (self.sign * np.asarray(values, dtype=float) - self.start) / (self.top - self.start)
        return np.clip(np.where(np.isfinite(inner), inner, CLIP[0]), *CLIP)

    def metric(self, scored: Floats) -> Floats:
        return self.sign * (self.start + (self.top - self.start) * np.asarray(scored))


def load(folder: Path) -> Trace:
    about = json.loads((folder / "trace.json").read_text())
    curves: dict[str, list[tuple[float, float]]] = defaultdict(list)
    with gzip.open(folder / "curves.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            curves[row["config"]].append((float(row["step"]), float(row["value"] or "nan")))
    with gzip.open(folder / "configs.csv.gz", "rt") as file:
        configs = {row["config"]: row for row in csv.DictReader(file)}
    ends = sorted((points[-1][0] for points in curves.values()), reverse=True)
    end = ends[len(ends) // 2]
    kept = [c for c, points in curves.items() if points[-1][0] >= end and len(points) > 3]
    steps = [np.array([s for s, _ in curves[c] if s <= end]) for c in kept]
    values = [np.array([v for s, v in curves[c] if s <= end]) for c in kept]
    sign = 1.0 if about["mode"] == "max" else -1.0
    start = float(np.median([first[0] for v in values if len(first := sign * v[np.isfinite(v)])]))
    top = max(float((sign * v[np.isfinite(v)]).max()) for v in values if np.isfinite(v).any())
    return Trace(
        name=about["name"],
        family=next(f for f in (*FAMILIES, "") if folder.name.startswith(f)) or folder.name.split("-")[0],
        mode=about["mode"],
        steps=steps,
        values=values,
        features=_features(about["hyperparameters"], [configs[c] for c in kept]),
        horizon=_horizon(steps, end),
        start=start,
        top=top,
    )


def _horizon(steps: list[Floats], end: float) -> Floats:
    """The steps at which trials report, if they agree; else as many equal ones as a trial has points."""
    union = np.unique(np.concatenate(steps))
    union = union[union > 0]
    if len(union) <= MOST_STEPS:
        return np.append(union[union < end], end)
    number = int(min(np.median([len(s) for s in steps]), MOST_STEPS))
    return end * np.arange(1, number + 1) / number


def _features(knobs: Mapping[str, Mapping[str, Any]], rows: list[dict[str, str]]) -> Floats:
    """Hyperparameters in the unit cube; what is not recorded is in the middle, categories are one-hot."""
    columns: list[Floats] = []
    for name, knob in knobs.items():
        texts = [row.get(name, "") for row in rows]
        if knob["type"] == "categorical":
            columns += [0.7 * np.array([t == str(choice) for t in texts], dtype=float) for choice in knob["choices"]]
            continue
        number = np.array([float(t) if t else np.nan for t in texts])
        if knob.get("log"):
            number = np.log(np.maximum(number, 1e-300))
        low, high = np.nanmin(number, initial=np.inf), np.nanmax(number, initial=-np.inf)
        if high > low:
            columns.append(np.nan_to_num((number - low) / (high - low), nan=0.5))
    varied = [c for c in columns if c.min() < c.max()]
    return np.stack(varied, axis=1) if varied else np.zeros((len(rows), 0))


@dataclass(frozen=True)
class Study:
    """Trials drawn from a trace, some finished, some under way, the rest cut where they are to be
    forecast."""

    trace: Trace
    who: NDArray[np.int64]  # trial numbers of the trace
    seen: Floats  # how far each has got, in steps
    asked: NDArray[np.int64]  # positions in `who` that are to be forecast

    @property
    def steps(self) -> list[Floats]:
        return [s[s <= seen] for s, seen in self._pairs()]

    @property
    def values(self) -> list[Floats]:
        return [self.trace.values[i][self.trace.steps[i] <= seen] for i, seen in zip(self.who, self.seen, strict=True)]

    def _pairs(self) -> list[tuple[Floats, float]]:
        return [(self.trace.steps[i], seen) for i, seen in zip(self.who, self.seen, strict=True)]

    @property
    def features(self) -> Floats:
        return self.trace.features[self.who]

    @property
    def finals(self) -> Floats:
        """True final values of the trials asked for, scoring scale."""
        return self.trace.scored(np.array([self.trace.values[i][-1] for i in self.who[self.asked]]))

    @property
    def bests(self) -> Floats:
        """True best values of the trials asked for, scoring scale."""
        return np.array([self.trace.scored(self.trace.values[i]).max() for i in self.who[self.asked]])

    def scored_prefix(self, position: int) -> tuple[Floats, Floats]:
        i = self.who[position]
        kept = self.trace.steps[i] <= self.seen[position]
        return self.trace.steps[i][kept], self.trace.scored(self.trace.values[i][kept])


# A study of 60: ten finished, ten at 40 %, ten at 15 %, thirty to be forecast.
CONTEXT = (1.0,) * 10 + (0.4,) * 10 + (0.15,) * 10
SIZE = 60


def study(trace: Trace, prefix: float, rng: np.random.Generator, context: tuple[float, ...] = CONTEXT) -> Study:
    """Seeded draw; trials that have diverged already at the prefix are context, never asked for.

    At a prefix above zero each trial has at least its first point.
    """
    who = rng.permutation(len(trace.steps))[:SIZE]
    cut = np.full(len(who), prefix)
    cut[: min(len(context), len(who) // 2)] = context[: len(who) // 2]
    seen = cut * trace.end
    first = np.array([trace.steps[i][0] for i in who])
    seen = np.where(cut > 0, np.maximum(seen, first), -1.0)
    asked = np.arange(min(len(context), len(who) // 2), len(who))
    alive = [trace.scored(_latest(trace, who[i], seen[i])) > CLIP[0] for i in asked]
    return Study(trace, who, seen, asked[np.array(alive, dtype=bool)])


def _latest(trace: Trace, trial: int, seen: float) -> Floats:
    known = trace.values[trial][trace.steps[trial] <= seen]
    return known[-1] if len(known) else np.float64(trace.metric(np.array(0.0)))
