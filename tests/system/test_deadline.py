"""A deadline holds even if no trial ever reports, and nobody listens to SIGTERM."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from foresail.api.recorded import load_result

SCRIPT = Path(__file__).parent / "silent_study.py"
SPARE_S = 30.0
"""For starting processes on a busy machine; the study's own limits are 2 s and a grace of 1 s."""


@pytest.mark.slow
def test_a_study_ends_in_time_though_nothing_reports(tmp_path: Path) -> None:
    storage = tmp_path / "silent.db"
    started = time.monotonic()
    done = subprocess.run([sys.executable, str(SCRIPT), str(storage)], check=False, timeout=120)
    took = time.monotonic() - started
    result = load_result(storage)
    assert done.returncode == 0
    assert result.end == "deadline"
    assert result.best is None
    assert 2.0 <= took < 2.0 + 1.0 + SPARE_S
    assert result.seconds < 2.0 + 1.0 + 10.0, "study time: deadline, grace, and the kill"
