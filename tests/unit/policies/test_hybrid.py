"""The hybrid policy on made-up traces: same log same decisions, who gets slots, why, and how wide."""

from __future__ import annotations

import math
import pickle
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from made import played, random_trace, trace_of

from foresail.core import events as ev
from foresail.core.goal import Goal
from foresail.core.plan import Verdict
from foresail.core.reason import Rule
from foresail.core.spec import Choice, Resources, StudySpec
from foresail.core.view import View, fold
from foresail.core.words import Act, Label
from foresail.driver.loop import Driver
from foresail.engine.controller import Controller
from foresail.engine.verify import verify
from foresail.executors.replay import Hardships, Recording, ReplayExecutor, VirtualClock
from foresail.policies.chain import Chain
from foresail.policies.hybrid import Hybrid
from foresail.policies.prospects import Prospects
from foresail.policies.registry import make
from foresail.replay.session import Contender, Setting, replay
from foresail.replay.table import search_of
from foresail.replay.trace import Trace
from foresail.search.proposals import Proposals
from foresail.stores.memory import MemoryStore

NEVER = {"top10pct": 9.0, "top1pct": 9.0, "best": 9.0}
SMALL = Contender("hybrid", "hybrid", {"pool": 8})


def verdicts(log: list[ev.Event]) -> list[Verdict]:
    return [v for e in log if isinstance(e, ev.Planned) for v in e.verdicts]


def world(trace: Trace, policy: Hybrid, *, cores: int, target: float, hardships: Hardships) -> list[ev.Event]:
    """A replay with hardships and as many cores as asked for."""
    goal = Goal(trace.metric, trace.mode, target=target, within_s=trace.total_s)
    resources = Resources(workers=None)
    spec = StudySpec(
        "world",
        trace.space.to_dict(),
        goal,
        policy=Choice("hybrid"),
        search=Choice("random"),
        resources=resources,
        max_steps=trace.max_steps,
    )
    clock, store = VirtualClock(), MemoryStore()
    controller = Controller(policy, Proposals(search_of(trace, "random", 0)))
    executor = ReplayExecutor(trace.record, trace.metric, clock, hardships=hardships)
    driver = Driver(controller, store=store, executor=executor, clock=clock)
    store.append(controller.feed(ev.StudyCreated(at_s=0.0, spec=spec)).events, durable=True)
    driver.run(tuple(range(cores)))
    return [event for _, event in store.read()]


@pytest.mark.parametrize(("restart", "diverging"), [(0.0, 0.0), (0.7, 0.3)])
def test_the_same_log_gives_the_same_decisions(restart: float, diverging: float) -> None:
    trace = random_trace(3, configs=30, diverging=diverging)
    log = played(trace, SMALL, setting=Setting(restart_s=restart, start_s=restart))
    fresh = Controller(make(Choice("hybrid", SMALL.options)), Proposals(search_of(trace, "random", 0)))
    assert verify(log, fresh) is None


def frozen(index: Prospects) -> bytes:
    """All of an index but the space, which cannot be pickled and is frozen."""
    return pickle.dumps({name: part for name, part in vars(index).items() if name != "space"})


def test_the_index_is_a_function_of_the_log_and_deciding_changes_nothing() -> None:
    log = played(random_trace(4, configs=30), SMALL)
    policy, view, index = Hybrid(pool=8), View(), None
    for event in log:
        fold([event], view)
        index = policy.begin(event.spec) if isinstance(event, ev.StudyCreated) else index
        assert index is not None
        policy.observe(index, view, event)
        if view.ending is None and view.cores and view.events % 10 == 0:
            before = frozen(index)
            rng = lambda seed=view.events: np.random.default_rng(seed)
            assert policy.decide(index, view, rng) == policy.decide(index, view, rng)
            assert frozen(index) == before


