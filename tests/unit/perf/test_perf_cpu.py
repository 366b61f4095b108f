"""Seconds of a step on cores: what threads, neighbours and loader workers do to it, before anything is measured."""

from __future__ import annotations

import pytest

from foresail.perf.cpu import cpu_rows
from foresail.perf.fitting import predict
from foresail.perf.step_time import STEP_TIME
from foresail.perf.words import Job, SystemConfiguration

JOB = Job(name="net", gemm_flop=1e8, kernels=30.0, params=1e5, input_s=2e-3)


def step_s(
    *, cores: int = 2, threads: int = 1, workers: int = 0, busy: int | None = None, micro: int = 32, job: Job = JOB
) -> float:
    system = SystemConfiguration(threads=threads, micro_batch=micro, loader_workers=workers)
    rows = cpu_rows(job, [system], cores=cores, busy_threads=busy)
    return float(predict(STEP_TIME, None, rows).median[0])


def test_a_neighbour_on_its_own_core_costs_little_and_one_on_ours_much() -> None:
    alone = step_s()
    assert alone <= step_s(busy=2) <= 1.2 * alone
    assert step_s(threads=2, busy=4) > 1.5 * step_s(threads=2, busy=2)


def test_two_trials_of_one_thread_do_more_than_two_that_crowd() -> None:
    assert step_s(threads=1, busy=2) < step_s(threads=2, busy=4)


def test_workers_hide_loading_where_cores_are_free() -> None:
    in_line, spare = step_s(cores=4, threads=2), step_s(cores=4, threads=2, workers=2)
    full = step_s(cores=2, threads=2, workers=2)
    assert spare < 0.8 * in_line
    assert spare < full, "with all cores at work, loading takes some of them"


def test_workers_are_worth_nothing_to_a_job_that_loads_nothing() -> None:
    quick = Job(name="quick", gemm_flop=1e8, kernels=30.0, params=1e5, input_s=0.0)
    assert step_s(job=quick, workers=2) == pytest.approx(step_s(job=quick))


def test_gradients_are_added_for_each_micro_batch() -> None:
    large = Job(name="large", gemm_flop=1e6, kernels=30.0, params=2e7, input_s=0.0)
    rows = cpu_rows(
        large,
        [SystemConfiguration(micro_batch=32), SystemConfiguration(micro_batch=4, accumulation=8)],
        cores=2,
    )
    whole, cut = predict(STEP_TIME, None, rows).median
    assert cut > 3 * whole
