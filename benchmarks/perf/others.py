"""Data-parallel jobs without features, large sharded jobs, memory, pairs on one device, and the time it
takes."""

from __future__ import annotations

import time

import numpy as np
from benchmarks.perf.scoring import Score, Trials, history, measured, percent, summary
from benchmarks.perf.tables import Runs, Table, number

from foresail.perf.choice import most_telling
from foresail.perf.fitting import Fit, fit, predict
from foresail.perf.intervals import calibrate, excess
from foresail.perf.memory import MEMORY, USABLE_FRAC, upper_bytes
from foresail.perf.sharing import Pair, Sharer, fit_sharing, predict_sharing
from foresail.perf.step_time import STEP_TIME

_PROBES, _LEAST = 8, 12
_TESTED = 150


def data_parallel(runs: Runs, pool: dict[str, list[Trials]], *, seed: int = 0) -> list[Score]:
    """Each (workload, device) of a table from eight probes, with the table's other workloads as prior.

    `pool` collects the trials of all tables.
    """
    planned, random = Trials(), Trials()
    index = measured(runs)
    names = np.array([job.split("/")[0] for job in runs.job])
    for name in np.unique(names[index]):
        rng = np.random.default_rng(seed)
        prior = history([runs], [index[names[index] != name]], rng)
        of_name = index[names[index] == name]
        for job, device in sorted(set(zip(runs.job[of_name], runs.device[of_name], strict=True))):
            own = of_name[(runs.job[of_name] == job) & (runs.device[of_name] == device)]
            if len(own) < _LEAST:
                continue
            plan = own[_planned(prior, runs.take(own))]
            for trials, probes in ((planned, plan), (random, rng.choice(own, _PROBES, replace=False))):
                rest = np.setdiff1d(own, probes)
                if len(rest) > _TESTED:
                    rest = rng.choice(rest, _TESTED, replace=False)
                trials.add(str(name), prior, runs, probes, rest)
    found = []
    for how, trials in (("planned", planned), ("random", random)):
        if trials.errors:
            found.append(_parallel_score(runs.name, how, trials))
            pool.setdefault(how, []).append(trials)
    return found


def pooled(pool: dict[str, list[Trials]]) -> list[Score]:
    """All data-parallel tables as one, where there are several."""
    found = []
    for how, several in pool.items():
        together = Trials()
        for trials in several:
            together.errors += trials.errors
            together.scores += trials.scores
            together.jobs += trials.jobs
        if len(several) > 1:
            found.append(_parallel_score("all of them", how, together))
    return found


def _parallel_score(table: str, how: str, trials: Trials) -> Score:
    figures = summary(trials.errors) | {"coverage": trials.coverage()}
    fine = figures["median"] <= 0.05 and figures["p95"] <= 0.20
    return Score(
        f"data-parallel step time, {_PROBES} {how} probes, prior: other workloads",
        table,
        "median 5 %, p95 20 %",
        percent(figures, "median", "p95", "coverage"),
        fine if how == "planned" else None,
        figures,
    )


def _planned(prior: Fit | None, own: Runs) -> np.ndarray:
    """Two runs that tell most before anything is known of the job, then one after the other."""
    chosen = [int(i) for i in most_telling(STEP_TIME, prior, own.rows, 2)]
    while len(chosen) < _PROBES:
        seen = np.array(chosen)
        model = fit(STEP_TIME, own.rows.take(seen), own.seconds[seen], prior=prior)
        chosen.append(int(most_telling(STEP_TIME, model, own.rows, 1, without=chosen)[0]))
    return np.array(chosen)


def sharded(runs: Runs, *, seed: int = 0) -> list[Score]:
    """Every model size of a table from the others, without a probe."""
    index, trials = measured(runs), Trials()
    for job in np.unique(runs.job[index]):
        own, others = index[runs.job[index] == job], index[runs.job[index] != job]
        prior = history([runs], [others], np.random.default_rng(seed))
        trials.add(str(job), prior, runs, np.array([], int), own)
    figures = summary(trials.errors) | {"coverage": trials.coverage()}
    return [
        Score(
            "large sharded jobs, one model size left out, no probe",
            runs.name,
            "median 3 %, p95 12 %",
            percent(figures, "median", "p95", "coverage"),
            figures["median"] <= 0.03 and figures["p95"] <= 0.12,
            figures,
        )
    ]


def memory(runs: Runs) -> list[Score]:
    """Each job of a table from the others: who is called safe, and how far above the truth the bound lies."""
    known = np.isfinite(runs.memory_gib)
    out = np.isinf(runs.seconds) & ~known
    usable = USABLE_FRAC * runs.rows.memory_bytes
    jobs = np.unique(runs.job[known | out])
    if len(jobs) < 2:
        return []
    bounds = np.full(len(runs), np.nan)
    scores = {job: _memory_scores(runs, known, out, [job]) for job in jobs}
    for job in jobs:
        past = np.concatenate([scores[other] for other in jobs if other != job])
        own = np.flatnonzero(runs.job == job)
        model = _memory_model(runs, known, out, [job])
        prediction = predict(MEMORY, model, runs.rows.take(own))
        bounds[own] = upper_bytes(prediction, factor=calibrate(past, level=0.95, one_sided=True))
    return [_memory_score(runs, known, out, bounds, usable)]


