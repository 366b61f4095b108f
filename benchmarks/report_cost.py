"""What a report costs the training process: microseconds of `run.report`, with the spool on a real disk.

    python benchmarks/report_cost.py [--reports 20000]

Beside it, for the scale of the machine: one `os.write` of the same bytes to the same kind of file.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from foresail.core.goal import Goal
from foresail.core.words import AttemptId, TrialId
from foresail.worker.folder import StudyFolder
from foresail.worker.grant import Grant, write_grant
from foresail.worker.run import Run
from foresail.worker.spool import Spool


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--reports", type=int, default=20_000)
    reports = options.parse_args().reports
    with tempfile.TemporaryDirectory(dir=".") as folder:
        show("report, 2 metrics, with the driver's bell", time_reports(Path(folder), reports))
        show("bare write of as many bytes", time_writes(Path(folder), reports))


def time_reports(folder: Path, reports: int) -> list[float]:
    grant = Grant(
        root=str(folder),
        attempt=AttemptId("0-1"),
        trial=TrialId(0),
        number=1,
        config={"lr": 0.1},
        goal=Goal("accuracy", "max", trials=1),
    )
    place = StudyFolder(folder).attempt(grant.attempt)
    write_grant(place, grant)
    ear, bell = os.pipe()
    os.set_blocking(bell, False)
    os.set_blocking(ear, False)
    run = Run(grant, spool=Spool(place.spool, bell=bell))
    costs = []
    for step in range(1, reports + 1):
        began = time.perf_counter()
        run.report(step, accuracy=step / reports, loss=1 / step)
        costs.append(time.perf_counter() - began)
        if step % 100 == 0:
            os.read(ear, 4096)
    return costs


def time_writes(folder: Path, writes: int) -> list[float]:
    line = b'{"is":"Point","step":10000,"metrics":{"accuracy":0.5,"loss":0.0001},"seconds":0.0000123456}\n'
    file = os.open(folder / "bare", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    costs = []
    for _ in range(writes):
        began = time.perf_counter()
        os.write(file, line)
        costs.append(time.perf_counter() - began)
    os.close(file)
    return costs


def show(what: str, costs: list[float]) -> None:
    cuts = statistics.quantiles(costs, n=100)
    print(f"{what}: median {1e6 * cuts[49]:.1f} us, 99th percentile {1e6 * cuts[98]:.1f} us")


if __name__ == "__main__":
    main()
