"""How long the data of the plots takes: PYTHONPATH=src OMP_NUM_THREADS=1 python benchmarks/plots.py [--trials 1000].

A made-up study on eight cores; with `--policy fifo` every trial has all of its points. One line a step: milliseconds of
CPU, best of three, and kilobytes of JSON.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import msgspec

from foresail import plots
from foresail.core.goal import Goal
from foresail.core.spec import Choice, Resources, StudySpec
from foresail.executors.replay import Recording
from foresail.policies.registry import make
from foresail.replay.session import Setting, run
from foresail.replay.table import RECORDED
from foresail.replay.trace import Trace
from foresail.space import Float, Int, Space
from foresail.stores.memory import MemoryStore

SPACE = Space(lr=Float(1e-4, 1.0, log=True), momentum=Float(0.0, 0.99), width=Int(8, 256, log=True), depth=Int(1, 8))


def trace_of(trials: int, points: int) -> Trace:
    """Saturating curves with noise, each at its own speed."""
    rng = Random(0)
    configs, curves = [], []
    for _ in range(trials):
        configs.append(SPACE.point([rng.random() for _ in SPACE.knobs]))
        final, rise, step_s = rng.betavariate(4, 2), rng.uniform(2, points / 3), rng.uniform(0.5, 2.0)
        values = [final * (1 - math.exp(-n / rise)) + rng.gauss(0, 0.005) for n in range(1, points + 1)]
        curves.append(Recording(range(1, points + 1), values, [step_s * n for n in range(1, points + 1)], points))
    return Trace("made-up", "accuracy", "max", SPACE, tuple(configs), tuple(curves), {})


def log_of(trace: Trace, policy: str) -> list[Any]:
    """Events of a study of all of it."""
    spec = StudySpec(
        name=trace.name,
        space=SPACE.to_dict(),
        goal=Goal("accuracy", "max", trials=len(trace.configs)),
        policy=Choice(policy),
        search=Choice(RECORDED),
        resources=Resources(workers=8),
        max_steps=trace.max_steps,
    )
    store = MemoryStore()
    run(trace, spec, make(spec.policy), Setting(workers=8), store=store)
    return [event for _, event in store.read()]


def show(name: str, make_it: Callable[[], Any], *, sized: bool = True) -> None:
    times = []
    for _ in range(3):
        began_s = time.process_time()
        found = make_it()
        times.append(time.process_time() - began_s)
    size = f"{len(msgspec.json.encode(found)) / 1000:8.0f} kB" if sized else ""
    print(f"{name:<22}{1000 * min(times):8.1f} ms {size}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--policy", default="fifo")
    given = parser.parse_args()
    events = log_of(trace_of(given.trials, given.points), given.policy)
    chronicle = plots.Chronicle.of(events)
    foreseen = plots.foresee(chronicle.view)
    assert foreseen is not None
    print(f"{given.trials} trials, {chronicle.view.points} points, {len(events)} events")
    show("read into a chronicle", partial(plots.Chronicle.of, events), sized=False)
    show("all forecasts", partial(plots.foresee, chronicle.view), sized=False)
    for function in (plots.learning_curves, plots.potential_map, plots.parallel_coordinates):
        show(function.__name__, partial(function, chronicle, foreseen))
    for alone in (plots.gantt, plots.best_so_far, plots.step_speeds):
        show(alone.__name__, partial(alone, chronicle))
    show("importance", partial(plots.importance, chronicle, foreseen))
    show("calibration", partial(plots.calibration, chronicle, foreseen))


if __name__ == "__main__":
    main()
