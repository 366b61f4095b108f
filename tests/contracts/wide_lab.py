"""Trainings over several ranks in a laboratory."""

from __future__ import annotations

from typing import Any

from lab import Lab
from trainings import HERE

from foresail.core import events as ev
from foresail.core.layout import Layout
from foresail.core.spec import Entry

TRAINING = Entry(function=f"{HERE.with_name('wide_trainings.py')}:train")
ONE = Layout()
LAYOUTS = {
    "dp": Layout(dp=2),
    "fsdp": Layout(dp=2, sharded=True),
    "tp": Layout(tp=2),
    "pp": Layout(pp=2),
    "micro": Layout(dp=2, micro_batch=4),
}


def launch(lab: Lab, trial: int, layout: Layout, number: int = 1, **config: Any) -> str:
    """Launch an attempt of a trial, from the trial's newest checkpoint."""
    saved = [s for s in lab.of(ev.CheckpointSaved) if s.attempt.startswith(f"{trial}-")]
    since = {"resume_step": saved[-1].step, "checkpoint": saved[-1].path} if saved else {}
    whole = {"kind": "transformer", "steps": 4, "leave_after": "", **config}
    return lab.launch(trial, number, seed=11, config=whole, layout=layout, cores=(0, 1), **since)


def curve(lab: Lab, trial: int) -> dict[int, tuple[float, float]]:
    """Loss, and what tells the order of the samples, by step."""
    points = [p for p in lab.of(ev.PointReported) if p.attempt.startswith(f"{trial}-")]
    return {p.step: (-p.metrics["accuracy"], p.metrics["order"]) for p in points}
