"""Accelerate: `keep(run, accelerator)` after `accelerator.prepare(...)`; loop as `for epoch in run.steps(max=...)`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from foresail.worker.run import Run


def keep(run: Run, accelerator: Any) -> None:
    """Save what the accelerator has prepared at checkpoints, and restore it here and now where the trial resumes."""

    def save(folder: Path) -> None:
        accelerator.save_state(str(folder))

    def load(folder: Path) -> None:
        accelerator.load_state(str(folder))

    run.on_save(save)
    run.on_load(load)
