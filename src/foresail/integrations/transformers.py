"""Hugging Face Trainer: `Trainer(..., callbacks=[callback := Foresail(run)])`, then
`trainer.train(resume_from_checkpoint=callback.resume_from_checkpoint)`.

A step is an evaluation (`eval_strategy="epoch"` or "steps"). The state is Trainer's own checkpoint, which it is asked
to write where one is due; set `save_strategy="no"`.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from transformers import TrainerCallback
from transformers.trainer_utils import get_last_checkpoint

from foresail.errors import HostError
from foresail.integrations.loop import Loop, kept_in
from foresail.worker.run import Run


class Foresail(TrainerCallback):
    """Reports what each evaluation found, under Trainer's names ("eval_loss", "eval_accuracy", ...).

    Args:
        run: the trial's handle.
        max: evaluations of a whole training, if it is known.

    `resume_from_checkpoint` is for `trainer.train`: the checkpoint to go on from, or None.
    """

    def __init__(self, run: Run, max: int | None = None) -> None:
        folder = kept_in(run)
        self.resume_from_checkpoint = None if folder is None else get_last_checkpoint(str(folder))
        self._run = run
        self._saved: Path | None = None
        self._loop = Loop(run, max, self._save)

    def on_train_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        """The first step of this attempt begins."""
        self._loop.begin()

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **rest: Any) -> None:
        """Report; where a checkpoint is due, Trainer writes one next."""
        self._loop.report(metrics or {})
        self._saved = None
        if self._run.is_save_due:
            control.should_save = True
        else:
            self._loop.end_step()

    def on_save(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        """Trainer has written a checkpoint: it is copied, and the step is over."""
        self._saved = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        self._loop.end_step()

    def _save(self, folder: Path) -> None:
        if self._saved is None:
            raise HostError("Trainer has no checkpoint of this step yet")
        shutil.copytree(self._saved, folder / self._saved.name)
