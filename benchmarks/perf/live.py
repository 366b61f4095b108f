"""Three small real jobs on this machine: what is chosen, what it costs, how well the rest is foreseen, and
how trials on one socket disturb each other.

    python -m benchmarks.perf.live --json FILE [--minutes 10]

Every combination is measured, in rounds that visit all of all jobs in a new order, as many as the minutes allow (one at
least); the median over rounds is taken as the truth: a machine that others use is slower in some minutes than in
others. Run it on a quiet machine. How far two rounds are apart is printed first: no prediction can be nearer than that.
Two trials at a time are foreseen from runs that were alone and from pairs of the other jobs.
"""

from __future__ import annotations

import dataclasses
import json
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec
import numpy as np
from benchmarks.perf.scoring import Score

from foresail.api.measuring import Measurement, Run, measure, measure_together
from foresail.api.profile import machine_name, physical_cores, profile, usable_cores
from foresail.perf.cpu import cpu_configurations, cpu_rows
from foresail.perf.fitting import Fit, fit, predict
from foresail.perf.rows import Rows, join
from foresail.perf.step_time import STEP_TIME
from foresail.perf.steps import settled
from foresail.perf.words import Job, SystemConfiguration

_JOBS = ("conv", "mlp", "small_transformer")
_GLOBAL_BATCH = 64
_PROBES = 3
Pairs = dict[tuple[str, SystemConfiguration], float]
"""Seconds of a step of two equal trials at a time, by job and system configuration."""


@dataclasses.dataclass(frozen=True)
class Exhaustive:
    """Every configuration of a job, its seconds per step, and the seconds of steps that measuring all
    took."""

    name: str
    systems: tuple[SystemConfiguration, ...]
    seconds: np.ndarray
    spent_s: float

    @property
    def rows(self) -> Rows:
        """The runs."""
        return _rows(self.name, self.systems)


def _rows(name: str, systems: Sequence[SystemConfiguration], *, busy: int | None = None) -> Rows:
    return cpu_rows(
        Job(name=name),
        systems,
        cores=physical_cores(),
        logical=usable_cores(),
        machine=machine_name(),
        busy_threads=busy,
    )


def _target(name: str) -> str:
    return f"{Path(__file__).parent / 'jobs.py'}:{name}"


class Rounds:
    """All combinations of threads, replicas, micro-batch and loader workers of all jobs, and pairs of trials,
    measured round after round."""

    def __init__(self, jobs: Sequence[str], *, seconds: float, workers: Sequence[int]) -> None:
        cores = usable_cores()
        systems = cpu_configurations(global_batch=_GLOBAL_BATCH, cores=cores, loader_workers=workers)
        self.seconds, self.rng = seconds, np.random.default_rng(0)
        self.alone: dict[tuple[str, SystemConfiguration], list[float]] = {(j, s): [] for j in jobs for s in systems}
        each = [SystemConfiguration(threads=t, micro_batch=_GLOBAL_BATCH) for t in sorted({1, cores})]
        self.pairs: dict[tuple[str, SystemConfiguration], list[float]] = {(j, s): [] for j in jobs for s in each}
        self.spent = dict.fromkeys(jobs, 0.0)
        self.done = 0

    def run(self, minutes: float) -> None:
        """As many as fit, one at least."""
        start = time.monotonic()
        while not self.done or (time.monotonic() - start) * (1 + 1 / self.done) <= 60 * minutes:
            self._once()
            self.done += 1
            print(f"round {self.done}: {time.monotonic() - start:.0f} s so far", file=sys.stderr)

    def _once(self) -> None:
        keys = list(self.alone)
        for i in self.rng.permutation(len(keys)):
            name, system = keys[i]
            found = measure(Run(_target(name), system), seconds=self.seconds)
            if found.steps is not None:
                self.alone[keys[i]].append(found.steps.seconds)
                self.spent[name] += found.spent_s
        for (name, system), times in self.pairs.items():
            together = measure_together([Run(_target(name), system)] * 2, seconds=self.seconds)
            times.extend(m.steps.seconds for m in together if m.steps is not None)

    @property
    def apart(self) -> float:
        """Median over combinations of the relative distance of two rounds (NaN after one)."""
        ratios = [abs(a / b - 1) for a, b, *_ in (t for t in self.alone.values() if len(t) > 1)]
        return statistics.median(ratios) if ratios else float("nan")

    @property
    def tables(self) -> list[Exhaustive]:
        """The medians, a table for each job."""
        found = []
        for name in self.spent:
            own = {system: times for (job, system), times in self.alone.items() if job == name and times}
            medians = np.array([statistics.median(times) for times in own.values()])
            found.append(Exhaustive(name, tuple(own), medians, self.spent[name] / self.done))
        return found


def scores_of(tables: list[Exhaustive]) -> list[Score]:
    """Choice and prediction for each job, the other jobs as this machine's history."""
    found = []
    for own in tables:
        others = [t for t in tables if t is not own]
        prior = None
        if others:
            prior = fit(STEP_TIME, join(*(t.rows for t in others)), np.concatenate([t.seconds for t in others]))
        found.append(_score(own, prior))
    return found


