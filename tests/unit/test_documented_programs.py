"""Programs in the documentation that stand for themselves are run as a reader would run them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def programs(page: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    return [code for code in found if "__main__" in code]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "number", "needs", "printed"),
    [
        ("optuna.md", 0, "optuna", "lr"),
        ("trackers.md", 0, "pandas", "score"),
        ("ray-tune.md", 0, "foresail", "lr"),
        pytest.param("ray-tune.md", 1, "ray", "lr", marks=pytest.mark.ray),
    ],
)
def test_the_program_runs(page: str, number: int, needs: str, printed: str, tmp_path: Path) -> None:
    if find_spec(needs) is None:
        pytest.skip(f"{needs} is not installed")
    code = programs(page)[number]
    (tmp_path / "program.py").write_text(code)
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": path,
            "OMP_NUM_THREADS": "1",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ADDRESS": "local",
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert printed in done.stdout
