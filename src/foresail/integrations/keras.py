"""Keras 3, any backend: `model.fit(..., epochs=50, callbacks=[Foresail(run)])`. The model must be built.

A step is an epoch. The state is the weights of model and optimizer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras

from foresail.integrations.loop import Loop, kept_in
from foresail.worker.run import Run

_FILE = "model.weights.h5"


class Foresail(keras.callbacks.Callback):
    """Reports the logs of each epoch, under Keras's names ("loss", "val_accuracy", ...).

    Args:
        run: the trial's handle.
    """

    def __init__(self, run: Run) -> None:
        super().__init__()
        self._run = run
        self._loop: Loop

    def on_train_begin(self, logs: Any = None) -> None:
        """Restore, and skip the epochs that are done."""
        folder = kept_in(self._run)
        if folder is not None:
            if self.model.optimizer is not None and not self.model.optimizer.built:
                self.model.optimizer.build(self.model.trainable_variables)
            self.model.load_weights(folder / _FILE)
            self.model._initial_epoch = self._run.resume_step  # as Keras's own BackupAndRestore does
        self._loop = Loop(self._run, self.params["epochs"], self._save)
        self._loop.begin()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Report the epoch."""
        self._loop.report(logs or {})
        self._loop.end_step()

    def _save(self, folder: Path) -> None:
        self.model.save_weights(folder / _FILE)
