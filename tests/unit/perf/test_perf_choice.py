"""Choosing: what is feasible, what to probe, when to stop; memory; plans; pairs; warm-up."""

from __future__ import annotations

import math

import numpy as np
import pytest

from foresail.errors import CallerError
from foresail.perf.choice import feasible, most_telling, next_probe
from foresail.perf.cpu import cpu_configurations, cpu_rows
from foresail.perf.fitting import Prediction, fit, predict
from foresail.perf.hardware import Cluster, device
from foresail.perf.memory import MEMORY, fits, needs_as_much, state_bytes, upper_bytes
from foresail.perf.plan import plan
from foresail.perf.rows import rows_of
from foresail.perf.sharing import Pair, Sharer, fit_sharing, predict_sharing
from foresail.perf.step_time import STEP_TIME
from foresail.perf.steps import settled
from foresail.perf.transformer import transformer
from foresail.perf.words import Job, Precision, Recompute, Sharding, SystemConfiguration

GPT = transformer("gpt", layers=24, hidden=2048, heads=16, seq_len=1024)
CLUSTER = Cluster(device=device("A100"), nodes=2)


def test_everything_feasible_keeps_the_global_batch_and_divides() -> None:
    found = feasible(GPT, CLUSTER, global_batch=96)
    assert found
    for system in found:
        assert system.global_batch == 96
        assert system.devices == 16
        assert 16 % system.tp == 0
        assert 24 % system.pp == 0
        assert system.tp <= 8
    assert len(found) == len(set(found))


def test_fewer_devices_may_be_used_when_asked() -> None:
    used = {s.devices for s in feasible(GPT, CLUSTER, global_batch=96, all_devices=False)}
    assert {1, 2, 16} <= used


def test_a_job_without_layers_runs_data_parallel_only() -> None:
    found = feasible(Job(name="blind"), CLUSTER, global_batch=64)
    assert {(s.tp, s.pp, s.dp) for s in found} == {(1, 1, 16)}


def test_an_empty_global_batch_is_refused() -> None:
    with pytest.raises(CallerError, match="global batch of 0"):
        feasible(GPT, CLUSTER, global_batch=0)
    with pytest.raises(CallerError, match="no layout"):
        plan(Job(name="blind"), CLUSTER, global_batch=7)


def test_the_fastest_prediction_is_probed_first_and_none_that_was_measured() -> None:
    prediction = Prediction(np.log([3.0, 1.0, 2.0]), np.full(3, 0.2))
    assert next_probe(prediction, {}).run == 1
    assert next_probe(prediction, {1: 2.5}).run == 2
    assert next_probe(prediction, {0: 1.0, 1: 1.0, 2: 1.0}).run is None
    with pytest.raises(CallerError, match="0 to 2"):
        next_probe(prediction, {3: 1.0})


def test_a_probe_that_costs_more_than_it_saves_is_not_made() -> None:
    prediction = Prediction(np.log([1.0, 1.05]), np.full(2, 0.02))
    cheap = next_probe(prediction, {0: 1.0}, remaining_steps=1e6, cost_s=1.0)
    dear = next_probe(prediction, {0: 1.0}, remaining_steps=100, cost_s=60.0)
    assert cheap.run == 1
    assert cheap.gain_s > 1.0
    assert dear.run is None
    assert dear.gain_s < 60.0


def test_telling_probes_lower_the_uncertainty_more_than_the_first_ones() -> None:
    systems = [SystemConfiguration(dp=d, micro_batch=m) for d in (1, 2, 4, 8) for m in (8, 16, 32, 64, 128)]
    rows = rows_of(Job(name="blind"), systems, device("V100"))
    times = 0.01 + 1e-3 * rows.micro_batch
    start = fit(STEP_TIME, rows.take([0, 4]), times[[0, 4]])
    chosen = most_telling(STEP_TIME, start, rows, 4)
    assert len(set(chosen.tolist())) == 4

    def left(index: np.ndarray) -> float:
        model = fit(STEP_TIME, rows.take(index), times[index])
        return float(predict(STEP_TIME, model, rows).log_sd.sum())

    assert left(np.r_[0, 4, chosen]) < left(np.arange(6))
    with pytest.raises(CallerError, match="21 of 20"):
        most_telling(STEP_TIME, None, rows, 21)


def test_states_are_those_of_the_sharding_stage() -> None:
    # Rajbhandari et al., SC 2020, figure 1: 7.5 billion parameters, 64 replicas: 120, 31.4, 16.6, 1.9 GB
    job = Job(name="x", gemm_flop=1e9, kernels=10, params=7.5e9)
    found = []
    for sharding in Sharding:
        system = SystemConfiguration(dp=64, sharding=sharding, precision=Precision.FP16)
        rows = rows_of(job, [system], device("V100"))
        found.append(float(sum(state_bytes(rows))[0]) / 1e9)
    assert found == pytest.approx([120, 31.4, 16.6, 1.9], rel=0.02)


