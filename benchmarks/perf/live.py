"""Three small real jobs on this machine: what is chosen, what it costs, how well the rest is foreseen, and
how trials on one socket disturb each other.

    python -m benchmarks.perf.live --json FILE [--minutes 12]

Every combination of threads, replicas, micro-batch and loader workers is visited, and pairs of equal trials, in random
order, again and again until the minutes are over; the median over visits counts, for a probe and for the truth alike:
a machine that others use is slower in some minutes than in others. FILE is written after each visit: the same command
adds to what an earlier one found. A process that fails three times is left out and counted. How far two visits of one
configuration are apart is printed first: no prediction can be nearer. Two trials at a time are foreseen from runs that
were alone and from pairs of the other jobs. Run it on a quiet machine.
"""

from __future__ import annotations

import dataclasses
import os
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec
import numpy as np
from benchmarks.perf.scoring import Score
from benchmarks.perf.visits import visit

from foresail.api.measuring import Measurement
from foresail.api.profile import machine_name, physical_cores, profile, usable_cores
from foresail.errors import TrainingError
from foresail.perf.cpu import cpu_configurations, cpu_rows
from foresail.perf.fitting import Fit, fit, predict
from foresail.perf.rows import Rows, join
from foresail.perf.step_time import STEP_TIME
from foresail.perf.steps import settled
from foresail.perf.words import Job, SystemConfiguration

_JOBS = ("conv", "mlp", "small_transformer")
_GLOBAL_BATCH = 64
_PROBES = 3
_TRIES = 3
_ONE_S, _SOON_S = 45.0, 4.0
"""A visit is given up after the first; the second is what one takes at most if all is well."""


class Taken(msgspec.Struct):
    """One configuration of a job, `at_once` equal trials at a time: seconds of a step, seconds that measuring
    took, what the steps showed of the job's features."""

    job: str
    system: SystemConfiguration
    at_once: int
    seconds: list[float] = msgspec.field(default_factory=list)
    wall_s: list[float] = msgspec.field(default_factory=list)
    features: list[Job] = msgspec.field(default_factory=list)
    failures: int = 0

    @property
    def truth_s(self) -> float:
        """The median of a step."""
        return statistics.median(self.seconds)


class Kept(msgspec.Struct):
    """What the file holds."""

    taken: list[Taken]
    load_average: float = 0.0
    rows: list[Score] = msgspec.field(default_factory=list)


def expected(jobs: Sequence[str], workers: Sequence[int]) -> list[Taken]:
    """Everything that is to be measured."""
    cores = usable_cores()
    systems = cpu_configurations(global_batch=_GLOBAL_BATCH, cores=cores, loader_workers=workers)
    each = [SystemConfiguration(threads=t, micro_batch=_GLOBAL_BATCH) for t in sorted({1, cores})]
    return [Taken(j, s, 1) for j in jobs for s in systems] + [Taken(j, s, 2) for j in jobs for s in each]


def measure(file: Path, kept: Kept, jobs: Sequence[str], *, minutes: float, seconds: float) -> None:
    """The least visited first, until the minutes are over."""
    deadline, rng = time.monotonic() + 60 * minutes, np.random.default_rng()
    while (left_s := deadline - time.monotonic()) > _SOON_S:
        able = [t for t in kept.taken if t.job in jobs and t.failures < _TRIES]
        if not able:
            return
        least = min(len(t.seconds) for t in able)
        some = [t for t in able if len(t.seconds) == least]
        _visit(some[rng.integers(len(some))], seconds, min(_ONE_S, left_s))
        write(file, kept)
        if len(some) == 1:
            print(f"each was visited {least + 1} times; {left_s:.0f} s left", file=sys.stderr)


