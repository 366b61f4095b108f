"""Runs Foresail and the baselines on studies drawn from traces, and keeps one row a forecast.

Letters: M trials asked for, X grid values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from benchmarks.curves import baselines, mcmc
from benchmarks.curves.baselines import GRID
from benchmarks.curves.traces import Study, Trace, study
from numpy.typing import NDArray

from foresail.curves import Forecast, Layers, StudyState
from foresail.curves.history import gather
from foresail.curves.normal import ndtr
from foresail.curves.score import crps, interval, log_score
from foresail.curves.tables import scores_at

Floats = NDArray[Any]

RESOLUTION = 0.0025
FLOOR = 0.002  # share of a uniform law mixed into every method before the log score
PREFIXES = (0.1, 0.2, 0.4, 0.6, 0.8)
EARLY = (0.0, 0.05, 0.1)
TARGET = 0.8  # the reach target is this quantile of the best values of the trace

OURS = "foresail"
ABLATIONS = {"local": "no global view", "plain": "no hyperparameters", "permuted": "permuted hyperparameters"}
BASELINES = ("last", "last+residuals", "power law", "freeze-thaw")
MCMC = "mcmc"


@dataclass
class Rows:
    """One array an attribute of a forecast; all of the same length."""

    columns: dict[str, list[Floats]] = field(default_factory=dict)

    def add(self, **columns: Any) -> None:
        length = max(len(c) for c in columns.values() if not np.isscalar(c))
        for name, column in columns.items():
            full = np.full(length, column) if np.isscalar(column) else np.asarray(column)
            self.columns.setdefault(name, []).append(full)

    def table(self) -> dict[str, Floats]:
        return {name: np.concatenate(parts) for name, parts in self.columns.items()}


def forecast_of(which: str, s: Study, rng: np.random.Generator) -> Forecast:
    """Foresail's forecast of a study, whole or with a part taken away."""
    trace = s.trace
    knobs: Floats | None = s.features if which in (OURS, "permuted") else None
    if which == "permuted":
        knobs = s.features[rng.permutation(len(s.who))]
    layers = Layers(study=False, honesty=False) if which == "local" else Layers()
    state = StudyState(trace.mode, layers=layers)
    state.load(gather(trace.sign, s.steps, s.values), knobs)
    return state.forecast(trace.horizon)


def final_law(f: Forecast, s: Study) -> Floats:
    """Distribution function of the final value on the grid of the scoring scale, (M, X)."""
    oriented = s.trace.sign * s.trace.metric(GRID)
    levels = ((oriented - f.origin) / f.unit).astype(np.float32)
    law = ndtr(scores_at(f.table[s.asked, None, -1], levels[None, :]))
    return _closed(law)


def best_law(f: Forecast, s: Study) -> Floats:
    """The same of the best value to the end."""
    coarse = GRID[::5]
    reach = np.stack([f.prob_reach(float(v))[s.asked] for v in s.trace.metric(coarse)], axis=1)
    fine = np.stack([np.interp(GRID, coarse, 1.0 - row) for row in reach])
    return _closed(fine)


def _closed(law: Floats) -> Floats:
    """All mass beyond the clipped ends lies on them, as the outcomes do."""
    law = law.copy()
    law[:, -1] = 1.0
    return law


def target_of(trace: Trace) -> float:
    """In the scoring scale."""
    return float(np.quantile([trace.scored(v).max() for v in trace.values], TARGET))


def run_cell(rows: Rows, trace: Trace, prefix: float, residuals: dict[str, Floats], rng:
np.random.Generator, *,
             mcmc_trials: int, rivals: bool) -> None:  # fmt: skip
    """Foresail whole and in part, and the baselines if `rivals`, on one study cut at `prefix`."""
    s = study(trace, prefix, rng)
    if not len(s.asked):
        return
    context = _Context(s, trace, prefix, target_of(trace))
    for which in (OURS, *ABLATIONS):
        f = forecast_of(which, s, rng)
        reach = f.prob_reach(float(trace.metric(np.array(context.target))))[s.asked]
        bests = best_law(f, s) if which == OURS and rivals else None
        context.add(rows, which, final_law(f, s), reach, bests)
    if not rivals:
        return
    last, power = baselines.last_value(s), baselines.power_law(s)
    point = (GRID[None, :] >= last[:, None] - 1e-9).astype(float)
    context.add(rows, "last", point, None)
    context.add(rows, "last+residuals", baselines.with_residuals(last, residuals["last"]), None)
    context.add(rows, "power law", baselines.with_residuals(power, residuals["power"]), None)
    context.add(rows, "freeze-thaw", _closed(baselines.freeze_thaw(s)), None)
    chosen = np.arange(len(s.asked))[:mcmc_trials]
    if len(chosen):
        context.add(rows, MCMC, mcmc_laws(s, s.asked[chosen]), None, who=chosen)


