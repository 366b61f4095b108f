"""Profiling: the search with a stand-in for measurements, and one real run in fresh processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from foresail.api.measuring import Measurement, Run, measure, measure_together
from foresail.api.profile import Profile, profile
from foresail.api.step_process import load
from foresail.errors import CallerError, TrainingError
from foresail.perf.cpu import cpu_configurations
from foresail.perf.hardware import device
from foresail.perf.steps import settled
from foresail.perf.words import Job, SystemConfiguration

SYSTEMS = cpu_configurations(global_batch=64, cores=4, loader_workers=(0, 1, 2))

JOB = """
import os
def make(system):
    block = bytearray(1000 * system.micro_batch)
    def step():
        print("noise on standard output")
        return sum(block)
    return step
def breaks(system):
    raise SystemExit(3)
def starved(system):
    raise MemoryError
def forgets(system):
    pass
"""


@pytest.fixture(autouse=True)
def _four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foresail.api.profile.physical_cores", lambda: 4)
    monkeypatch.setattr("foresail.api.profile.usable_cores", lambda: 4)


def _seconds(system: SystemConfiguration) -> float:
    work = 0.004 * system.accumulation + 0.1 / system.dp / (1 + 0.8 * (system.threads - 1)) + 0.01 * (system.dp > 1)
    load_s = 2e-4 * 64 / system.dp
    return work + load_s if system.loader_workers == 0 else max(work, load_s / system.loader_workers)


def _measured(system: SystemConfiguration) -> Measurement:
    seconds = _seconds(system)
    return Measurement(system, settled([seconds] * 9), 3e8 + 2e6 * system.micro_batch, 9 * seconds)


def _profiled(**more: object) -> Profile:
    return profile("job.py:make", SYSTEMS, measure_one=_measured, **more)  # type: ignore[arg-type]


def test_a_handful_of_runs_finds_a_near_best_configuration() -> None:
    found = _profiled(probes=7)
    best = min(_seconds(s) for s in SYSTEMS)
    assert found.probes <= 7
    assert _seconds(found.advised) <= 1.03 * best
    assert len(found.lines) == len(SYSTEMS)
    assert sum(line.measured_s is not None for line in found.lines) == found.probes
    assert all(line.low_s <= line.predicted_s <= line.high_s for line in found.lines)


def test_no_probe_is_made_that_the_remaining_steps_cannot_repay() -> None:
    found = _profiled(probes=7, remaining_steps=1)
    assert found.probes == 1
    assert "would save" in found.stopped
    assert found.advised == found.base


def test_out_of_memory_rules_out_what_needs_as_much() -> None:
    def starved(system: SystemConfiguration) -> Measurement:
        if system.micro_batch >= 32:
            return Measurement(system, None, float("nan"), 0.0)
        return _measured(system)

    found = profile("job.py:make", SYSTEMS, measure_one=starved, probes=6)
    assert found.advised.micro_batch < 32
    assert all(line.system.micro_batch < 32 for line in found.lines)


def test_another_global_batch_never_competes() -> None:
    with pytest.raises(CallerError, match="global batches"):
        profile("job.py:make", [SystemConfiguration(micro_batch=1), SystemConfiguration(micro_batch=2)])
    with pytest.raises(CallerError, match="no configurations"):
        profile("job.py:make", [])


def test_steps_are_measured_in_fresh_processes(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(JOB)
    one = measure(Run(f"{script}:make", SystemConfiguration(micro_batch=4)), seconds=0.01)
    assert one.steps is not None
    assert one.steps.seconds > 0
    assert one.memory_bytes > 1e6
    pair = measure_together([Run(f"{script}:make", SystemConfiguration(dp=2))] * 2, seconds=0.01)
    assert [m.system.dp for m in pair] == [2, 2]
    assert measure(Run(f"{script}:starved", SystemConfiguration())).steps is None


def test_a_job_that_ends_is_the_job_s_fault(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(JOB)
    with pytest.raises(TrainingError, match="exit code"):
        measure(Run(f"{script}:breaks", SystemConfiguration()))


@pytest.mark.parametrize(
    ("name", "said"), [("forgets", "a function that runs one optimizer step"), ("mak", "did you mean 'make'")]
)
def test_what_makes_no_step_is_the_caller_s_fault(tmp_path: Path, name: str, said: str) -> None:
    script = tmp_path / "job.py"
    script.write_text(JOB)
    with pytest.raises(CallerError, match=said):
        measure(Run(f"{script}:{name}", SystemConfiguration()))


def test_the_first_run_tells_what_the_job_computes() -> None:
    job = Job(name="seen", gemm_flop=1e8, kernels=20.0, params=1e6, input_s=2e-4)

    def telling(system: SystemConfiguration) -> Measurement:
        return _measured(system)._replace(job=job)

    found = profile("job.py:make", SYSTEMS, measure_one=telling, probes=3)
    assert found.rows.known.all()
    assert found.rows.gemm_flop.tolist() == [1e8] * found.probes
    assert len(found.seconds) == found.probes


@pytest.mark.parametrize("target", ["job.py", "nowhere.py:make", "json:nothing", ":x"])
def test_a_target_that_names_no_function_is_refused(target: str) -> None:
    with pytest.raises(CallerError):
        load(target)


def test_accelerators_are_profiled_by_their_own_figures() -> None:
    systems = cpu_configurations(global_batch=64, cores=4, threads=(1,))
    found = profile("job.py:make", systems, device=device("A100"), measure_one=_measured, probes=3)
    cheap = profile("job.py:make", systems, measure_one=_measured, probes=3)
    assert found.probes <= 3
    dearest = max(line.dollars_per_million_samples for line in found.lines)
    assert dearest > max(line.dollars_per_million_samples for line in cheap.lines)


def test_what_pytorch_raises_when_a_device_is_full_is_out_of_memory(tmp_path: Path) -> None:
    script = tmp_path / "full.py"
    script.write_text(
        "class OutOfMemoryError(RuntimeError):\n    pass\n"
        "def make(system):\n    raise OutOfMemoryError('CUDA out of memory')\n"
    )
    assert measure(Run(f"{script}:make", SystemConfiguration())).steps is None


@pytest.mark.torch
def test_a_step_on_a_gpu_is_timed_to_its_end(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no GPU here")
    script = tmp_path / "gpu.py"
    script.write_text(
        "import torch\ndef make(system):\n    x = torch.randn(4096, 4096, device='cuda')\n"
        "    def step():\n        for _ in range(20): x @ x\n    return step\n"
    )
    found = measure(Run(f"{script}:make", SystemConfiguration()), seconds=0.2)
    assert found.steps is not None
    assert found.steps.seconds > 20 * 2 * 4096**3 / 2e15
    assert 4096**2 * 4 < found.memory_bytes < 8e9
