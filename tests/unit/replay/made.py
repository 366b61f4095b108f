"""Traces made up in memory, for tests of replays and policies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

from foresail.core import events as ev
from foresail.core.goal import Mode
from foresail.executors.replay import Recording
from foresail.replay.session import Contender, Setting, policy_of, run, study_of
from foresail.replay.trace import Trace, as_recording, targets_of
from foresail.space import Float, Space
from foresail.stores.memory import MemoryStore


def trace_of(
    values: Sequence[Sequence[float]],
    *,
    seconds: Sequence[Sequence[float]] | None = None,
    mode: Mode = "max",
    targets: dict[str, float] | None = None,
    name: str = "made-up",
) -> Trace:
    """A trace with one knob, the number of the curve from 0 to 1."""
    most = max(1, len(values) - 1)
    curves: list[Recording] = [
        as_recording(list(curve), None if seconds is None else list(seconds[at])) for at, curve in enumerate(values)
    ]
    return Trace(
        name=name,
        metric="accuracy",
        mode=mode,
        space=Space(x=Float(0.0, 1.0)),
        configs=tuple({"x": at / most} for at in range(len(values))),
        curves=tuple(curves),
        targets=targets or targets_of(values, mode),
    )


def random_trace(seed: int, *, configs: int = 60, steps: int = 27, diverging: float = 0.0) -> Trace:
    """Saturating curves with noise and different speeds; some end with nan."""
    rng = Random(seed)
    values, seconds = [], []
    for _ in range(configs):
        final, tau, step_s = rng.betavariate(2, 2), rng.uniform(1, steps / 2), rng.uniform(0.5, 2.0)
        curve = [final * (1 - math.exp(-t / tau)) + rng.gauss(0, 0.01) for t in range(1, steps + 1)]
        if rng.random() < diverging:
            curve[rng.randrange(1, steps) :] = [math.nan]
        values.append(curve)
        seconds.append([step_s * t for t in range(1, len(curve) + 1)])
    return trace_of(values, seconds=seconds, name=f"random-{seed}")


def played(
    trace: Trace, contender: Contender | str, *, seed: int = 0, setting: Setting | None = None
) -> list[ev.Event]:
    """The whole log of a replay."""
    who = Contender(contender, contender) if isinstance(contender, str) else contender
    setting = setting or Setting()
    store = MemoryStore()
    run(trace, study_of(trace, who, seed, setting), policy_of(trace, who), setting, store=store)
    return [event for _, event in store.read()]
