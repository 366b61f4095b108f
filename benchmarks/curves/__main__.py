"""Quality and speed of the learning-curve model: `python -m benchmarks.curves TRACE_FOLDER... --json FILE`.

A folder may be one trace or hold several. Each trace becomes studies of 60 trials with their hyperparameters
(ten finished, ten at 40 %, ten at 15 %, thirty cut at the prefix and forecast). Prints tables and the
acceptance list. Run it with one thread (OMP_NUM_THREADS=1) for the times to mean anything.
"""

from __future__ import annotations

import argparse
import json
import sys
import zlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.curves import contest, speed, tables
from benchmarks.curves.traces import Trace, load


def main() -> None:
    arguments = _arguments()
    traces = [load(folder) for folder in _folders(arguments.folders)]
    if not traces:
        sys.exit("no trace.json under the folders given")
    result: dict[str, Any] = {"traces": [t.name for t in traces], "seed": arguments.seed}
    rows: list[tables.Row] = []
    if not arguments.speed_only:
        result |= quality(traces, arguments.seed, arguments.repeats, arguments.mcmc, rows)
    if not arguments.no_speed:
        result["speed"] = speed.measure()
        rows += speed.acceptance(result["speed"])
        print(tables.show([{"what": k, "value": v} for k, v in result["speed"].items()]), "\n")
    print(tables.show(rows))
    result["acceptance"] = [asdict(row) for row in rows]
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1, default=float) + "\n")


def quality(traces: list[Trace], seed: int, repeats: int, mcmc_trials: int, rows: list[tables.Row]) -> dict[str, Any]:
    """Runs the contest, prints its tables, and adds to the acceptance list."""
    main_rows, early_rows = contest.Rows(), contest.Rows()
    top: dict[str, dict[str, float]] = {}
    residuals = {p: contest.residuals_of(traces, p, seed) for p in contest.PREFIXES}
    for trace in traces:
        print(trace.name, file=sys.stderr, flush=True)
        for repeat in range(repeats):

            def rng(part: str, repeat: int = repeat, name: str = trace.name) -> np.random.Generator:
                return np.random.default_rng([seed, repeat, zlib.crc32(f"{name} {part}".encode())])

            for p in contest.PREFIXES:
                contest.run_cell(main_rows, trace, p, residuals[p][trace.name], rng(f"main {p}"),
                                 mcmc_trials=mcmc_trials if repeat == 0 else 0, rivals=True)  # fmt: skip
            for p in contest.EARLY:
                contest.run_cell(early_rows, trace, p, {}, rng(f"early {p}"), mcmc_trials=0, rivals=False)
            found = contest.top_found(trace, rng("top"))
            before = top.get(trace.name, dict.fromkeys(found, 0.0))
            top[trace.name] = {k: before[k] + v / repeats for k, v in found.items()}
    main, early = main_rows.table(), early_rows.table()
    by_method, by_prefix, at_first = tables.methods_table(main), tables.prefix_table(main), tables.early_table(early)
    print(tables.show(by_method), "\n")
    print(tables.show(by_prefix), "\n")
    print(tables.show(at_first), "\n")
    rows += tables.acceptance(main, early, top, {t.name: t.family for t in traces})
    return {"methods": by_method, "prefixes": by_prefix, "early": at_first, "top": top}


def _folders(given: list[Path]) -> list[Path]:
    found = [f for top in given for f in ([top] if (top / "trace.json").exists() else sorted(top.iterdir()))]
    return [f for f in found if (f / "trace.json").exists()]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.curves", description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="TRACE_FOLDER")
    parser.add_argument("--json", type=Path, help="write all tables here")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=1, help="studies drawn from each trace at each prefix")
    parser.add_argument("--mcmc", type=int, default=3, help="forecasts by MCMC in each study, half a second each")
    parser.add_argument("--no-speed", action="store_true")
    parser.add_argument("--speed-only", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