def _score(own: Exhaustive, prior: Fit | None) -> Score:
    each = own.spent_s / len(own.systems)
    truth = dict(zip(own.systems, own.seconds, strict=True))

    def replayed(system: SystemConfiguration) -> Measurement:
        return Measurement(system, settled([truth[system]] * 6), 3e8, each)

    result = profile(own.name, own.systems, job=Job(name=own.name), probes=_PROBES, prior=prior, measure_one=replayed)
    best = float(own.seconds.min())
    unseen = [line for line in result.lines if line.measured_s is None]
    errors = [abs(line.predicted_s / truth[line.system] - 1) for line in unseen]
    figures = {
        "regret": float(truth[result.advised] / best - 1),
        "cost_frac": result.spent_s / own.spent_s,
        "median": float(np.median(errors)),
        "p95": float(np.quantile(errors, 0.95)),
        "worst_to_best": float(own.seconds.max() / best),
    }
    return Score(
        f"this machine, {own.name}: {len(own.systems)} combinations, {result.probes} probes",
        "live",
        "within 3 % of the best at 10 % of the cost, unmeasured within 10 % median",
        f"{figures['regret']:.1%} of the best at {figures['cost_frac']:.1%}, median {figures['median']:.1%} "
        f"(worst is {figures['worst_to_best']:.1f} times the best)",
        figures["regret"] <= 0.03 and figures["cost_frac"] <= 0.10 and figures["median"] <= 0.10,
        figures,
    )


def sharing(tables: list[Exhaustive], pairs: Pairs) -> list[Score]:
    """Two trials at a time, against one that has all threads; predicted from runs that were alone, and from pairs of
    the other jobs."""
    scores = []
    for (name, system), truth in pairs.items():
        others = [(job, s, t) for (job, s), t in pairs.items() if job != name]
        rows = [*(t.rows for t in tables), *(_rows(job, [s], busy=2 * s.threads) for job, s, _ in others)]
        times = [*(t.seconds for t in tables), np.array([t for _, _, t in others])]
        model = fit(STEP_TIME, join(*rows), np.concatenate(times))
        guess = float(predict(STEP_TIME, model, _rows(name, [system], busy=2 * system.threads)).median[0])
        own = next(t for t in tables if t.name == name)
        wide = SystemConfiguration(threads=usable_cores(), micro_batch=_GLOBAL_BATCH)
        single = float(own.seconds[own.systems.index(wide)]) if wide in own.systems else float("nan")
        figures = {
            "measured_s": truth,
            "predicted_s": guess,
            "error": abs(guess / truth - 1),
            "one_with_all_threads_s": single,
            "measured_gain": 2 * single / truth,
            "predicted_gain": 2 * single / guess,
        }
        scores.append(
            Score(
                f"this machine, two trials of {name}, {system.threads} thread(s) each",
                "live",
                "predicted within 10 %",
                f"measured {1e3 * truth:.3g} ms, predicted {1e3 * guess:.3g} ms ({figures['error']:.0%} off); together "
                f"{figures['measured_gain']:.2f} times the samples of one trial on {wide.threads} threads "
                f"(predicted {figures['predicted_gain']:.2f})",
                figures["error"] <= 0.10,
                figures,
            )
        )
    return scores


@click.command()
@click.option("--minutes", default=10.0, show_default=True, help="For rounds; at least one is measured.")
@click.option("--seconds", default=0.4, show_default=True, help="Of steps for each measurement.")
@click.option("--job", "jobs", multiple=True, type=click.Choice(_JOBS), default=_JOBS, help="Which jobs.")
@click.option("--workers", multiple=True, default=(0, 1, 2), show_default=True, help="Loader workers to try.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write rows and times here.")
@click.option("--replay", type=click.Path(exists=True, path_type=Path), help="Score what such a file measured.")
def main(
    minutes: float,
    seconds: float,
    jobs: tuple[str, ...],
    workers: tuple[int, ...],
    json_file: Path | None,
    replay: Path | None,
) -> None:
    """Measure and score."""
    if replay is not None:
        tables, pairs = _replayed(replay)
        _print([*scores_of(tables), *sharing(tables, pairs)])
        return
    rounds = Rounds(jobs, seconds=seconds, workers=workers)
    rounds.run(minutes)
    tables, pairs = rounds.tables, {key: statistics.median(times) for key, times in rounds.pairs.items() if times}
    print(f"{rounds.done} rounds; two rounds are {rounds.apart:.1%} apart (median)")
    scores = [*scores_of(tables), *sharing(tables, pairs)]
    _print(scores)
    if json_file is not None:
        kept = {
            "rows": [dataclasses.asdict(score) for score in scores],
            "rounds": rounds.done,
            "apart": rounds.apart,
            "measured": [
                {
                    "job": t.name,
                    "systems": msgspec.to_builtins(t.systems),
                    "seconds": t.seconds.tolist(),
                    "spent_s": t.spent_s,
                }
                for t in tables
            ],
            "pairs": [
                {"job": name, "system": msgspec.to_builtins(system), "seconds": seconds}
                for (name, system), seconds in pairs.items()
            ],
        }
        json_file.write_text(json.dumps(kept, indent=1), encoding="utf-8")


def _print(scores: list[Score]) -> None:
    for score in scores:
        mark = "holds" if score.holds else "MISSES"
        print(f"{mark} {score.point}: goal {score.goal}; reached {score.reached}")


def _replayed(file: Path) -> tuple[list[Exhaustive], Pairs]:
    """The measurements of an earlier run."""
    kept = json.loads(file.read_text(encoding="utf-8"))
    tables = [
        Exhaustive(
            one["job"],
            msgspec.convert(one["systems"], tuple[SystemConfiguration, ...]),
            np.array(one["seconds"]),
            one["spent_s"],
        )
        for one in kept["measured"]
    ]
    pairs = {
        (one["job"], msgspec.convert(one["system"], SystemConfiguration)): one["seconds"]
        for one in kept.get("pairs", ())
    }
    return tables, pairs


if __name__ == "__main__":
    main()
