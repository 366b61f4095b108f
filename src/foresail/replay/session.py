"""One replay: a trace, a policy, a seed; the live engine on a virtual cluster."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from foresail.core import events as ev
from foresail.core.goal import Goal
from foresail.core.spec import Choice, Resources, StudySpec
from foresail.driver.loop import Driver
from foresail.engine.controller import Controller
from foresail.errors import CallerError, nearest
from foresail.executors.replay import Hardships, ReplayExecutor, VirtualClock
from foresail.policies.oracle import Oracle
from foresail.policies.policy import AnyPolicy
from foresail.policies.registry import make
from foresail.ports import Store
from foresail.replay.record import Record, Watch
from foresail.replay.table import search_of
from foresail.replay.throughput import PowerLaw, Speedup
from foresail.replay.trace import Trace
from foresail.search.proposals import Proposals

ORACLE = "oracle"


class Setting(Struct, frozen=True, kw_only=True):
    """What is the same for every policy of a comparison.

    Args:
        workers: Trials at a time.
        target: Name of the target at which a run ends; None to use the whole budget.
        budget_frac: A run ends when this share of the time that all configurations need to their ends, divided by the
            workers, is used; it then counts with that time and as censored.
        start_s: Seconds from the launch of an attempt to its first step; None for what the trace has measured.
        restart_s: Seconds more for an attempt that continues a trial; None likewise.
        leave_s: Seconds from the last thing that an attempt does until its worker is free; None likewise, and then
            with what the trace tells of whether it leaves at once (`Hardships.prompt`).
        same_fates: Whether an attempt has the delays that the recorded attempt of its number had.
        straggler_frac, straggler_factor, failures_per_hour, checkpoint_steps: as in `Hardships`.
        changes: (study seconds, workers from then on): slots that come and go.
        speedup: How many times faster a trial is on so many workers, for policies that widen trials; None: not at all.
        charge_deciding: Whether virtual time passes while engine and policy think; records then vary a little.
    """

    workers: int = 4
    target: str | None = "top1pct"
    budget_frac: float = 0.2
    start_s: float | None = 0.0
    restart_s: float | None = 0.0
    leave_s: float | None = 0.0
    same_fates: bool = False
    straggler_frac: float = 0.0
    straggler_factor: float = 2.0
    failures_per_hour: float = 0.0
    checkpoint_steps: int = 0
    changes: tuple[tuple[float, int], ...] = ()
    speedup: Speedup | PowerLaw | None = None
    charge_deciding: bool = False


class Contender(Struct, frozen=True):
    """A policy with its options and its search, under the name that tables show."""

    name: str
    policy: str
    options: dict[str, Any] = field(default_factory=dict)
    search: str = "random"


def replay(trace: Trace, contender: Contender, seed: int, setting: Setting) -> Record:
    """Play `trace` under a policy.

    Raises:
        CallerError: an unknown target, policy, option or search.
    """
    spec = study_of(trace, contender, seed, setting)
    watch = Watch(spec.goal, trace.targets)
    driver, executor = run(trace, spec, policy_of(trace, contender), setting, store=watch)
    return _record(trace, contender, driver, executor, watch)


def study_of(trace: Trace, contender: Contender, seed: int, setting: Setting) -> StudySpec:
    """The study that is played."""
    if setting.target is not None and setting.target not in trace.targets:
        raise CallerError(f"no target is called {setting.target!r}", do=nearest(setting.target, trace.targets))
    goal = Goal(
        metric=trace.metric,
        mode=trace.mode,
        target=None if setting.target is None else trace.targets[setting.target],
        within_s=setting.budget_frac * trace.total_s / setting.workers,
    )
    return StudySpec(
        name=f"{trace.name}/{contender.name}/{seed}",
        space=trace.space.to_dict(),
        goal=goal,
        seed=seed,
        policy=Choice(contender.policy, contender.options),
        search=Choice(contender.search),
        resources=Resources(workers=max(setting.workers, *(workers for _, workers in setting.changes), 1)),
        max_steps=trace.max_steps,
    )


def policy_of(trace: Trace, contender: Contender) -> AnyPolicy:
    """The policy; the oracle is shown the curves."""
    if contender.policy == ORACLE:
        return Oracle(trace.record)
    return make(Choice(contender.policy, contender.options))


def run(
    trace: Trace, spec: StudySpec, policy: AnyPolicy, setting: Setting, *, store: Store
) -> tuple[Driver, ReplayExecutor]:
    """Play a study to its end."""
    clock = VirtualClock()
    controller = Controller(policy, Proposals(search_of(trace, spec.search.name, spec.seed)))
    executor = ReplayExecutor(trace.record, trace.metric, clock, hardships=_hardships(trace, setting, spec.seed))
    executor.changes = tuple((at_s, tuple(range(workers))) for at_s, workers in setting.changes)
    driver = Driver(controller, store=store, executor=executor, clock=clock)
    if setting.charge_deciding:
        executor.deciding_s = lambda: driver.deciding_s
    store.append(controller.feed(ev.StudyCreated(at_s=0.0, spec=spec)).events, durable=True)
    driver.run(tuple(range(setting.workers)))
    return driver, executor


def _hardships(trace: Trace, setting: Setting, seed: int) -> Hardships:
    return Hardships(
        start_s=(trace.starts_s or 0.0) if setting.start_s is None else setting.start_s,
        restart_s=(trace.restarts_s or 0.0) if setting.restart_s is None else setting.restart_s,
        leave_s=(trace.leaves_s or 0.0) if setting.leave_s is None else setting.leave_s,
        kill_s=(trace.kills_s or 0.0) if setting.leave_s is None else setting.leave_s,
        prompt=trace.prompt if setting.leave_s is None else True,
        fates=trace.fates if setting.same_fates else {},
        straggler_frac=setting.straggler_frac,
        straggler_factor=setting.straggler_factor,
        failures_per_hour=setting.failures_per_hour,
        checkpoint_steps=setting.checkpoint_steps,
        speedup=setting.speedup,
        seed=seed,
    )


def _record(trace: Trace, contender: Contender, driver: Driver, executor: ReplayExecutor, watch: Watch) -> Record:
    view = driver.view
    held_s = view.slots * view.now_s
    assert view.ended is not None
    assert view.spec.goal.within_s is not None
    return Record(
        trace=trace.name,
        policy=contender.name,
        search=contender.search,
        seed=view.spec.seed,
        workers=view.slots,
        targets=watch.reached,
        targets_at=dict(trace.targets),
        median=trace.median,
        regret=tuple(watch.improvements),
        total_s=view.now_s,
        budget_s=view.spec.goal.within_s,
        steps=watch.steps,
        configs=sum(trial.attempts > 0 for trial in view.trials),
        attempts=watch.attempts,
        used_frac=watch.trained_s / held_s if held_s else 0.0,
        restart_frac=executor.waited_s / held_s if held_s else 0.0,
        deciding_s=driver.deciding_s,
        end=view.ended.end,
    )
