"""What a study saved against training everything: its own configurations, in their order, each to its end.

The study is played again through the same engine, first in, first out, on its own curves, delays and number of
workers, until its target is reached or nothing is left. What it did not train is filled in by arithmetic: at each
trial's measured seconds a step, with a value that stands still. A trial that was ended early might have reached the
target, so with a target the saving is an upper bound wherever steps were filled in; without one it is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as with_fields

from msgspec import UNSET, Struct
from msgspec.structs import replace

from foresail.core import events as ev
from foresail.core.goal import Goal
from foresail.core.spec import Choice, Resources
from foresail.core.view import Trial, View
from foresail.core.words import Status
from foresail.errors import CallerError
from foresail.executors.replay import Recording
from foresail.policies.registry import make
from foresail.replay.recorded import read_events
from foresail.replay.session import Setting, run
from foresail.replay.table import RECORDED
from foresail.stores.memory import MemoryStore

OVER = (Status.COMPLETED, Status.DIVERGED, Status.FAILED)
LEAST = 2
"""Trials below which nothing can have been saved."""


class Saving(Struct, frozen=True):
    """The study (`used_s`, `used_device_s`) beside training everything (`all_s`, `all_device_s`): study seconds, and
    seconds times cores.

    `trials`: that were trained there; `steps`: that were trained there, `filled_in`: of these, by arithmetic;
    `reached`: whether training everything reached the target.
    """

    used_s: float
    used_device_s: float
    all_s: float
    all_device_s: float
    trials: int
    steps: int
    filled_in: int
    reached: bool

    @property
    def by(self) -> str:
        """What the comparison rests on."""
        if not self.filled_in:
            return "replay of its own curves"
        share = self.filled_in / max(1, self.steps)
        return f"replay of its own curves, {share:.0%} of the steps filled in by arithmetic"

    @property
    def saved_frac(self) -> float:
        """Share of the core time of training everything that was not spent; negative where the study cost more."""
        return 1.0 - self.used_device_s / self.all_device_s if self.all_device_s > 0.0 else 0.0


def saving(view: View, events: Sequence[ev.Event]) -> Saving | None:
    """What the study of `events`, whose view is `view`, saved; None before two trials have reported."""
    try:
        trace = read_events(events, where=view.spec.name)
    except CallerError:
        return None
    if len(trace.curves) < LEAST:
        return None
    told = [trial for trial in view.trials if trial.told]
    curves = tuple(_to_its_end(curve, trial) for curve, trial in zip(trace.curves, told, strict=True))
    whole = with_fields(trace, curves=curves)
    goal = view.spec.goal
    spec = replace(
        view.spec,
        space=trace.space.to_dict(),
        policy=Choice("fifo"),
        search=Choice(RECORDED),
        resources=Resources(workers=trace.workers),
        silence_s=UNSET,
        goal=Goal(goal.metric, goal.mode, goal.target, trials=len(curves)),
    )
    setting = Setting(workers=trace.workers, start_s=None, restart_s=None, leave_s=None)
    driver, _ = run(whole, spec, make(spec.policy), setting, store=MemoryStore())
    played = driver.view
    known = [trace.record(trial.config).steps[-1] for trial in played.trials]
    return Saving(
        used_s=view.now_s,
        used_device_s=view.device_s_used,
        all_s=played.now_s,
        all_device_s=played.device_s_used * max(1, view.spec.resources.cores_per_trial),
        trials=sum(trial.reached > 0 for trial in played.trials),
        steps=sum(trial.reached for trial in played.trials),
        filled_in=sum(max(0, t.reached - steps) for t, steps in zip(played.trials, known, strict=True)),
        reached=played.ended is not None and played.ended.end == "target",
    )


def _to_its_end(curve: Recording, trial: Trial) -> Recording:
    """The curve with what was not trained filled in, unless nothing is left or nobody knows how much is."""
    end, last = trial.max_steps or 0, curve.steps[-1]
    if trial.ended in OVER or end <= last:
        return curve
    step_s = trial.step_s or curve.seconds[-1] / last
    rest = range(last + 1, end + 1)
    return Recording(
        [*curve.steps, *rest],
        [*curve.values, *(curve.values[-1] for _ in rest)],
        [*curve.seconds, *(curve.seconds[-1] + step_s * (step - last) for step in rest)],
        curve.max_steps,
    )
