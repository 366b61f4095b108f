"""A training whose ranks do not want the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch  # noqa: F401  # ranks speak through it

HERE = Path(__file__).resolve()


def disagrees(run: Any) -> None:
    for step in run.steps(max=2 + run.rank):
        run.report(accuracy=step)
