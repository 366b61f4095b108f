"""Does a second replica pay what the performance model says? `python -m benchmarks.resize` (a quiet machine, 2 cores).

A real training of a network that the processor bounds, as attempts of Foresail. Seen are steps of one process alone:
of the whole batch, of half of it, and of half of it twice; and of two such processes side by side, which tell what the
cores cost each other. From these the model foresees a step with two replicas; then that is measured. All in turns,
round after round, each on its own pinned cores, so that what else the machine does hits all alike. It gives up where
the machine is too busy to be done in time.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from foresail.api.profile import machine_name, physical_cores, usable_cores
from foresail.core import events as ev
from foresail.core.commands import Launch, Yield
from foresail.core.goal import Goal
from foresail.core.layout import Layout
from foresail.core.spec import Entry
from foresail.core.words import AttemptId, Outcome, TrialId
from foresail.driver.clock import StudyClock
from foresail.executors.local import LocalExecutor
from foresail.perf.characterize import characterize
from foresail.perf.cpu import cpu_rows
from foresail.perf.fitting import fit, predict
from foresail.perf.rows import join
from foresail.perf.step_time import STEP_TIME
from foresail.perf.words import SystemConfiguration

BATCH = 32
WARM, STEPS = 3, 12
TRAINING = f"{Path(__file__).resolve()}:train"
SEEN = {  # the configuration of each, and how many run side by side
    "whole batch": (SystemConfiguration(micro_batch=BATCH), 1),
    "half": (SystemConfiguration(micro_batch=BATCH // 2), 1),
    "half twice": (SystemConfiguration(micro_batch=BATCH // 2, accumulation=2), 1),
    "half, two at a time": (SystemConfiguration(micro_batch=BATCH // 2), 2),
}
FORESEEN = SystemConfiguration(dp=2, micro_batch=BATCH // 2)


def network() -> Any:
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(1024, 10),
    )  # fmt: skip


def train(run: Any) -> None:
    """One optimizer step each, on its own numbers; asked to leave, it leaves."""
    import torch

    model = run.parallelize(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    numbers = torch.Generator().manual_seed(0)
    data = torch.utils.data.TensorDataset(
        torch.randn(4 * BATCH, 3, 32, 32, generator=numbers), torch.randint(0, 10, (4 * BATCH,), generator=numbers)
    )
    stream = _endless(run.shard(data, batch=run.config["batch"], shuffle=False))
    for _ in run.steps():
        inputs, labels = next(stream)
        optimizer.zero_grad()
        loss = run.backward(model, torch.nn.functional.cross_entropy, inputs, labels)
        optimizer.step()
        run.report(loss=loss)


def _endless(batches: Iterable[Any]) -> Iterator[Any]:
    while True:
        yield from batches


class Lab:
    def __init__(self, folder: Path, limit_s: float) -> None:
        self.clock, self.trial, self.limit_s = StudyClock(), 0, limit_s
        entry = Entry(function=TRAINING)
        self.executor = LocalExecutor(folder, clock=self.clock, goal=Goal("loss", "min", trials=1), target=entry)
        self.executor.start()

    def step_s(self, system: SystemConfiguration, at_once: int) -> float:
        """Median seconds of a step after a warm-up, of all that run at a time, each on cores of its own."""
        layout = Layout(dp=system.dp, micro_batch=system.micro_batch)
        running: set[str] = set()
        for place in range(at_once):
            self.trial += 1
            running.add(f"{self.trial}-1")
            cores = tuple(range(place * system.dp, (place + 1) * system.dp))
            launch = {"trial": TrialId(self.trial), "number": 1, "config": {"batch": system.global_batch}}
            self.executor.perform(Launch(attempt=AttemptId(f"{self.trial}-1"), cores=cores, layout=layout, **launch))
        seconds: dict[str, list[float]] = {attempt: [] for attempt in running}
        asked = False
        while running:
            if self.clock.now_s() > self.limit_s:
                raise SystemExit("the machine is too busy for this to tell anything")
            for fact in self.executor.poll(self.clock.now_s() + 1.0):
                if isinstance(fact, ev.PointReported):
                    seconds[fact.attempt].append(fact.seconds)
                elif isinstance(fact, ev.AttemptEnded):
                    assert fact.outcome is Outcome.YIELDED, fact
                    running.discard(fact.attempt)
            if not asked and all(len(taken) >= WARM + STEPS for taken in seconds.values()):
                asked = True  # all at once, so that none has a machine to itself while it is measured
                for attempt in running:
                    self.executor.perform(Yield(AttemptId(attempt)))
        return statistics.median(s for taken in seconds.values() for s in taken[WARM : WARM + STEPS])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--limit-s", type=float, default=150.0, help="no round is begun after this")
    args = parser.parse_args()
    if usable_cores() < 2:
        parser.error("two replicas need two cores")
    began, rounds = time.monotonic(), 0
    cases = {**SEEN, "two replicas": (FORESEEN, 1)}
    taken: dict[str, list[float]] = {name: [] for name in cases}
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(Path(folder), args.limit_s + 25.0)
        try:
            lab.step_s(*SEEN["whole batch"])  # imports, caches
            while rounds < args.rounds and time.monotonic() - began < args.limit_s:
                for name, case in cases.items():
                    taken[name].append(lab.step_s(*case))
                rounds += 1
        finally:
            lab.executor.close()
    tell(taken, rounds)


def tell(taken: dict[str, list[float]], rounds: int) -> None:
    measured = {name: statistics.median(seconds) for name, seconds in taken.items()}
    for name, seconds in taken.items():
        print(f"{name:20} {1000 * measured[name]:7.1f} ms a step ({min(seconds):.3f} to {max(seconds):.3f} s)")
    one, foreseen = measured["whole batch"], foresee(measured)
    said, was = one / foreseen, one / measured["two replicas"]
    print(f"two replicas foreseen {1000 * foreseen:.1f} ms; speed-up foreseen {said:.3f}, measured {was:.3f}")
    print(f"the measured speed-up is {abs(was / said - 1):.1%} from the foreseen one, of {rounds} rounds")


def foresee(measured: dict[str, float]) -> float:
    """Seconds of a step with two replicas, from what single processes showed and the network's features."""
    import torch

    inputs = torch.zeros(BATCH, 3, 32, 32)
    job = characterize(network(), (inputs,), name="resize", input_s=0.0)
    where = {"cores": physical_cores(), "logical": usable_cores(), "machine": machine_name()}
    seen = join(*(cpu_rows(job, [s], busy_threads=n if n > 1 else None, **where) for s, n in SEEN.values()))
    model = fit(STEP_TIME, seen, np.array([measured[name] for name in SEEN]))
    return float(predict(STEP_TIME, model, cpu_rows(job, [FORESEEN], **where)).median[0])


if __name__ == "__main__":
    main()
