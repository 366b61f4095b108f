"""Laws of the performance model, for any job and configuration that hypothesis can think of."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.perf.fitting import fit, predict
from foresail.perf.hardware import Device, device
from foresail.perf.memory import MEMORY, state_bytes, upper_bytes
from foresail.perf.rows import rows_of
from foresail.perf.step_time import STEP_TIME, log_step_s, parts
from foresail.perf.transformer import transformer
from foresail.perf.words import Job, Precision, Recompute, Sharding, SystemConfiguration

law = settings(max_examples=15, deadline=None)
powers = st.sampled_from([1, 2, 4, 8])
jobs = st.builds(
    lambda layers, width, heads, seq: transformer(
        "gpt", layers=layers, hidden=width * heads, heads=heads, seq_len=seq
    ),
    st.sampled_from([8, 16, 24]),
    st.sampled_from([64, 128]),
    st.sampled_from([8, 16]),
    st.sampled_from([128, 1024]),
)
systems = st.builds(
    SystemConfiguration,
    dp=powers,
    tp=powers,
    pp=powers,
    micro_batch=powers,
    accumulation=powers,
    sharding=st.sampled_from(list(Sharding)),
    recompute=st.sampled_from(list(Recompute)),
    precision=st.sampled_from([Precision.FP32, Precision.BF16, Precision.FP16]),
)
kinds = st.sampled_from(["V100", "A100", "H100"]).map(device)


def _median(law: object, job: Job, system: SystemConfiguration, kind: Device) -> float:
    which = STEP_TIME if law == "time" else MEMORY
    return float(predict(which, None, rows_of(job, [system], kind)).median[0])


@law
@given(jobs, systems, kinds)
def test_more_devices_never_raise_compute_time_per_sample(
    job: Job, system: SystemConfiguration, kind: Device
) -> None:
    wider = msgspec.structs.replace(system, dp=2 * system.dp)
    per_sample = []
    for one in (system, wider):
        micro = parts(STEP_TIME.medians, rows_of(job, [one], kind, nodes=1)).micro[0]
        per_sample.append(micro * one.accumulation / one.global_batch)
    assert per_sample[1] <= per_sample[0] * (1 + 1e-9)


@law
@given(jobs, systems, kinds)
def test_memory_grows_with_the_micro_batch(job: Job, system: SystemConfiguration, kind: Device) -> None:
    more = msgspec.structs.replace(system, micro_batch=2 * system.micro_batch)
    assert _median("memory", job, more, kind) > _median("memory", job, system, kind)


@law
@given(jobs, systems, kinds)
def test_time_grows_with_the_micro_batch_and_with_accumulation(
    job: Job, system: SystemConfiguration, kind: Device
) -> None:
    for field in ("micro_batch", "accumulation"):
        more = msgspec.structs.replace(system, **{field: 2 * getattr(system, field)})
        assert _median("time", job, more, kind) > _median("time", job, system, kind)


@law
@given(jobs, systems, kinds)
def test_sharding_more_never_needs_more_state(job: Job, system: SystemConfiguration, kind: Device) -> None:
    job = msgspec.structs.replace(job, largest_layer_params=0.0)
    needs = []
    for sharding in Sharding:
        one = msgspec.structs.replace(system, sharding=sharding)
        needs.append(float(sum(state_bytes(rows_of(job, [one], kind)))[0]))
    assert needs == sorted(needs, reverse=True)


@law
@given(jobs, systems, kinds, st.floats(1.1, 8.0))
def test_time_scales_with_the_unit_of_time(
    job: Job, system: SystemConfiguration, kind: Device, by: float
) -> None:
    """Rates divided and latencies multiplied by one number multiply every time by it: units are
    consistent."""
    rows = rows_of(job, [system], kind)
    slow = rows.replace(
        **{
            name: getattr(rows, name) / by
            for name in (
                "peak_flop_per_s",
                "attention_flop_per_s",
                "bandwidth_bytes_per_s",
                "link_bytes_per_s",
                "network_bytes_per_s",
            )
        }
    )
    theta = STEP_TIME.medians.copy()
    for at, parameter in enumerate(STEP_TIME.table):
        theta[at] += np.log(by) if parameter.unit == "s" else 0.0
    ratio = np.exp(log_step_s(theta, slow) - log_step_s(STEP_TIME.medians, rows))
    assert ratio == pytest.approx(by, rel=1e-5)


@law
@given(jobs, systems, kinds)
def test_intervals_hold_the_median_and_bounds_lie_above(
    job: Job, system: SystemConfiguration, kind: Device
) -> None:
    rows = rows_of(job, [system], kind)
    found = predict(STEP_TIME, None, rows)
    low, high = found.interval()
    assert low[0] < found.median[0] < high[0]
    memory = predict(MEMORY, None, rows)
    assert upper_bytes(memory)[0] > memory.median[0]


@law
@given(st.lists(st.floats(0.05, 50.0), min_size=1, max_size=6), st.floats(0.5, 20.0))
def test_a_job_without_features_is_the_same_in_any_unit_of_time(times: list[float], by: float) -> None:
    """Scaling the measured times scales what is foreseen at the measured configurations."""
    kind = device("A100")
    rows = rows_of(
        Job(name="blind"), [SystemConfiguration(micro_batch=2**i) for i in range(len(times))], kind
    )
    ordered = np.sort(np.array(times))
    one = predict(STEP_TIME, fit(STEP_TIME, rows, ordered), rows)
    two = predict(STEP_TIME, fit(STEP_TIME, rows, ordered * by), rows)
    wide = 3 * np.maximum(one.log_sd, two.log_sd) + 0.25
    assert (np.abs(two.log_median - one.log_median - np.log(by)) < wide).all()


@law
@given(jobs, st.floats(0.3, 3.0))
def test_measuring_a_run_brings_its_prediction_near(job: Job, factor: float) -> None:
    rows = rows_of(job, [SystemConfiguration(micro_batch=m) for m in (1, 4)], device("A100"))
    truth = factor * predict(STEP_TIME, None, rows).median
    before = predict(STEP_TIME, None, rows)
    after = predict(STEP_TIME, fit(STEP_TIME, rows.take([0]), truth[:1]), rows)
    assert after.log_sd[0] <= before.log_sd[0]
    assert abs(np.log(after.median[0] / truth[0])) <= abs(np.log(before.median[0] / truth[0])) + 1e-9