def _visit(one: Taken, seconds: float, limit_s: float) -> None:
    start = time.monotonic()
    try:
        found = visit(one.job, one.system, at_once=one.at_once, seconds=seconds, timeout_s=limit_s)
    except TrainingError as error:
        one.failures += 1
        print(f"{one.job} {one.system}: {error}", file=sys.stderr)
        return
    one.seconds.append(found.seconds)
    one.features += [found.job] if found.job is not None else []
    one.wall_s.append(time.monotonic() - start)


def write(file: Path, kept: Kept) -> None:
    """The whole file, or the old one stays."""
    beside = file.with_suffix(".part")
    beside.write_bytes(msgspec.json.format(msgspec.json.encode(kept), indent=1))
    beside.replace(file)


def apart(taken: Sequence[Taken]) -> float:
    """Median relative distance of the first two visits of a configuration (NaN without any)."""
    ratios = [abs(t.seconds[0] / t.seconds[1] - 1) for t in taken if len(t.seconds) > 1]
    return statistics.median(ratios) if ratios else float("nan")


@dataclasses.dataclass(frozen=True)
class Exhaustive:
    """Every measured configuration of one job, alone."""

    name: str
    taken: list[Taken]

    @property
    def job(self) -> Job:
        """Its features, as the visits of the configuration that would run unasked showed them."""
        return _job(self.name, [t for t in self.taken if t.system == _wide()])

    @property
    def rows(self) -> Rows:
        """The runs."""
        return _rows(self.job, [t.system for t in self.taken])

    @property
    def seconds(self) -> np.ndarray:
        """Of a step of each."""
        return np.array([t.truth_s for t in self.taken])


def _wide() -> SystemConfiguration:
    return SystemConfiguration(threads=usable_cores(), micro_batch=_GLOBAL_BATCH)


def _job(name: str, taken: Sequence[Taken]) -> Job:
    seen = [job for t in taken for job in t.features]
    if not seen:
        return Job(name=name)
    return msgspec.structs.replace(seen[0], name=name, input_s=statistics.median(job.input_s or 0.0 for job in seen))


def _rows(job: Job, systems: Sequence[SystemConfiguration], *, busy: int | None = None) -> Rows:
    return cpu_rows(
        job,
        systems,
        cores=physical_cores(),
        logical=usable_cores(),
        machine=machine_name(),
        busy_threads=busy,
    )


def tables_of(taken: Sequence[Taken]) -> list[Exhaustive]:
    """A table for each job that has one."""
    alone = [t for t in taken if t.at_once == 1 and t.seconds]
    return [Exhaustive(name, [t for t in alone if t.job == name]) for name in dict.fromkeys(t.job for t in alone)]


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
    by_system = {t.system: t for t in own.taken}

    def replayed(system: SystemConfiguration) -> Measurement:
        one = by_system[system]
        job = own.job if system == _wide() and own.job.is_known else None
        return Measurement(system, settled([one.truth_s] * 6), 3e8, sum(one.wall_s), job)

    result = profile(
        own.name, list(by_system), job=Job(name=own.name), probes=_PROBES, prior=prior, measure_one=replayed
    )
    best = float(own.seconds.min())
    unseen = [line for line in result.lines if line.measured_s is None]
    errors = [abs(line.predicted_s / by_system[line.system].truth_s - 1) for line in unseen]
    figures = {
        "regret": by_system[result.advised].truth_s / best - 1,
        "cost_frac": result.spent_s / sum(sum(t.wall_s) for t in own.taken),
        "median": float(np.median(errors)) if errors else float("nan"),
        "p95": float(np.quantile(errors, 0.95)) if errors else float("nan"),
        "worst_to_best": float(own.seconds.max() / best),
    }
    return Score(
        f"this machine, {own.name}: {len(own.taken)} combinations, {result.probes} probes",
        "live",
        "within 3 % of the best at 10 % of the cost, unmeasured within 10 % median",
        f"{figures['regret']:.1%} of the best at {figures['cost_frac']:.1%}, median {figures['median']:.1%}, p95 "
        f"{figures['p95']:.1%} (worst is {figures['worst_to_best']:.1f} times the best)",
        figures["regret"] <= 0.03 and figures["cost_frac"] <= 0.10 and figures["median"] <= 0.10,
        figures,
    )


