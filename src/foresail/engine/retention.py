"""Which checkpoints may go. One byte budget for the whole study.

Never deleted: the study's best, and of each trial that has not ended the latest (it may be resumed) and its best.
Of ended trials the best one stays while the budget allows; those of the worst trials go first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from foresail.core.goal import Mode
from foresail.core.view import Checkpoint, Trial, View


def superseded(view: View, trial: Trial) -> Iterator[Checkpoint]:
    """Checkpoints of the trial that nothing needs any more."""
    if len(trial.saved) < 2:
        return
    best = best_of(trial.saved, view.spec.goal.mode)
    latest = trial.checkpoint if trial.ended is None else None
    for checkpoint in trial.saved:
        if checkpoint is not best and checkpoint is not latest:
            yield checkpoint


def over_budget(view: View) -> Iterator[Checkpoint]:
    """Checkpoints of ended trials that must go too once all superseded ones do, worst first, until the budget holds."""
    over = view.checkpoint_bytes - view.spec.keep_bytes
    if over <= 0:
        return
    trials = {c.trial: view.trials[c.trial] for c in view.checkpoints.values()}
    going = {c.path for trial in trials.values() for c in superseded(view, trial)}
    over -= sum(view.checkpoints[path].bytes for path in going)
    kept = {best.path} if (best := best_checkpoint(view)) else set()
    ended = [c for t in trials.values() if t.ended is not None for c in t.saved if c.path not in going | kept]
    sign = 1.0 if view.spec.goal.mode == "max" else -1.0
    for checkpoint in sorted(ended, key=lambda c: -math.inf if c.value is None else sign * c.value):
        if over <= 0:
            return
        over -= checkpoint.bytes
        yield checkpoint


def best_of(checkpoints: tuple[Checkpoint, ...], mode: Mode) -> Checkpoint | None:
    """The one with the best finite value; later steps win ties."""
    known = [c for c in checkpoints if c.value is not None and math.isfinite(c.value)]
    sign = 1.0 if mode == "max" else -1.0
    return max(known, key=lambda c: (sign * float(c.value or 0.0), c.step), default=None)


def best_checkpoint(view: View) -> Checkpoint | None:
    """The checkpoint of the study's best trial that has the best value."""
    return best_of(view.trials[view.best[0]].saved, view.spec.goal.mode) if view.best else None
