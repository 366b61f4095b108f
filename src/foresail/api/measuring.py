"""Measure steps of a user's job on this machine: fresh processes, started together, timed together.

A job is a function `make(system) -> step`: it builds everything for one system configuration and returns a
function that runs one optimizer step. Replicas are processes with `RANK`, `WORLD_SIZE`, `MASTER_ADDR` and
`MASTER_PORT` set, as `torchrun` sets them; the function joins its process group when there is more than one.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from foresail.errors import CallerError, TrainingError
from foresail.perf.observed import with_waiting
from foresail.perf.steps import Settled, settled
from foresail.perf.words import Job, SystemConfiguration

_LEAST_STEPS, _MOST_STEPS = 6, 400
_ENDING_S = 5.0
"""For a process that has closed its output to be gone."""


class Measurement(NamedTuple):
    """What one run showed. `steps` is None when it ran out of memory; `job` holds the features that a step of a single
    process showed, None where it showed none."""

    system: SystemConfiguration
    steps: Settled | None
    memory_bytes: float
    spent_s: float
    job: Job | None = None


class Run(NamedTuple):
    """A job to start: `target` names its function (`FILE.py:FUNCTION`)."""

    target: str
    system: SystemConfiguration


def measure(run: Run, *, seconds: float = 1.0, timeout_s: float = 300.0) -> Measurement:
    """Steps of one run, for about `seconds` after warm-up.

    Raises:
        CallerError: its target names no function, or one that makes no step.
        TrainingError: its process ended or fell silent.
    """
    return measure_together([run], seconds=seconds, timeout_s=timeout_s)[0]


def measure_together(runs: Sequence[Run], *, seconds: float = 1.0, timeout_s: float = 300.0) -> list[Measurement]:
    """Steps of several runs at the same time, as trials that share this machine.

    Raises:
        CallerError: a target names no function, or one that makes no step.
        TrainingError: a process ended or fell silent for `timeout_s`.
    """
    groups = [_start(run) for run in runs]
    everyone = [process for group in groups for process in group]
    watchdog = threading.Timer(timeout_s, _kill, [everyone])
    watchdog.start()
    try:
        ready = [[_answer(p) for p in group] for group in groups]
        counts = [_count(answers, seconds) for answers in ready]
        for group, count in zip(groups, counts, strict=True):
            for process in group:
                _send(process, f"go {count}")
        done = [[_answer(p) for p in group] if n else [] for group, n in zip(groups, counts, strict=True)]
    finally:
        watchdog.cancel()
        _kill(everyone)
    return [_summary(run, first, answers) for run, first, answers in zip(runs, ready, done, strict=True)]


def _start(run: Run) -> list[subprocess.Popen[str]]:
    """One process for each replica."""
    port, threads = _free_port(), str(run.system.threads)
    request = {"target": run.target, "system": msgspec.to_builtins(run.system)}
    started = []
    for rank in range(run.system.devices):
        environment = os.environ | {
            "OMP_NUM_THREADS": threads,
            "MKL_NUM_THREADS": threads,
            "OPENBLAS_NUM_THREADS": threads,
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(run.system.devices),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "foresail.api.step_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )
        started.append(process)
        _send(process, json.dumps(request))
    return started


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _send(process: subprocess.Popen[str], line: str) -> None:
    if process.stdin is None:
        return
    try:
        process.stdin.write(line + "\n")
        process.stdin.flush()
    except BrokenPipeError:
        return  # it ended: its answer, or the lack of one, says why


def _answer(process: subprocess.Popen[str]) -> dict[str, object]:
    line = process.stdout.readline() if process.stdout is not None else ""
    if not line:
        try:
            code = process.wait(_ENDING_S)
        except subprocess.TimeoutExpired:
            code = None
        raise TrainingError(
            f"the measured process ended or fell silent (exit code {code})",
            do="run its function by itself to see the error; its output is above",
        )
    answer: dict[str, object] = json.loads(line)
    if "wrong" in answer:
        what, allowed, do = msgspec.convert(answer["wrong"], tuple[str, str, str])
        raise CallerError(what, allowed=allowed, do=do)
    return answer


def _count(answers: list[dict[str, object]], seconds: float) -> int:
    """Steps to time; 0 when a replica ran out of memory."""
    if any("ready" not in answer for answer in answers):
        return 0
    slowest = max(float(str(answer["ready"])) for answer in answers)
    return max(_LEAST_STEPS, min(_MOST_STEPS, round(seconds / max(slowest, 1e-6))))


def _summary(run: Run, ready: list[dict[str, object]], answers: list[dict[str, object]]) -> Measurement:
    if not answers:
        return Measurement(run.system, None, float("nan"), 0.0)
    times = [msgspec.convert(answer["step_s"], list[float]) for answer in answers]
    slowest = max(times, key=sum)
    memory = max(float(str(answer["memory_bytes"])) for answer in answers)
    job = msgspec.convert(ready[0].get("job"), Job | None)
    seen = None if job is None else with_waiting(job, run.target, run.system, float(str(answers[0]["waited_s"])))
    return Measurement(run.system, settled(slowest), memory, sum(slowest), seen)


def _kill(processes: Sequence[subprocess.Popen[str]]) -> None:
    for process in processes:
        if process.poll() is None:
            process.kill()
    for process in processes:
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    continue
