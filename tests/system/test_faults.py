"""A short run of the fault campaign; the long ones are by command (`benchmarks/faults.py`)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import faults


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="stops, limits and finds processes as Linux does")
def test_a_study_survives_faults_of_many_kinds(tmp_path: Path) -> None:
    counts = faults.real(1, 2, 0.0, tmp_path, drivers=3, faults_each=5).counts
    assert sum(counts.values()) >= 8
    assert len(counts) >= 5


def test_histories_in_the_virtual_world_survive_theirs() -> None:
    counts = faults.virtual(300, 0).counts
    assert len(counts) >= 8
