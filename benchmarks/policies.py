"""What the hybrid policy is worth: tables of docs/hybrid.md, as text and as JSON.

    python benchmarks/policies.py TRACES... [--seeds 5] [--parts target,workers,...] [--peers asha,...] [--json FILE]

TRACES are folders as docs/traces.md describes them. Times are virtual and so repeat exactly; `decide` alone is in
processor seconds. Ratios are geometric means over seeds, then over the traces of a family, then over families.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random

import numpy as np

from foresail.core import events as ev
from foresail.core.goal import Goal
from foresail.core.spec import Choice, Resources, StudySpec
from foresail.core.view import View, fold
from foresail.driver.loop import Driver
from foresail.engine.controller import Controller
from foresail.executors.replay import Hardships, ReplayExecutor, VirtualClock
from foresail.policies.hybrid import Hybrid
from foresail.policies.policy import AnyPolicy
from foresail.policies.registry import make
from foresail.replay.contenders import contenders
from foresail.replay.record import Record
from foresail.replay.scores import regret_at, time_to
from foresail.replay.session import Setting, replay
from foresail.replay.source import read
from foresail.replay.table import search_of
from foresail.replay.tables import family
from foresail.replay.trace import Trace, as_recording
from foresail.search.proposals import Proposals
from foresail.space import Float, Space
from foresail.stores.memory import MemoryStore

PEERS = "random,asha,asha:first_rung=3,hyperband,median,pop,oracle"
Rows = list[dict[str, object]]


def played(traces: Sequence[Trace], policies: str, seeds: int, setting: Setting) -> list[Record]:
    named = contenders(policies)
    return [replay(trace, who, seed, setting) for trace in traces for seed in range(seeds) for who in named]


def ratios(records: Sequence[Record], target: str, base: str) -> Rows:
    """Speed-up of each policy over `base`, by family and in the mean of families."""
    base_s = {(r.trace, r.seed): time_to(r, target) for r in records if r.policy == base}
    logs: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for r in records:
        logs[r.policy][r.trace].append(math.log(base_s[r.trace, r.seed] / max(time_to(r, target), 1e-9)))
    rows: Rows = []
    for policy, traces in logs.items():
        families: dict[str, list[float]] = defaultdict(list)
        for trace, values in traces.items():
            families[family(trace)].append(float(np.mean(values)))
        means = {name: float(np.mean(values)) for name, values in sorted(families.items())}
        own = [r for r in records if r.policy == policy]
        rows.append(
            {
                "policy": policy,
                **{name: round(math.exp(mean), 2) for name, mean in means.items()},
                "mean": round(math.exp(float(np.mean(list(means.values())))), 2),
                "censored": f"{np.mean([r.targets[target] is None for r in own]):.0%}",
                "regret at 1/4": round(float(np.mean([regret_at(r, 0.25) for r in own])), 3),
            }
        )
    return rows


def target(traces: Sequence[Trace], seeds: int, peers: str = PEERS) -> dict[str, Rows]:
    """Time to the top 1 %, and on the way to the top 10 %."""
    records = played(traces, f"hybrid,{peers}", seeds, Setting())
    return {f"{name} over random": ratios(records, name, "random") for name in ("top1pct", "top10pct")}


def workers(traces: Sequence[Trace], seeds: int) -> dict[str, Rows]:
    """Against asynchronous halving at other numbers of workers."""
    found = {}
    for count in (1, 4, 16, 64):
        records = played(traces, "hybrid,asha,random", seeds, Setting(workers=count))
        found[f"{count} workers, top1pct over random"] = ratios(records, "top1pct", "random")
    return found


def restart(traces: Sequence[Trace], seeds: int) -> dict[str, Rows]:
    """A restart costs as much as so many usual steps of the trace."""
    found = {}
    for steps in (0.0, 1.0, 10.0):
        records = []
        for trace in traces:
            step_s = trace.total_s / sum(len(c.steps) for c in trace.curves)
            setting = Setting(start_s=0.0, restart_s=steps * step_s)
            records += played([trace], "hybrid,asha,random", seeds, setting)
        found[f"restart of {steps:g} steps, top1pct over random"] = ratios(records, "top1pct", "random")
    return found


# --- elastic worlds -----------------------------------------------------------------------------------------------


def elastic_s(trace: Trace, policy: AnyPolicy, seed: int, *, cores: int, hardships: Hardships) -> float:
    """Study seconds to the top 1 % on a machine where trials speed up with their cores; the budget where never."""
    within_s = 0.2 * trace.total_s / cores
    goal = Goal(trace.metric, trace.mode, target=trace.targets["top1pct"], within_s=within_s)
    spec = StudySpec(
        "elastic",
        trace.space.to_dict(),
        goal,
        seed=seed,
        policy=Choice("hybrid"),
        search=Choice("random"),
        resources=Resources(workers=cores),
        max_steps=trace.max_steps,
    )
    clock, store = VirtualClock(), MemoryStore()
    controller = Controller(policy, Proposals(search_of(trace, "random", seed)))
    executor = ReplayExecutor(trace.record, trace.metric, clock, hardships=hardships)
    driver = Driver(controller, store=store, executor=executor, clock=clock)
    store.append(controller.feed(ev.StudyCreated(at_s=0.0, spec=spec)).events, durable=True)
    driver.run(tuple(range(cores)))
    return min(driver.view.now_s, within_s)


def elastic(traces: Sequence[Trace], seeds: int) -> dict[str, Rows]:
    """16 cores, speed-up k^0.8; restarts of 0.1 and 1 step: how many times quicker than asynchronous halving."""
    who: dict[str, Callable[[], AnyPolicy]] = {
        "asha": lambda: make(Choice("asha")),
        "pop": lambda: make(Choice("pop")),
        "hybrid, one core each": Hybrid,
        "hybrid, up to 4 cores": lambda: Hybrid(widest=4),
        "hybrid, up to 16 cores": lambda: Hybrid(widest=16),
    }
    found = {}
    for steps in (0.1, 1.0):
        logs: dict[str, list[float]] = defaultdict(list)
        for trace in traces:
            step_s = trace.total_s / sum(len(c.steps) for c in trace.curves)
            hardships = Hardships(restart_s=steps * step_s, speedup=lambda cores: float(cores**0.8))
            for seed in range(seeds):
                times = {n: elastic_s(trace, p(), seed, cores=16, hardships=hardships) for n, p in who.items()}
                for name, seconds in times.items():
                    logs[name].append(math.log(times["asha"] / max(seconds, 1e-9)))
        rows: Rows = [{"policy": n, "over asha": round(math.exp(float(np.mean(v))), 2)} for n, v in logs.items()]
        found[f"16 cores, speed-up k^0.8, restart of {steps:g} steps"] = rows
    return found


# --- late bloomers, and the time to decide --------------------------------------------------------------------------


def late_bloomer(seed: int) -> Trace:
    """Nineteen trials that flatten out at 0.6 or less, and one that does nothing for a third of its time."""
    rng = Random(seed)
    values = []
    for _ in range(19):
        final, tau = rng.uniform(0.3, 0.6), rng.uniform(2, 12)
        values.append([final * (1 - math.exp(-t / tau)) + rng.gauss(0, 0.005) for t in range(1, 41)])
    values.append([0.95 / (1 + math.exp(-(t - 18) / 3.0)) + rng.gauss(0, 0.005) for t in range(1, 41)])
    rng.shuffle(values)
    configs = tuple({"x": at / 19} for at in range(20))
    curves = tuple(as_recording(curve, None) for curve in values)
    targets = dict.fromkeys(("top10pct", "top1pct", "best"), 0.9)
    return Trace("bloomer", "score", "max", Space(x=Float(0.0, 1.0)), configs, curves, targets)


def bloomer(traces: Sequence[Trace], seeds: int) -> dict[str, Rows]:
    """Found in how many of 20 orders, and after which share of the time of all trials."""
    rows: Rows = []
    for who in contenders("hybrid,asha,asha-stop,median,random"):
        records = [replay(late_bloomer(s), who, s, Setting(budget_frac=1.0)) for s in range(20)]
        found = [r for r in records if r.targets["top1pct"] is not None]
        shares = [time_to(r, "top1pct") / r.budget_s for r in found]
        mean = round(float(np.mean(shares)), 2) if shares else None
        rows.append({"policy": who.name, "found of 20": len(found), "mean share of the time": mean})
    return {"a late bloomer among 20": rows}


def big_study(trials: int, seed: int = 0) -> tuple[View, object, Hybrid]:
    """A study with so many suspended trials of a few points each."""
    rng = np.random.default_rng(seed)
    policy, view = Hybrid(), View()
    knobs = {f"x{k}": Float(0.0, 1.0) for k in range(6)}
    goal = Goal("score", "max", target=0.99)
    spec = StudySpec("big", Space.of(knobs).to_dict(), goal, policy=Choice("hybrid"), max_steps=50)
    index: object = None
    log: list[ev.Event] = [ev.StudyCreated(at_s=0.0, spec=spec), ev.DriverStarted(at_s=0.0, cores=tuple(range(8)))]
    for event in log:
        fold([event], view)
        index = policy.begin(spec) if index is None else index
        policy.observe(index, view, event)  # type: ignore[arg-type]
    for number in range(trials + 8):
        for event in _life(number, rng, running=number >= trials):
            fold([event], view)
            policy.observe(index, view, event)  # type: ignore[arg-type]
    return view, index, policy


def _life(number: int, rng: np.random.Generator, *, running: bool) -> Sequence[ev.Event]:
    from foresail.core.words import Outcome, TrialId, attempt_id

    trial = TrialId(number)
    attempt, at_s, core = attempt_id(trial, 1), float(number), number % 8
    config = {f"x{k}": float(rng.random()) for k in range(6)}
    final = 0.9 * float(rng.random())
    points: list[ev.Event] = [
        ev.PointReported(
            at_s=at_s, attempt=attempt, step=s, metrics={"score": final * (1 - math.exp(-s / 5))}, seconds=1.0
        )
        for s in range(1, int(rng.integers(2, 5)))
    ]
    granted = ev.AttemptGranted(
        at_s=at_s, attempt=attempt, trial=trial, number=1, cores=(core,), resume_step=0, checkpoint=""
    )
    proposed = ev.TrialProposed(at_s=at_s, trial=trial, config=config, origin="random")
    end = [] if running else [ev.AttemptEnded(at_s=at_s, attempt=attempt, outcome=Outcome.YIELDED)]
    return [proposed, granted, *points, *end]


def decide(traces: Sequence[Trace], seeds: int) -> dict[str, Rows]:
    """Milliseconds of processor time of a decision, and of following a point, fits included."""
    rows: Rows = []
    for trials in (100, 1000, 10_000):
        began = time.process_time()
        view, index, policy = big_study(trials)
        follow_s = time.process_time() - began
        view.exhausted = "no more"
        taken = []
        for _ in range(20):
            began = time.process_time()
            policy.decide(index, view, lambda: np.random.default_rng(0))  # type: ignore[arg-type]
            taken.append(1e3 * (time.process_time() - began))
        rows.append(
            {
                "trials": trials,
                "median ms a decision": round(float(np.median(taken)), 2),
                "worst ms": round(max(taken), 2),
                "ms to follow a point, fits included": round(1e3 * follow_s / view.points, 2),
            }
        )
    return {"time to decide": rows}


PARTS = {
    "target": target,
    "workers": workers,
    "restart": restart,
    "elastic": elastic,
    "bloomer": bloomer,
    "decide": decide,
}


def shown(title: str, rows: Rows) -> str:
    names = list(rows[0])
    lines = [f"### {title}", "", "| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(str(row.get(name, "")) for name in names) + " |" for row in rows]
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("traces", nargs="*", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--peers", default=PEERS, help="of the part `target`; random among them")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    traces = [read(path) for path in arguments.traces]
    found: dict[str, Rows] = {}
    parts: dict[str, Callable[[Sequence[Trace], int], dict[str, Rows]]]
    parts = {**PARTS, "target": partial(target, peers=arguments.peers)}
    for part in arguments.parts.split(","):
        for title, rows in parts[part](traces, arguments.seeds).items():
            found[title] = rows
            print(shown(title, rows), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
