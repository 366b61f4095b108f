"""Steps of a benchmark's job in processes that are forked from one that has imported PyTorch: a visit costs its steps
and little more, so that every configuration can be visited several times, spread over a machine's moods."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import statistics
import time
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import NamedTuple

from foresail.errors import TrainingError
from foresail.perf.observed import Waited, features, with_waiting
from foresail.perf.steps import settled
from foresail.perf.words import Job, SystemConfiguration

_WARM_UP_STEPS = 3
_LEAST_STEPS = 6
_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(["torch._dynamo", "torch.utils.flop_counter", "benchmarks.perf.jobs"])


class _Rank(NamedTuple):
    process: BaseProcess
    line: Connection


class Seen(NamedTuple):
    """Seconds of a step, and what it showed of the job's features, if anything."""

    seconds: float
    job: Job | None


def visit(job: str, system: SystemConfiguration, *, at_once: int, seconds: float, timeout_s: float) -> Seen:
    """A step, of seconds the mean over trials of equal kind that run at the same time.

    Raises:
        TrainingError: a process ended, or all together took longer than `timeout_s`.
    """
    until = time.monotonic() + timeout_s
    trials = [_started(job, system) for _ in range(at_once)]
    try:
        steps = [max(_LEAST_STEPS, round(seconds / max(_heard(r, until).seconds for r in ranks))) for ranks in trials]
        for ranks, count in zip(trials, steps, strict=True):
            for rank in ranks:
                rank.line.send(count)
        found = [max((_heard(r, until) for r in ranks), key=lambda seen: seen.seconds) for ranks in trials]
        return Seen(statistics.mean(seen.seconds for seen in found), found[0].job)
    finally:
        for rank in (rank for ranks in trials for rank in ranks):
            _kill(rank.process)
            rank.line.close()


def _started(job: str, system: SystemConfiguration) -> list[_Rank]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    found = []
    for rank in range(system.devices):
        here, there = _SERVER.Pipe()
        process = _SERVER.Process(target=_run, args=(job, system, rank, port, there))
        process.start()
        there.close()
        found.append(_Rank(process, here))
    return found


def _kill(process: BaseProcess) -> None:
    """With its loader workers, once it has a group of its own."""
    process.kill()
    try:
        if process.pid:
            os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass  # it ended before it had one
    process.join()


def _heard(rank: _Rank, until: float) -> Seen:
    try:
        if rank.line.poll(max(0.0, until - time.monotonic())):
            return Seen(*rank.line.recv())
    except EOFError:
        pass
    raise TrainingError("a measured process ended or took too long")


def _run(job: str, system: SystemConfiguration, rank: int, port: int, line: Connection) -> None:
    os.setpgid(0, 0)
    multiprocessing.set_start_method("fork", force=True)  # loader workers: a server of their own would import all again
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(system.devices)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    import torch
    from benchmarks.perf import jobs

    torch.set_num_threads(system.threads)
    step = getattr(jobs, job)(system)
    waited = Waited()
    fastest = min(_timed(step) for _ in range(_WARM_UP_STEPS))
    seen = features(step, system, waited) if system.devices == 1 and not system.loader_workers else None
    line.send((fastest, None))
    count = line.recv()
    waited.seconds = 0.0
    steps = settled([_timed(step) for _ in range(count)])
    line.send((steps.seconds, seen and with_waiting(seen, job, system, waited.seconds / count)))
    line.poll(None)  # loader workers and process groups may take seconds to say goodbye: this process is killed


def _timed(step: object) -> float:
    start = time.perf_counter()
    step()  # type: ignore[operator]
    return time.perf_counter() - start
