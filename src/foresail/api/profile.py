"""Measure a few system configurations of a real job on this machine, and say which to use.

The job is `make(system) -> step` (`measuring.py`). The model predicts all configurations, the most
promising is measured, the model learns, until a further probe is not worth its cost. Only configurations of
the same global batch compete, so the advice does not change what is learned.
"""

from __future__ import annotations

import dataclasses
import os
import platform
from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np
import psutil

from foresail.api.measuring import Measurement, Run, measure
from foresail.errors import CallerError
from foresail.perf.choice import next_probe
from foresail.perf.cpu import core, cpu_rows
from foresail.perf.fitting import Fit, fit, predict
from foresail.perf.hardware import Device
from foresail.perf.memory import MEMORY
from foresail.perf.rows import Floats, Rows, rows_of
from foresail.perf.step_time import STEP_TIME
from foresail.perf.words import Job, SystemConfiguration


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One configuration of a profile. Measured figures are None where it was only predicted."""

    system: SystemConfiguration
    predicted_s: float
    low_s: float
    high_s: float
    measured_s: float | None
    memory_bytes: float
    samples_per_s: float
    dollars_per_million_samples: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The table of a profile, fastest first, and its advice.

    `gain_frac` is what the advised configuration saves against `base`, the one that would run unasked.
    `spent_s` counts the seconds of measured steps: training steps, if the job keeps them. `rows` and `seconds` are what
    was measured, to be kept for later jobs.
    """

    lines: tuple[Line, ...]
    advised: SystemConfiguration
    base: SystemConfiguration
    gain_frac: float
    probes: int
    spent_s: float
    stopped: str
    model: Fit
    rows: Rows
    seconds: Floats


Measure = Callable[[SystemConfiguration], Measurement]


def profile(
    target: str,
    systems: Sequence[SystemConfiguration],
    *,
    job: Job | None = None,
    device: Device | None = None,
    base: SystemConfiguration | None = None,
    probes: int = 6,
    seconds: float = 1.0,
    remaining_steps: float = 10_000,
    probe_cost_s: float = 5.0,
    prior: Fit | None = None,
    measure_one: Measure | None = None,
) -> Profile:
    """Probe greedily among configurations of one global batch.

    Args:
        target: `FILE.py:FUNCTION`, the job.
        systems: what competes.
        job: its features, if known (default: what the first run shows of them).
        device: the kind of accelerator that each replica uses; this machine's cores if not given.
        base: what to compare with (default: all cores as threads, no accumulation; else the first).
        probes: how many to measure at most, the base included.
        seconds: of measured steps in a probe.
        remaining_steps: that the job still has to do; what a faster configuration would save them is the
        worth
            of a probe.
        probe_cost_s: of starting one.
        prior: what this machine's earlier jobs taught.
        measure_one: stands in for a real measurement (tests, replays).

    Raises:
        CallerError: no configuration, or not one global batch; or none could run.
    """
    if not systems:
        raise CallerError("profile: no configurations", do="give one at least")
    if len({s.global_batch for s in systems}) > 1:
        raise CallerError(
            f"profile: global batches {sorted({s.global_batch for s in systems})}",
            allowed="one: another global batch is another training run",
            do="keep replicas x micro-batch x accumulation the same",
        )
    base = base or _default(systems)
    order = [base, *(s for s in systems if s != base)]

    def rows_for(features: Job) -> Rows:
        if device is not None:
            return rows_of(features, order, device, nodes=1)
        return cpu_rows(features, order, cores=physical_cores(), logical=usable_cores(), machine=machine_name())

    price = (device or core("cpu", 1)).dollars_per_hour / 3600
    run = measure_one or (lambda system: measure(Run(target, system), seconds=seconds))
    search = _Search(rows_for, job or Job(name=target), order, prior, run, price)
    stopped = search.probe(probes, remaining_steps=remaining_steps, cost_s=probe_cost_s + seconds)
    return search.summary(base, stopped)


def usable_cores() -> int:
    """Processors that this process may use (affinity, containers), never more than there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def physical_cores() -> int:
    """Physical cores among them: hyperthreads are counted apart."""
    logical, physical = psutil.cpu_count() or 1, psutil.cpu_count(logical=False) or 1
    return max(1, round(usable_cores() * physical / max(logical, physical)))


def machine_name() -> str:
    """A name under which what is learned of this machine's cores is kept."""
    return f"cpu {platform.node()} {platform.machine()} {physical_cores()}"


