"""The best so far, over time and over steps."""

from __future__ import annotations

from msgspec import Struct

from foresail.plots.chronicle import Chronicle, Improvement


class BestSoFar(Struct, frozen=True):
    """Each change of the best, and where the study stands. `within_s`: its deadline, None without one."""

    events: int
    metric: str
    mode: str
    target: float | None
    within_s: float | None
    now_s: float
    steps: int
    device_s: float
    improvements: tuple[Improvement, ...]


def best_so_far(chronicle: Chronicle) -> BestSoFar:
    """The best value against study seconds, steps of all trials, and core-seconds."""
    view = chronicle.view
    goal = view.spec.goal
    return BestSoFar(
        events=view.events,
        metric=goal.metric,
        mode=goal.mode,
        target=goal.target,
        within_s=goal.within_s,
        now_s=view.now_s,
        steps=chronicle.steps,
        device_s=view.device_s_used,
        improvements=tuple(chronicle.improvements),
    )
