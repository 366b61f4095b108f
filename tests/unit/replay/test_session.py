"""A replay: the live engine, deterministic, fair, and bounded by what the oracle reaches."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from made import played, random_trace, trace_of

from foresail.core import codec
from foresail.core import events as ev
from foresail.engine.controller import Controller
from foresail.engine.verify import verify
from foresail.errors import CallerError
from foresail.policies.registry import NAMES
from foresail.replay.record import Record
from foresail.replay.session import ORACLE, Contender, Setting, policy_of, replay
from foresail.replay.table import search_of
from foresail.search.proposals import Proposals

FORESEEING = ("pop", "earlyterm", "freezethaw")
CHEAP = tuple(name for name in (*NAMES, ORACLE) if name not in FORESEEING)
HARD = Setting(
    workers=3,
    budget_frac=0.5,
    start_s=0.5,
    restart_s=1.0,
    straggler_frac=0.2,
    failures_per_hour=40.0,
    checkpoint_steps=4,
    changes=((20.0, 2), (60.0, 3)),
)


def timeless(record: Record) -> Record:
    return msgspec.structs.replace(record, deciding_s=0.0)


@pytest.mark.parametrize("name", [*CHEAP, pytest.param("earlyterm", marks=pytest.mark.slow)])
def test_the_same_seed_gives_the_same_record(name: str) -> None:
    trace, who = random_trace(1, configs=30), Contender(name, name)
    first, second = (timeless(replay(trace, who, 3, HARD)) for _ in range(2))
    assert first == second
    assert first.steps > 0


@pytest.mark.parametrize("name", [*CHEAP, *(pytest.param(n, marks=pytest.mark.slow) for n in FORESEEING)])
@pytest.mark.parametrize("setting", [Setting(budget_frac=0.4), HARD], ids=["plain", "hard"])
def test_a_log_replays_to_the_same_decisions_byte_for_byte(name: str, setting: Setting) -> None:
    trace = random_trace(2, configs=24, diverging=0.3)
    who = Contender(name, name)
    log = played(trace, who, seed=5, setting=setting)
    assert any(isinstance(event, ev.Planned) for event in log)
    again = [codec.decode(codec.encode(event)) for event in log]
    fresh = Controller(policy_of(trace, who), Proposals(search_of(trace, who.search, 5)))
    assert verify(again, fresh) is None


def test_every_policy_meets_the_same_configurations_in_the_same_order() -> None:
    trace = random_trace(3)
    orders = {}
    for name in ("random", "asha", "hyperband", "median"):
        log = played(trace, name, seed=9)
        orders[name] = [event.config["x"] for event in log if isinstance(event, ev.TrialProposed)]
    longest = max(orders.values(), key=len)
    for order in orders.values():
        assert order == longest[: len(order)]
    other = [event.config["x"] for event in played(trace, "random", seed=10) if isinstance(event, ev.TrialProposed)]
    assert other[:4] != longest[:4]


def test_nobody_beats_the_oracle() -> None:
    for seed in range(3):
        trace = random_trace(seed, configs=40)
        times = {
            name: replay(trace, Contender(name, name), seed, Setting(budget_frac=1.0)).targets["top1pct"]
            for name in CHEAP
        }
        reached = {name: at for name, at in times.items() if at is not None}
        assert reached[ORACLE] == min(reached.values()), times


def test_a_run_ends_at_its_target_or_with_its_budget() -> None:
    trace = trace_of([[0.1, 0.2, 0.3], [0.2, 0.3, 0.9]], targets={"top10pct": 0.3, "top1pct": 0.9, "best": 0.9})
    record = replay(trace, Contender("random", "random"), 0, Setting(workers=2, budget_frac=2.0))
    assert (record.end, record.targets) == ("target", {"top10pct": 2.0, "top1pct": 3.0, "best": 3.0})
    assert record.budget_s == 6.0
    short = replay(trace, Contender("random", "random"), 0, Setting(workers=2, budget_frac=0.5))
    assert (short.end, short.targets["top1pct"], short.total_s) == ("deadline", None, pytest.approx(2.0, abs=1.0))
    whole = replay(trace, Contender("random", "random"), 0, Setting(workers=1, budget_frac=1.0, target=None))
    assert (whole.end, whole.steps, whole.configs) == ("deadline", 6, 2)


def test_the_regret_curve_improves_and_the_shares_add_up() -> None:
    record = replay(random_trace(4), Contender("asha", "asha"), 0, Setting(start_s=0.3, restart_s=0.2))
    values = [value for _, value in record.regret]
    assert all(later > earlier for earlier, later in pairwise(values))
    assert 0.0 < record.restart_frac < record.used_frac < 1.0
    assert record.used_frac + record.restart_frac <= 1.0 + 1e-9
    assert record.attempts >= record.configs


def test_deciding_costs_virtual_time_where_asked() -> None:
    trace, who = random_trace(5), Contender("asha", "asha")
    free = replay(trace, who, 0, Setting())
    charged = replay(trace, who, 0, Setting(charge_deciding=True))
    assert charged.deciding_s > 0.0
    assert charged.total_s >= free.total_s


def test_an_unknown_target_is_answered_with_the_nearest() -> None:
    with pytest.raises(CallerError, match="did you mean 'top1pct'"):
        replay(random_trace(0), Contender("random", "random"), 0, Setting(target="top1"))
