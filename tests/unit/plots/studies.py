"""Studies played in no time: a made-up table of curves under a policy, as logs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import Any

from foresail.core import events as ev
from foresail.core.goal import Goal
from foresail.core.spec import Choice, Resources, StudySpec
from foresail.executors.replay import Recording
from foresail.policies.registry import make
from foresail.replay.session import Setting, run
from foresail.replay.table import RECORDED
from foresail.replay.trace import Trace, targets_of
from foresail.space import Choice as Options
from foresail.space import Float, Int, Space
from foresail.stores.memory import MemoryStore

EVIL = "<script>alert('x')</script>"
SPACE = Space(
    lr=Float(1e-4, 1.0, log=True),
    width=Int(8, 256, log=True),
    kind=Options(["plain", EVIL]),
    momentum=Float(0.0, 0.99, when={"kind": "plain"}),
)


def table(trials: int = 40, steps: int = 20, *, seed: int = 0, mode: str = "max") -> Trace:
    """Curves whose end hangs on `lr` alone, and whose speed hangs on `width` alone."""
    rng = Random(seed)
    configs, curves = [], []
    for _ in range(trials):
        config = SPACE.point([rng.random() for _ in SPACE.knobs])
        final = 0.95 - 0.6 * abs(SPACE.to_unit(config)[0] - 0.6)
        rise = rng.uniform(2.0, 6.0)
        curve = [final * (1.0 - math.exp(-step / rise)) + rng.gauss(0.0, 0.003) for step in range(1, steps + 1)]
        values = curve if mode == "max" else [1.0 - value for value in curve]
        step_s = 0.01 * float(config["width"])
        configs.append(config)
        curves.append(Recording(range(1, steps + 1), values, [step_s * n for n in range(1, steps + 1)], steps))
    targets = targets_of([c.values for c in curves], mode)  # type: ignore[arg-type]
    return Trace("made-up", "accuracy", mode, SPACE, tuple(configs), tuple(curves), targets)  # type: ignore[arg-type]


def played(trace: Trace, policy: str = "pop", *, workers: int = 3, **goal: Any) -> list[ev.Event]:
    """The log of a study of all rows of `trace`, in their order."""
    limits = goal or {"trials": len(trace.configs)}
    spec = StudySpec(
        name=f"made up & {EVIL}",
        space=trace.space.to_dict(),
        goal=Goal(trace.metric, trace.mode, **limits),
        policy=Choice(policy),
        search=Choice(RECORDED),
        resources=Resources(workers=workers),
        max_steps=trace.max_steps,
    )
    store = MemoryStore()
    run(trace, spec, make(spec.policy), Setting(workers=workers, start_s=0.5), store=store)
    return [event for _, event in store.read()]


def pieces(events: Sequence[ev.Event], count: int = 7) -> list[Sequence[ev.Event]]:
    """The log in `count` parts."""
    size = -(-len(events) // count)
    return [events[at : at + size] for at in range(0, len(events), size)]