def test_it_is_quicker_than_random_and_tries_more() -> None:
    ratios, configs = [], []
    for seed in range(4):
        trace = random_trace(30 + seed, configs=100)
        ours, random = (replay(trace, c, seed, Setting()) for c in (SMALL, Contender("random", "random")))
        time = lambda r: r.targets["top1pct"] or r.budget_s
        ratios.append(math.log(time(random) / time(ours)))
        configs.append(ours.configs / random.configs)
    assert math.exp(float(np.mean(ratios))) > 1.5
    assert float(np.mean(configs)) > 1.2


def test_every_decision_says_why_in_numbers() -> None:
    made = verdicts(played(random_trace(5), SMALL, setting=Setting(budget_frac=0.5)))
    assert {v.reason.rule for v in made} >= {Rule.WORTH_MOST, Rule.WORTH_A_LOOK, Rule.WORTH_LESS, Rule.GOES_AHEAD}
    assert {v.label for v in made} >= {Label.PROMISING, Label.OPPORTUNISTIC}
    for verdict in made:
        assert verdict.label is not None
        assert "P = " in verdict.reason.sentence()
        assert 0.0 <= verdict.reason.numbers["p"] <= 1.0


def test_of_curves_that_have_come_as_far_the_best_is_expected_to_end_best() -> None:
    heights = (0.2, 0.4, 0.6, 0.8, 0.5, 0.3)
    values = [[f * (1.0 - math.exp(-t / 6.0)) for t in range(1, 31)] for f in heights]
    log = played(trace_of(values, targets=NEVER), SMALL, setting=Setting(workers=2, budget_frac=0.5))
    index, view = index_after(log), fold(log)
    looks = {len(index.seen.get(n, ())) for n in index.of if len(index.seen.get(n, ())) > 3}
    for look in looks:
        here = [n for n in index.of if len(index.seen.get(n, ())) == look]
        best = max(here, key=lambda n: heights[round(5 * float(view.trials[n].config["x"]))])
        assert max(here, key=lambda n: index.of[n].final) == best


def index_after(log: list[ev.Event]) -> Prospects:
    policy, view = Hybrid(pool=8), View()
    index: Prospects | None = None
    for event in log:
        fold([event], view)
        if isinstance(event, ev.StudyCreated):
            index = policy.begin(event.spec)
        assert index is not None
        policy.observe(index, view, event)
    assert index is not None
    return index


def late_bloomer(seed: int) -> Trace:
    """Nineteen that flatten out at 0.6 or less, and one that does nothing for a third of its time and gets to 0.95."""
    rng = Random(seed)
    values = []
    for _ in range(19):
        final, tau = rng.uniform(0.3, 0.6), rng.uniform(2, 12)
        values.append([final * (1 - math.exp(-t / tau)) + rng.gauss(0, 0.005) for t in range(1, 41)])
    values.append([0.95 / (1 + math.exp(-(t - 18) / 3.0)) + rng.gauss(0, 0.005) for t in range(1, 41)])
    rng.shuffle(values)
    return trace_of(values, targets={"top10pct": 0.9, "top1pct": 0.9, "best": 0.9})


LAWS: dict[str, Callable[[Chain], Chain]] = {
    "biased": lambda chain: replace(chain, mean_K=chain.mean_K + chain.spread_K),
    "noise understated by 3": lambda chain: replace(chain, spread_K=chain.spread_K / 3.0),
    "twice too wide": lambda chain: replace(chain, spread_K=2.0 * chain.spread_K),
}