def mcmc_laws(s: Study, positions: NDArray[np.int64]) -> Floats:
    """Laws (M, X); uniform on [0, 1] where no family fits, which is where the original gives up."""
    laws = []
    for i in positions:
        steps, values = s.scored_prefix(int(i))
        unit = steps[1] - steps[0] if len(steps) > 1 else steps[0]
        law = mcmc.law(values, 1.0 + (s.trace.end - steps[0]) / unit, GRID, seed=int(i))
        laws.append(np.clip(GRID, 0.0, 1.0) if law is None else law)
    return _closed(np.array(laws))


@dataclass
class _Context:
    s: Study
    trace: Trace
    prefix: float
    target: float

    def add(self, rows: Rows, method: str, law: Floats, reach: Floats | None, bests: Floats | None = None,
            who: NDArray[np.int64] | None = None) -> None:  # fmt: skip
        who = np.arange(len(self.s.asked)) if who is None else who
        outcome, best = self.s.finals[who], self.s.bests[who]
        so_far = np.array([max(self.s.scored_prefix(int(i))[1], default=-9.0) for i in self.s.asked[who]])
        below, upto = interval(GRID, law, outcome, RESOLUTION)
        if reach is None:
            reach = np.array([1.0 - np.interp(self.target - 1e-9, GRID, row) for row in law])
        best_crps = np.full(len(who), np.nan) if bests is None else crps(GRID, bests, best)
        rows.add(
            method=np.full(len(who), method), trace=self.trace.name, family=self.trace.family,
            prefix=self.prefix, trial=self.s.who[self.s.asked[who]], crps=crps(GRID, law, outcome),
            below=below, upto=upto, log=log_score(below, upto, RESOLUTION, FLOOR), reach=reach, event=(best
            >= self.target - 1e-9) * 1.0, open=so_far < self.target - 1e-9, best_crps=best_crps, best=best,
            mean=law[:, :-1] @ np.diff(GRID),
        )  # fmt: skip


def residuals_of(traces: list[Trace], prefix: float, seed: int) -> dict[str, dict[str, Floats]]:
    """For each trace, what the point baselines missed by on all other traces at this prefix."""
    missed: dict[str, dict[str, Floats]] = {}
    for trace in traces:
        s = study(trace, prefix, np.random.default_rng(seed), context=())
        truth = s.finals
        missed[trace.name] = {
            "last": truth - baselines.last_value(s),
            "power": truth - baselines.power_law(s),
        }
    both = ("last", "power")
    if len(traces) == 1:
        return missed
    return {
        t.name: {b: np.concatenate([missed[o.name][b] for o in traces if o is not t]) for b in both} for t in traces
    }


def top_found(trace: Trace, rng: np.random.Generator) -> dict[str, float]:
    """Share of the true best tenth of a study that each ranking puts into its best tenth, at 25 % of the
    run."""
    s = study(trace, 0.25, rng, context=())
    number = max(1, len(s.asked) // 10)
    jitter = 1e-7 * rng.random(len(s.asked))
    truth = s.bests
    wanted = np.sort(truth)[-number] - 1e-12
    rankings = {"last": baselines.last_value(s) + jitter}
    for which in (OURS, "plain"):
        f = forecast_of(which, s, rng)
        # Over all that is still to come, not its end alone; medians, as a chance of collapse moves a mean far.
        ahead = np.where(f.future, f.quantile(0.5), np.nan)[s.asked]
        rankings[which] = trace.sign * np.nanmean(ahead, axis=1) + jitter * f.unit
    hits = {name: (truth[np.argsort(-rank)[:number]] >= wanted).mean() for name, rank in rankings.items()}
    return {name: float(hit) for name, hit in hits.items()}
