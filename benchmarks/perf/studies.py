"""How well seconds of a step are foreseen inside a study: before a trial starts, and after it has shown k steps.

    python -m benchmarks.perf.studies TRACE_FOLDER_OR_STUDY... [--json FILE]

Recorded configurations are played in a random order as one study; those with an even place train to their end, the
others stop after eight steps, as in a study that ends trials. What is foreseen at a moment rests on what was reported
before it; the truth is the mean of the steps that come after. Beside it stands what served before: a ridge regression
on the hyperparameters before the start, a trial's own mean after it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np

from foresail.perf.speeds import Speeds
from foresail.replay.source import read
from foresail.replay.trace import Trace

MOMENTS = (0, 1, 2, 5)
SHORT = 8
Rows = list[tuple[int, float, float, float]]
"""(steps seen, log error of the model, of what served before, claimed deviation)."""


def played(trace: Trace, *, trials: int, seed: int) -> Rows:
    """One study of recorded configurations."""
    order = np.random.default_rng(seed).permutation(len(trace.configs))[:trials]
    speeds, plain, found = Speeds(), Plain(), []
    for place, row in enumerate(order):
        unit, curve = trace.space.to_unit(trace.configs[row]), trace.curves[row]
        seconds = np.diff(curve.seconds, prepend=0.0)
        upto = len(seconds) if place % 2 == 0 else min(SHORT, len(seconds))
        for step in range(upto):
            left = seconds[step:]
            if step in MOMENTS and len(left) >= 3 and (left > 0).all():
                truth, said = math.log(left.mean()), speeds.expected(place, unit)
                if said is not None:
                    before = plain.expected(unit, seconds[:step])
                    found.append((step, said.log_median - truth, before - truth, said.log_sd))
            speeds.add(place, unit, seconds[step], first=step == 0)
        plain.add(unit, seconds[0])
    return found


class Plain:
    """What served before: ridge regression of the log seconds of first reports, and plain means."""

    def __init__(self) -> None:
        self.rows: list[np.ndarray] = []
        self.values: list[float] = []

    def add(self, unit: object, seconds: float) -> None:
        if seconds > 0:
            self.rows.append(np.array([1.0, *(np.asarray(unit, float) - 0.5)]))
            self.values.append(math.log(seconds))

    def expected(self, unit: object, own: np.ndarray) -> float:
        if len(own):
            return math.log(own.mean())
        rows, row = np.array(self.rows), np.array([1.0, *(np.asarray(unit, float) - 0.5)])
        prior = np.diag([1e-9, *(1.0 for _ in row[1:])])
        return float(row @ np.linalg.solve(rows.T @ rows + prior, rows.T @ np.array(self.values)))


def rows_of(name: str, found: Rows) -> Iterator[dict[str, float | str]]:
    """A row for each moment."""
    errors = np.array(found)
    for moment in MOMENTS:
        mine = errors[errors[:, 0] == moment]
        if not len(mine):
            continue
        off, before = np.abs(mine[:, 1]), np.abs(mine[:, 2])
        yield {
            "study": name,
            "steps": moment,
            "count": len(mine),
            "median": float(np.median(off)),
            "rms": float(np.sqrt((off**2).mean())),
            "median_before": float(np.median(before)),
            "rms_before": float(np.sqrt((before**2).mean())),
            "coverage": float((off <= 1.645 * mine[:, 3]).mean()),
        }


@click.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--trials", default=60, show_default=True, help="Of a study.")
@click.option("--seeds", default=3, show_default=True, help="Orders of the configurations.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the rows here.")
def main(sources: tuple[Path, ...], trials: int, seeds: int, json_file: Path | None) -> None:
    """Play the studies and print a row for each moment."""
    rows: list[dict[str, float | str]] = []
    print(f"{'study':32} steps  error of log seconds (median/rms): now, before   90 % covers")
    for source in sources:
        trace = read(str(source))
        found = [row for seed in range(seeds) for row in played(trace, trials=trials, seed=seed)]
        for row in rows_of(trace.name, found):
            rows.append(row)
            now, before = f"{row['median']:.3f}/{row['rms']:.3f}", f"{row['median_before']:.3f}/{row['rms_before']:.3f}"
            print(f"{row['study']:32} {row['steps']:5}  {now:>14} {before:>14}   {row['coverage']:.1%}")
    for moment in MOMENTS:
        mine = [row for row in rows if row["steps"] == moment]
        ratios = [[float(row[key]) / float(row[f"{key}_before"]) for row in mine] for key in ("median", "rms")]
        shown = " ".join(f"{math.exp(np.mean(np.log(r))):.3f}" for r in ratios)
        print(f"geometric mean of the error over the one before, after {moment} steps (median, rms): {shown}")
    if json_file is not None:
        json_file.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
