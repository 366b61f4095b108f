"""What the displays cost the driver: microseconds a report, with few and with many trials in the study.

    python benchmarks/display_cost.py

The clock stands still between drawings, as it nearly does at many reports a second; what one drawing costs is told
beside it (there are at most four a second).
"""

from __future__ import annotations

import io
import statistics
import time
from collections.abc import Callable

from rich.console import Console

from foresail.api.lines import Lines
from foresail.api.screen import EVERY_S, Screen
from foresail.core import events as ev
from foresail.core.goal import maximize
from foresail.core.spec import StudySpec
from foresail.core.view import View, apply, fold
from foresail.core.words import Outcome, Status, TrialId, attempt_id
from foresail.space import Float, Space

REPORTS = 20_000
DRAWINGS = 50


def study(trials: int) -> View:
    """So many trials that are over, and one that runs."""
    spec = StudySpec(name="cost", space=Space(lr=Float(0.0, 1.0)).to_dict(), goal=maximize("accuracy", trials=10**9))
    log: list[ev.Event] = [ev.StudyCreated(at_s=0.0, spec=spec), ev.DriverStarted(at_s=0.0, cores=(0,))]
    for n in range(trials + 1):
        trial, attempt = TrialId(n), attempt_id(TrialId(n), 1)
        log.append(ev.TrialProposed(at_s=0.0, trial=trial, config={"lr": 0.5}, origin="random"))
        log.append(ev.AttemptGranted(at_s=0.0, attempt=attempt, trial=trial, number=1, cores=(0,)))
        if n < trials:
            log.append(ev.AttemptEnded(at_s=0.0, attempt=attempt, outcome=Outcome.COMPLETED))
            log.append(ev.TrialEnded(at_s=0.0, trial=trial, status=Status.COMPLETED))
    return fold(log)


def per_report_us(watch: Callable[[View, tuple[ev.Event, ...]], None], view: View) -> float:
    attempt = next(iter(view.attempts))
    costs = []
    for step in range(1, REPORTS + 1):
        point = ev.PointReported(at_s=1.0, attempt=attempt, step=step, metrics={"accuracy": 0.5})
        apply(view, point)
        start = time.perf_counter()
        watch(view, (point,))
        costs.append(time.perf_counter() - start)
    return statistics.median(costs) * 1e6


class Hand:
    def __init__(self) -> None:
        self.s = 0.0

    def __call__(self) -> float:
        return self.s


def per_drawing_ms(screen: Screen, view: View, clock: Hand) -> float:
    costs = []
    for _ in range(DRAWINGS):
        clock.s += EVERY_S
        start = time.perf_counter()
        screen(view, ())
        costs.append(time.perf_counter() - start)
    return statistics.median(costs) * 1e3


def main() -> None:
    print("trials  lines us/report  screen us/report  ms/drawing")
    for trials in (10, 10_000):
        clock = Hand()
        lines = Lines(lambda text: None, clock)
        screen = Screen(Console(file=io.StringIO(), force_terminal=True, width=100), clock)
        quiet, drawn = per_report_us(lines, study(trials)), per_report_us(screen, study(trials))
        row = f"{trials:>6}  {quiet:>15.2f}  {drawn:>16.2f}  {per_drawing_ms(screen, study(trials), clock):>10.2f}"
        screen.close()
        print(row)


if __name__ == "__main__":
    main()
