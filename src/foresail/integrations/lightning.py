"""Lightning: `Trainer(callbacks=[callback := Foresail(run)])`, then `trainer.fit(..., ckpt_path=callback.ckpt_path)`.

A step is an epoch. The state is Lightning's own checkpoint: model, optimizers, schedulers, loops and callbacks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, Trainer

from foresail.integrations.loop import Loop, kept_in
from foresail.worker.run import Run

_FILE = "lightning.ckpt"


class Foresail(Callback):
    """Reports `trainer.callback_metrics` after each epoch, under the names of `self.log(...)`.

    Args:
        run: the trial's handle.

    `ckpt_path` is for `trainer.fit`: the checkpoint to go on from, or None.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        folder = kept_in(run)
        self.ckpt_path: str | None = None if folder is None else str(folder / _FILE)
        self._loop: Loop

    def on_fit_start(self, trainer: Trainer, pl_module: Any) -> None:
        """Before the first epoch's data are asked for, which draws random numbers."""

        def save(folder: Path) -> None:
            trainer.save_checkpoint(folder / _FILE)

        most = trainer.max_epochs
        self._loop = Loop(self._run, most if most is not None and most > 0 else None, save)
        self._loop.begin()

    def on_train_epoch_end(self, trainer: Trainer, pl_module: Any) -> None:
        """Metrics of training are there only after this hook of the module itself; so are those of validation."""
        self._loop.report(trainer.callback_metrics)
        self._loop.end_step()