@pytest.mark.parametrize("law", LAWS)
def test_a_wrong_law_of_progress_does_no_more_harm_than_having_none(law: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against asynchronous halving, which has none."""
    fit = Chain.fit
    monkeypatch.setattr(Chain, "fit", lambda *seen: LAWS[law](fit(*seen)))
    ratios = []
    for seed in range(3):
        trace = random_trace(30 + seed, configs=60)
        ours, halving = (replay(trace, Contender(name, name), seed, Setting()) for name in ("hybrid", "asha"))
        time = lambda r: r.targets["top1pct"] or r.budget_s
        ratios.append(math.log(time(halving) / time(ours)))
    assert math.exp(float(np.mean(ratios))) > 0.9


def test_who_gets_stronger_is_widened_while_it_runs() -> None:
    """A trial holds more cores in a later attempt than in an earlier one, and has gone on from where it was."""
    hardships = Hardships(speedup=lambda cores: float(cores**0.8), restart_s=0.01)
    log = world(random_trace(8, configs=20), Hybrid(pool=8, widest=4), cores=8, target=9.0, hardships=hardships)
    widths: dict[int, list[int]] = defaultdict(list)
    for event in log:
        if isinstance(event, ev.AttemptGranted):
            widths[event.trial].append(len(event.cores))
    grown = [trial for trial, cores in widths.items() if max(cores) > cores[0]]
    assert grown
    assert all(fold(log).trials[trial].last_step > 1 for trial in grown)


@pytest.mark.parametrize("seed", range(4))
def test_a_late_bloomer_is_found(seed: int) -> None:
    """In the time that training all of them takes."""
    assert replay(late_bloomer(seed), SMALL, seed, Setting(budget_frac=1.0)).targets["top1pct"] is not None


def test_near_the_deadline_nothing_is_started_that_cannot_get_there() -> None:
    """Curves that need all their steps: the last are started well before the end of the time."""
    values = [[0.1 + 0.8 * (t / 20.0) ** 2 * (0.5 + i / 60.0) for t in range(1, 21)] for i in range(30)]
    trace = trace_of(values, targets={"top10pct": 0.89, "top1pct": 0.89, "best": 0.89})
    log = played(trace, SMALL, setting=Setting(budget_frac=0.3, workers=2))
    starts = [e.at_s for e in log if isinstance(e, ev.AttemptGranted) and e.number == 1]
    assert max(starts) < 0.95 * log[-1].at_s


def test_with_width_the_leader_gets_the_cores_and_is_quicker() -> None:
    trace = random_trace(8, configs=40)
    target = trace.targets["top10pct"]
    speedup = lambda cores: float(cores**0.8)
    times = {}
    for widest in (1, 4):
        log = world(trace, Hybrid(pool=8, widest=widest), cores=8, target=target, hardships=Hardships(speedup=speedup))
        granted = [len(e.cores) for e in log if isinstance(e, ev.AttemptGranted)]
        assert max(granted) <= widest
        times[widest] = log[-1].at_s
        held: dict[str, int] = {}
        for event in log:
            if isinstance(event, ev.AttemptGranted):
                held[event.attempt] = len(event.cores)
            elif isinstance(event, ev.AttemptEnded):
                held.pop(event.attempt)
            assert sum(held.values()) <= 8


def test_trials_that_diverge_or_fail_do_not_stop_the_study() -> None:
    trace = random_trace(9, configs=30, diverging=0.6)
    hardships = Hardships(failures_per_hour=120.0, checkpoint_steps=3, restart_s=0.5)
    log = world(trace, Hybrid(pool=8), cores=3, target=9.0, hardships=hardships)
    view = fold(log)
    assert view.ended is not None
    assert all(t.ended is not None or t.id in view.suspended or t.id in view.waiting for t in view.trials)


def test_nobody_is_ended_before_two_fifths_of_its_steps() -> None:
    log = played(random_trace(11), Contender("hybrid", "hybrid", {"pool": 8, "hopeless": 0.5}))
    view = fold(log)
    ended = [v.trial for v in verdicts(log) if v.act is Act.END]
    assert all(view.trials[t].last_step >= 0.4 * 27 for t in ended)


def test_who_reports_rarely_is_weighed_too() -> None:
    """Steps 7, 14, ... are hardly ever looks."""
    trace = random_trace(1, configs=12, steps=70)
    rare = replace(trace, curves=tuple(thinned(curve, 7) for curve in trace.curves))
    made = verdicts(played(rare, SMALL))
    assert any(v.act is Act.WAIT for v in made)
    assert len({v.trial for v in made if v.act is Act.RUN}) > 4


def thinned(curve: Recording, every: int) -> Recording:
    kept = range(every - 1, len(curve.steps), every)
    steps, values, seconds = ([column[n] for n in kept] for column in (curve.steps, curve.values, curve.seconds))
    return replace(curve, steps=steps, values=values, seconds=seconds)
