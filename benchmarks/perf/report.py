"""Every table found, every row that it can answer, printed and written as JSON."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import click
from benchmarks.perf import others, planning, transformers
from benchmarks.perf.scoring import Score, Trials
from benchmarks.perf.tables import Runs, Table, find, runs_of

_OWN = Path(__file__).parent / "tables"


@click.command()
@click.argument("folders", nargs=-1, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the rows to this file too.")
@click.option("--own/--no-own", default=True, help="Also the small tables that the repository carries.")
def main(folders: tuple[Path, ...], json_file: Path | None, own: bool) -> None:
    """Score the performance model on tables of measured runs."""
    tables = list(find([*folders, *([_OWN] if own else [])]))
    found = []
    for score in scores(tables):
        found.append(score)
        mark = {True: "holds", False: "MISSES", None: "-"}[score.holds]
        print(f"{mark:6s} {score.table:22s} {score.point}\n       goal {score.goal}; reached {score.reached}")
        sys.stdout.flush()
    if json_file is not None:
        json_file.write_text(
            json.dumps([dataclasses.asdict(s) for s in found], indent=1, default=bool), encoding="utf-8"
        )


def scores(tables: list[Table]) -> Iterator[Score]:
    """The rows of every table by the columns that it has."""
    for table in tables:
        if "other_workload" in table.columns:
            yield from others.pairs(table)
    yield from planning.published(tables)
    runs = [r for t in tables if "other_workload" not in t.columns and (r := runs_of(t)) is not None]
    pool: dict[str, list[Trials]] = {}
    for one in runs:
        yield from _of(one, pool)
    yield from others.pooled(pool)


def _of(runs: Runs, pool: dict[str, list[Trials]]) -> Iterator[Score]:
    import numpy as np

    if np.isfinite(runs.memory_gib).sum() >= 10:
        yield from others.memory(runs)
    if not runs.known:
        yield from others.data_parallel(runs, pool)
    elif runs.tensor_parallel and len(runs) >= 100:
        yield from transformers.unseen_size(runs)
        yield from transformers.unseen_size(runs, other_hidden=True)
        yield from transformers.choice(runs)
        yield from transformers.choice(runs, other_hidden=True)
        yield from others.speed(runs)
    elif len(runs) >= 50 and (runs.rows.stage >= 2).any():
        yield from others.sharded(runs)