def _memory_model(runs: Runs, known: np.ndarray, out: np.ndarray, without: list[str]):
    fine = np.flatnonzero((known | out) & ~np.isin(runs.job, without))
    values = np.where(out, runs.rows.memory_bytes, runs.memory_gib * 2**30)[fine]
    return fit(MEMORY, runs.rows.take(fine), values, at_least=out[fine], noise_sd=0.03)


def _memory_scores(runs: Runs, known: np.ndarray, out: np.ndarray, without: list[str]) -> np.ndarray:
    own = np.flatnonzero(known & np.isin(runs.job, without))
    if len(own) == 0:
        return np.array([])
    prediction = predict(MEMORY, _memory_model(runs, known, out, without), runs.rows.take(own))
    return excess(prediction, runs.memory_gib[own] * 2**30)


def _memory_score(runs: Runs, known: np.ndarray, out: np.ndarray, bounds: np.ndarray, usable: np.ndarray) -> Score:
    true = runs.memory_gib[known] * 2**30
    over = bounds[known] / true - 1
    figures = {
        "out_of_memory": float(out.sum()),
        "called_safe": float((bounds[out] <= usable[out]).mean()) if out.any() else 0.0,
        "over_mean": float(over.mean()),
        "below_truth": float((over < 0).mean()),
        "n": float(known.sum()),
        "fits_called_unsafe": float((bounds[known] > usable[known]).mean()),
    }
    return Score(
        "memory bound at 95 %, job left out",
        runs.name,
        "2 % of out-of-memory called safe, 15 % over on average",
        f"{percent(figures, 'called_safe')} of {figures['out_of_memory']:.0f}; "
        f"{percent(figures, 'over_mean', 'below_truth', 'fits_called_unsafe')}",
        figures["called_safe"] <= 0.02 and figures["over_mean"] <= 0.15,
        figures,
    )


def pairs(table: Table, *, seed: int = 0, draws: int = 4) -> list[Score]:
    """Slowdowns of pairs from a random 30 % of them; placeholders (equal to alone) left out."""
    usable = [
        e for e in table.rows if np.isfinite(number(e, "step_seconds")) and number(e, "equals_alone", default=0) == 0
    ]
    found = []
    rng = np.random.default_rng(seed)
    for _ in range(draws):
        order = rng.permutation(len(usable))
        cut = round(0.3 * len(usable))
        seen, slow = _both_ways([usable[i] for i in order[:cut]])
        asked, truth = _both_ways([usable[i] for i in order[cut:]])
        found.append(np.abs(predict_sharing(fit_sharing(seen, slow), asked).median / truth - 1))
    figures = summary(found)
    return [
        Score(
            "two jobs on one device, 30 % of pairs measured",
            table.name,
            "median 15 %",
            percent(figures, "median", "p95"),
            figures["median"] <= 0.15,
            figures,
        )
    ]


def _both_ways(entries: list[dict[str, str]]) -> tuple[list[Pair], np.ndarray]:
    made, slow = [], []
    for e in entries:
        one, two = (
            Sharer(
                e[f"{p}workload"],
                number(e, f"{p}micro_batch", default=1.0),
                number(e, f"{p}alone_step_seconds"),
            )
            for p in ("", "other_")
        )
        made.append(Pair(e["device"], one, two))
        slow.append(number(e, "step_seconds") / one.alone_s)
        if one != two:
            made.append(Pair(e["device"], two, one))
            slow.append(number(e, "other_step_seconds") / two.alone_s)
    return made, np.array(slow)


def speed(runs: Runs, *, repeats: int = 9) -> list[Score]:
    """Milliseconds to fit a new job's eight runs on a full history, and to predict 1,000 configurations."""
    index = measured(runs)
    rng = np.random.default_rng(0)
    job = runs.job[index[0]]
    prior = history([runs], [index[runs.job[index] != job]], rng)
    own = index[runs.job[index] == job]
    probes, asked = rng.choice(own, 8, replace=False), runs.rows.take(rng.choice(index, 1000))
    wall, busy = [], []
    for _ in range(repeats):
        start, start_busy = time.perf_counter(), time.process_time()
        model = fit(STEP_TIME, runs.rows.take(probes), runs.seconds[probes], prior=prior)
        predict(STEP_TIME, model, asked)
        wall.append(1e3 * (time.perf_counter() - start))
        busy.append(1e3 * (time.process_time() - start_busy))
    figures = {"wall_ms": float(np.median(wall)), "cpu_ms": float(np.median(busy)), "min_ms": min(wall)}
    return [
        Score(
            f"fit 8 runs on a history of {len(prior.rows) if prior else 0}, predict 1,000 (one thread)",
            runs.name,
            "100 ms",
            f"{figures['cpu_ms']:.0f} ms of processor, {figures['wall_ms']:.0f} ms of wall clock",
            figures["cpu_ms"] <= 100,
            figures,
        )
    ]