def sharing(tables: list[Exhaustive], pairs: Sequence[Taken]) -> list[Score]:
    """Two trials at a time, against one that has all threads; predicted from runs that were alone, and from pairs of
    the other jobs."""
    names = {t.name for t in tables}
    return [_together(one, tables, [p for p in pairs if p.job != one.job]) for one in pairs if one.job in names]


def _together(one: Taken, tables: list[Exhaustive], others: Sequence[Taken]) -> Score:
    jobs = {t.name: t.job for t in tables}
    rows = [*(t.rows for t in tables), *(_rows(jobs[p.job], [p.system], busy=2 * p.system.threads) for p in others)]
    times = [*(t.seconds for t in tables), np.array([p.truth_s for p in others])]
    model = fit(STEP_TIME, join(*rows), np.concatenate(times))
    busy = _rows(jobs[one.job], [one.system], busy=2 * one.system.threads)
    guess = float(predict(STEP_TIME, model, busy).median[0])
    wide = _wide()
    alone = {(t.name, s.system): s.truth_s for t in tables for s in t.taken}
    single = alone.get((one.job, wide), float("nan"))
    figures = {
        "measured_s": one.truth_s,
        "predicted_s": guess,
        "error": abs(guess / one.truth_s - 1),
        "one_with_all_threads_s": single,
        "measured_gain": 2 * single / one.truth_s,
        "predicted_gain": 2 * single / guess,
    }
    return Score(
        f"this machine, two trials of {one.job}, {one.system.threads} thread(s) each",
        "live",
        "predicted within 10 %",
        f"measured {1e3 * one.truth_s:.3g} ms, predicted {1e3 * guess:.3g} ms ({figures['error']:.0%} off); together "
        f"{figures['measured_gain']:.2f} times the samples of one trial on {wide.threads} threads "
        f"(predicted {figures['predicted_gain']:.2f})",
        figures["error"] <= 0.10,
        figures,
    )


@click.command()
@click.option("--minutes", default=12.0, show_default=True, help="At most.")
@click.option("--seconds", default=1.0, show_default=True, help="Of steps for each visit.")
@click.option("--job", "jobs", multiple=True, type=click.Choice(_JOBS), default=_JOBS, help="Which jobs.")
@click.option("--workers", multiple=True, default=(0, 1, 2), show_default=True, help="Loader workers to try.")
@click.option("--json", "file", type=click.Path(path_type=Path), required=True, help="Times and rows; gone on with.")
@click.option("--replay", is_flag=True, help="Score what the file holds, measure nothing.")
def main(
    minutes: float, seconds: float, jobs: tuple[str, ...], workers: tuple[int, ...], file: Path, replay: bool
) -> None:
    """Measure, adding to what the file holds, and score."""
    kept = msgspec.json.decode(file.read_bytes(), type=Kept) if file.exists() else Kept([], os.getloadavg()[0])
    if not replay:
        known = {(t.job, t.system, t.at_once) for t in kept.taken}
        kept.taken += [t for t in expected(jobs, workers) if (t.job, t.system, t.at_once) not in known]
        measure(file, kept, jobs, minutes=minutes, seconds=seconds)
    taken = [t for t in kept.taken if t.seconds]
    print(
        f"{len(taken)} of {len(kept.taken)} measured, {sum(t.failures for t in kept.taken)} failures; two visits "
        f"are {apart(taken):.1%} apart (median); load average at the start {kept.load_average:.2f}"
    )
    tables = tables_of(taken)
    kept.rows = [*scores_of(tables), *sharing(tables, [t for t in taken if t.at_once == 2])]
    for score in kept.rows:
        print(f"{'holds' if score.holds else 'MISSES'} {score.point}: goal {score.goal}; reached {score.reached}")
    write(file, kept)


if __name__ == "__main__":
    main()
