"""Libraries that were imported before an attempt was forked use as many threads as it has cores."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sklearn.ensemble, threadpoolctl
from foresail.executors import cores
cores.set_library_threads(1, user_set=())
print({pool["num_threads"] for pool in threadpoolctl.threadpool_info()})
"""


@pytest.mark.skipif(sys.platform != "linux", reason="libraries are found in /proc")
def test_openmp_and_openblas_are_told() -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=True,
        timeout=200,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert told.stdout.strip() == "{1}"
