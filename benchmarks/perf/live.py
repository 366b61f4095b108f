"""Three small real jobs on this machine: what is chosen, what it costs, how well the rest is foreseen, and
how trials on one socket disturb each other.

    python -m benchmarks.perf.live --json FILE [--seconds 1.0] [--rounds 3]

Every combination is measured, in rounds that visit all of them in a new order, and the median over rounds is
taken as the truth: a machine that others use is slower in some minutes than in others. Run it on a quiet
machine.
"""

from __future__ import annotations

import dataclasses
import json
import statistics
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


def exhaustive(
    name: str, *, seconds: float, rounds: int, workers: Sequence[int], rng: np.random.Generator
) -> Exhaustive:
    """Measure all combinations of threads, replicas, micro-batch and loader workers, interleaved."""
    cores = usable_cores()
    systems = cpu_configurations(global_batch=_GLOBAL_BATCH, cores=cores, loader_workers=workers)
    times: list[list[float]] = [[] for _ in systems]
    spent = 0.0
    for _ in range(rounds):
        for i in rng.permutation(len(systems)):
            found = measure(Run(_target(name), systems[i]), seconds=seconds)
            if found.steps is not None:
                times[i].append(found.steps.seconds)
                spent += found.spent_s
    return Exhaustive(name, tuple(systems), np.array([statistics.median(t) for t in times]), spent / rounds)


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


def sharing(tables: list[Exhaustive], *, seconds: float, rounds: int) -> list[Score]:
    """Two trials at one thread each, and both with all threads, predicted from what was measured alone."""
    cores, found = usable_cores(), []
    for own in tables:
        one = SystemConfiguration(threads=1, micro_batch=_GLOBAL_BATCH)
        every = SystemConfiguration(threads=cores, micro_batch=_GLOBAL_BATCH)
        alone = fit(STEP_TIME, join(*(t.rows for t in tables)), np.concatenate([t.seconds for t in tables]))
        for system, what in ((one, "one thread each"), (every, "all threads each, the default")):
            measured = [
                m.steps.seconds
                for _ in range(rounds)
                for m in measure_together([Run(_target(own.name), system)] * 2, seconds=seconds)
                if m.steps is not None
            ]
            truth = statistics.median(measured)
            rows = _rows(own.name, [system], busy=2 * system.threads)
            guess = float(predict(STEP_TIME, alone, rows).median[0])
            figures = {"measured_s": truth, "predicted_s": guess, "error": abs(guess / truth - 1)}
            found.append(
                Score(
                    f"this machine, two trials of {own.name}, {what}",
                    "live",
                    "predicted within 10 %",
                    f"measured {truth:.4f} s, predicted {guess:.4f} s ({figures['error']:.0%} off)",
                    figures["error"] <= 0.10,
                    figures,
                )
            )
    return found


@click.command()
@click.option("--seconds", default=1.0, show_default=True, help="Of steps for each measurement.")
@click.option("--rounds", default=3, show_default=True, help="Over all combinations; medians are taken.")
@click.option("--job", "jobs", multiple=True, type=click.Choice(_JOBS), default=_JOBS, help="Which jobs.")
@click.option("--workers", multiple=True, default=(0, 1, 2), show_default=True, help="Loader workers to try.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write rows and times here.")
@click.option("--replay", type=click.Path(exists=True, path_type=Path), help="Score what such a file measured.")
def main(
    seconds: float,
    rounds: int,
    jobs: tuple[str, ...],
    workers: tuple[int, ...],
    json_file: Path | None,
    replay: Path | None,
) -> None:
    """Measure and score."""
    if replay is not None:
        _print(scores_of(_replayed(replay)))
        return
    rng = np.random.default_rng(0)
    tables = [exhaustive(name, seconds=seconds, rounds=rounds, workers=workers, rng=rng) for name in jobs]
    scores = [*scores_of(tables), *sharing(tables, seconds=seconds, rounds=rounds)]
    _print(scores)
    if json_file is not None:
        measured = [
            {
                "job": t.name,
                "systems": msgspec.to_builtins(t.systems),
                "seconds": t.seconds.tolist(),
                "spent_s": t.spent_s,
            }
            for t in tables
        ]
        rows = [dataclasses.asdict(s) for s in scores]
        json_file.write_text(json.dumps({"rows": rows, "measured": measured}, indent=1), encoding="utf-8")


def _print(scores: list[Score]) -> None:
    for score in scores:
        mark = "holds" if score.holds else "MISSES"
        print(f"{mark} {score.point}: goal {score.goal}; reached {score.reached}")


def _replayed(file: Path) -> list[Exhaustive]:
    """The measurements of an earlier run."""
    kept = json.loads(file.read_text(encoding="utf-8"))["measured"]
    return [
        Exhaustive(
            one["job"],
            msgspec.convert(one["systems"], tuple[SystemConfiguration, ...]),
            np.array(one["seconds"]),
            one["spent_s"],
        )
        for one in kept
    ]


if __name__ == "__main__":
    main()
