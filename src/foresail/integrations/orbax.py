"""JAX and Flax with Orbax: `kept = Kept(run, state)`, then read and set `kept.state` in the loop over `run.steps()`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orbax.checkpoint as ocp

from foresail.worker.run import Run


class Kept:
    """A pytree that is saved at checkpoints, and restored here and now where the trial resumes.

    Args:
        run: the trial's handle.
        state: parameters, optimizer state, keys of random numbers: any pytree of arrays; says what is restored.
    """

    def __init__(self, run: Run, state: Any) -> None:
        self.state = state
        run.on_save(self._save)
        run.on_load(self._load)

    def _save(self, folder: Path) -> None:
        with ocp.StandardCheckpointer() as checkpointer:
            checkpointer.save(folder.resolve() / "state", self.state)

    def _load(self, folder: Path) -> None:
        with ocp.StandardCheckpointer() as checkpointer:
            self.state = checkpointer.restore(folder.resolve() / "state", self.state)