def _default(systems: Sequence[SystemConfiguration]) -> SystemConfiguration:
    return max(systems, key=lambda s: (s.dp == 1, s.threads, -s.accumulation, -s.loader_workers))


class _Search:
    """Probes so far, and the model that they taught."""

    def __init__(  # what is searched, and what with
        self,
        rows_for: Callable[[Job], Rows],
        job: Job,
        systems: Sequence[SystemConfiguration],
        prior: Fit | None,
        run: Measure,
        price: float,
    ) -> None:
        self.rows_for, self.job, self.rows = rows_for, job, rows_for(job)
        self.systems, self.prior, self.run = systems, prior, run
        self.price = price
        self.times: dict[int, float] = {}
        self.memory: dict[int, float] = {}
        self.failed: set[int] = set()
        self.spent_s, self.runs = 0.0, 0
        self.model = prior

    def probe(self, most: int, *, remaining_steps: float, cost_s: float) -> str:
        """Measure until nothing is worth a probe; why it stopped."""
        self._measure(0)
        while self.runs < most and len(self.times) + len(self.failed) < len(self.systems):
            known: Mapping[int, float] = self.times | dict.fromkeys(self.failed, float("inf"))
            one = next_probe(
                predict(STEP_TIME, self.model, self.rows),
                known,
                remaining_steps=remaining_steps,
                cost_s=cost_s,
            )
            if one.run is None:
                return f"a further probe would save {one.gain_s:.1f} s and cost {one.cost_s:.1f} s"
            self._measure(one.run)
        return f"{most} probes were allowed" if self.runs >= most else "all were measured"

    def _measure(self, index: int) -> None:
        found = self.run(self.systems[index])
        self.spent_s += found.spent_s
        self.runs += 1
        if found.steps is None:  # out of memory: whatever needs more of it would fail too
            bigger = self.rows.micro_batch >= self.rows.micro_batch[index]
            self.failed |= {int(i) for i in np.flatnonzero(bigger)} - set(self.times)
            return
        if found.job is not None and not self.job.is_known:
            self.job = msgspec.structs.replace(found.job, name=self.job.name)
            self.rows = self.rows_for(self.job)
        self.times[index], self.memory[index] = found.steps.seconds, found.memory_bytes
        chosen = np.array(sorted(self.times))
        values = [self.times[int(i)] for i in chosen]
        self.model = fit(STEP_TIME, self.rows.take(chosen), values, prior=self.prior)

    def summary(self, base: SystemConfiguration, stopped: str) -> Profile:
        """The table, and the advice: the fastest that was measured."""
        if not self.times or self.model is None:
            raise CallerError("profile: no configuration could run", do="lower the global batch: all ran out of memory")
        times = predict(STEP_TIME, self.model, self.rows)
        low, high = times.interval()
        chosen = np.array(sorted(self.memory))
        used = [self.memory[int(i)] for i in chosen]
        memory = predict(MEMORY, fit(MEMORY, self.rows.take(chosen), used), self.rows).median
        lines = []
        for i in (i for i in range(len(self.systems)) if i not in self.failed):
            system = self.systems[i]
            seconds = self.times.get(i, float(times.median[i]))
            paid = self.price * system.devices * system.threads
            lines.append(
                Line(
                    system=system,
                    predicted_s=float(times.median[i]),
                    low_s=float(low[i]),
                    high_s=float(high[i]),
                    measured_s=self.times.get(i),
                    memory_bytes=self.memory.get(i, float(memory[i])),
                    samples_per_s=system.global_batch / seconds,
                    dollars_per_million_samples=paid * seconds / system.global_batch * 1e6,
                )
            )
        best = min(self.times, key=lambda i: self.times[i])
        start = self.times.get(self.systems.index(base))
        return Profile(
            lines=tuple(sorted(lines, key=lambda line: line.measured_s or line.predicted_s)),
            advised=self.systems[best],
            base=base,
            gain_frac=1 - self.times[best] / start if start else float("nan"),
            probes=len(self.times),
            spent_s=self.spent_s,
            stopped=stopped,
            model=self.model,
            rows=self.rows.take(sorted(self.times)),
            seconds=np.array([self.times[i] for i in sorted(self.times)]),
        )