def test_running_out_of_memory_teaches_and_is_remembered() -> None:
    systems = [SystemConfiguration(micro_batch=m, precision=Precision.FP16) for m in (1, 2, 4, 8, 16, 32)]
    rows = rows_of(Job(name="blind"), systems, device("V100"))
    before = fit(MEMORY, rows.take([0, 1]), [3e9, 3.5e9])
    after = fit(MEMORY, rows.take([0, 1, 3]), [3e9, 3.5e9, 16 * 2**30], at_least=[False, False, True])
    raised = predict(MEMORY, after, rows).median / predict(MEMORY, before, rows).median
    assert raised[3] > 1.5
    assert fits(before, rows)[3]
    safe = fits(after, rows, failed=rows.take([3]))
    assert safe[:2].all()
    assert not safe[3:].any()
    assert not needs_as_much(rows.replace(tp=2.0), rows.take([3])).any()


def test_a_bound_lies_above_the_median() -> None:
    rows = rows_of(GPT, [SystemConfiguration(micro_batch=m) for m in (1, 2)], device("A100"))
    found = predict(MEMORY, None, rows)
    assert (upper_bytes(found) > found.median).all()


def test_a_plan_is_ranked_and_safe_layouts_come_first() -> None:
    found = plan(GPT, CLUSTER, global_batch=64)
    safe = [o.fits for o in found]
    assert safe == sorted(safe, reverse=True)
    times = [o.step_s for o in found if o.fits]
    assert times == sorted(times)
    best = found[0]
    assert 0.05 < best.mfu_frac < 0.9
    assert best.step_low_s < best.step_s < best.step_high_s
    assert best.samples_per_s == pytest.approx(64 / best.step_s)
    hours = best.step_s / 3600 * 1e6 / 64
    assert best.dollars_per_million_samples == pytest.approx(16 * 5.12 * hours)


def test_recomputation_saves_memory_and_costs_time() -> None:
    found = {o.system: o for o in plan(GPT, CLUSTER, global_batch=64)}
    pairs = [(o, found[s]) for s, o in found.items() if s.recompute is Recompute.NONE for s in [_full(s)]]
    assert pairs
    for none, full in pairs:
        assert full.step_s > none.step_s
        assert full.memory_bytes < none.memory_bytes


def _full(system: SystemConfiguration) -> SystemConfiguration:
    import msgspec

    return msgspec.structs.replace(system, recompute=Recompute.FULL)


def test_pairs_teach_pairs() -> None:
    names, batches = ("lm", "resnet"), (16.0, 64.0)
    jobs = [Sharer(n, b, 0.05 if n == "lm" else 0.2) for n in names for b in batches]
    pairs = [Pair("V100", a, b) for a in jobs for b in jobs]
    truth = np.array([1.2 + 1.5 * (p.other.workload == "resnet") for p in pairs])
    model = fit_sharing(pairs[::2], truth[::2])
    found = predict_sharing(model, pairs[1::2])
    assert np.median(np.abs(found.median / truth[1::2] - 1)) < 0.1
    assert (predict_sharing(None, pairs).log_sd > found.log_sd.max()).all()
    with pytest.raises(CallerError, match="slowdowns"):
        fit_sharing(pairs[:2], [1.0, math.inf])
    with pytest.raises(CallerError, match="0 pairs"):
        fit_sharing([], [])


def test_warm_up_is_left_out_and_drift_is_noticed() -> None:
    steady = settled([5.0, 2.0, *[1.0, 1.01, 0.99] * 5])
    assert steady.dropped == 2
    assert steady.seconds == pytest.approx(1.0, rel=0.01)
    assert not steady.is_drifting
    assert settled([1.0] * 10 + [1.5] * 5).is_drifting
    assert settled([1.0]).seconds == 1.0


@pytest.mark.parametrize("times", [[], [0.0], [1.0, math.inf], [-1.0]])
def test_absurd_step_times_are_refused(times: list[float]) -> None:
    with pytest.raises(CallerError, match="step times"):
        settled(times)


def test_cpu_configurations_stay_within_the_cores_and_the_batch() -> None:
    found = cpu_configurations(global_batch=24, cores=6, loader_workers=(0, 2))
    assert {s.global_batch for s in found} == {24}
    assert max(s.threads * s.dp for s in found) == 6
    for bad in ({"global_batch": 0, "cores": 1}, {"global_batch": 1, "cores": 0}):
        with pytest.raises(CallerError, match="or more of each"):
            cpu_configurations(**bad)
    with pytest.raises(CallerError, match="no way"):
        cpu_configurations(global_batch=7, cores=2, replicas=(2,))


def test_a_crowded_socket_slows_a_trial_and_threads_speed_it_up() -> None:
    systems = [SystemConfiguration(threads=t, micro_batch=32) for t in (1, 2, 4)]
    alone = predict(STEP_TIME, None, cpu_rows(GPT, systems, cores=4)).median
    crowded = predict(STEP_TIME, None, cpu_rows(GPT, systems, cores=4, busy_threads=8)).median
    assert (np.diff(alone) < 0).all()
    assert (crowded > alone).all()
