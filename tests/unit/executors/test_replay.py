"""The virtual cluster: what a launch costs, what is slow, what fails, and slots that come and go."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from foresail.core import events as ev
from foresail.core.commands import DeleteCheckpoint, Kill, Launch, Yield
from foresail.core.words import AttemptId, Outcome, TrialId
from foresail.executors.replay import Hardships, Recording, ReplayExecutor, VirtualClock

RECORDING = Recording([1, 2, 3, 4], [0.1, 0.2, 0.3, 0.4], [1.0, 3.0, 4.0, 6.0])


def cluster(hardships: Hardships | None = None, recording: Recording = RECORDING) -> ReplayExecutor:
    return ReplayExecutor(lambda config: recording, "acc", VirtualClock(), hardships=hardships or Hardships())


def launch(number: int = 1, *, trial: int = 0, resume: int = 0, cores: tuple[int, ...] = (0,)) -> Launch:
    return Launch(
        attempt=AttemptId(f"{trial}-{number}"),
        trial=TrialId(trial),
        number=number,
        config={},
        cores=cores,
        resume_step=resume,
    )


def facts(executor: ReplayExecutor, until_s: float = 1e6) -> list[ev.Fact]:
    """All that happens until then."""
    found: list[ev.Fact] = []
    while executor.clock.s < until_s:
        found += executor.poll(until_s)
    return found


def points(found: Sequence[ev.Fact]) -> list[tuple[float, int]]:
    return [(e.at_s, e.step) for e in found if isinstance(e, ev.PointReported)]


def test_a_recording_is_played_at_its_own_pace() -> None:
    executor = cluster()
    executor.perform(launch())
    found = facts(executor)
    assert points(found) == [(1.0, 1), (3.0, 2), (4.0, 3), (6.0, 4)]
    assert isinstance(found[-1], ev.AttemptEnded)
    assert (found[-1].outcome, found[-1].at_s) == (Outcome.COMPLETED, 6.0)
    assert [e.seconds for e in found if isinstance(e, ev.PointReported)] == [1.0, 2.0, 1.0, 2.0]


def test_a_start_costs_and_a_restart_costs_more() -> None:
    executor = cluster(Hardships(start_s=0.5, restart_s=2.0))
    executor.perform(launch())
    assert points(facts(executor, 2.0)) == [(1.5, 1)]
    executor = cluster(Hardships(start_s=0.5, restart_s=2.0))
    executor.perform(launch(2, resume=2))
    assert points(facts(executor)) == [(3.5, 3), (5.5, 4)]
    assert executor.waited_s == 2.5


def test_delays_are_drawn_from_the_measured_ones_and_depend_on_the_attempt_alone() -> None:
    seen = set()
    for trial in range(20):
        fates = [Hardships(start_s=(1.0, 2.0, 4.0), seed=3).draw(launch(trial=trial)) for _ in range(2)]
        assert fates[0] == fates[1]
        seen.add(fates[0].delay_s)
    assert seen == {1.0, 2.0, 4.0}


def test_stragglers_are_slower_by_their_factor() -> None:
    hardships = Hardships(straggler_frac=0.5, straggler_factor=3.0)
    stretched = [hardships.draw(launch(trial=trial)).stretch for trial in range(200)]
    assert set(stretched) == {1.0, 3.0}
    assert 60 <= stretched.count(3.0) <= 140
    executor = cluster(Hardships(straggler_frac=1.0, straggler_factor=3.0))
    executor.perform(launch())
    assert points(facts(executor)) == [(3.0, 1), (9.0, 2), (12.0, 3), (18.0, 4)]


def test_more_cores_are_faster_by_the_speedup() -> None:
    executor = cluster(Hardships(speedup=float))
    executor.perform(launch(cores=(0, 1)))
    assert points(facts(executor)) == [(0.5, 1), (1.5, 2), (2.0, 3), (3.0, 4)]


def test_a_failure_loses_what_was_not_saved() -> None:
    endless = Recording(range(1, 1001), [0.0] * 1000, [float(s) for s in range(1, 1001)])
    executor = cluster(Hardships(failures_per_hour=36.0, checkpoint_steps=10, seed=1), endless)
    executor.perform(launch())
    found = facts(executor, 3000.0)
    end = found[-1]
    assert isinstance(end, ev.AttemptEnded)
    assert end.outcome is Outcome.LOST
    last = points(found)[-1][1]
    saved = [e.step for e in found if isinstance(e, ev.CheckpointSaved)]
    assert saved == list(range(10, last + 1, 10)), "only the regular checkpoints: nothing is saved by who fails"
    assert last <= end.at_s < last + 1


def test_failures_come_at_their_rate() -> None:
    hardships = Hardships(failures_per_hour=2.0)
    mean_s = sum(hardships.draw(launch(trial=t)).fails_s for t in range(2000)) / 2000
    assert mean_s == pytest.approx(1800.0, rel=0.1)


def test_who_is_asked_to_leave_saves_at_the_next_step() -> None:
    executor = cluster()
    executor.perform(launch())
    facts(executor, 1.5)
    executor.perform(Yield(AttemptId("0-1")))
    left = facts(executor)
    assert points(left) == [(3.0, 2)]
    assert [e.step for e in left if isinstance(e, ev.CheckpointSaved)] == [2]
    assert isinstance(left[-1], ev.AttemptEnded)
    assert left[-1].outcome is Outcome.YIELDED


def test_who_has_just_reported_leaves_at_once() -> None:
    executor = cluster()
    executor.perform(launch())
    while not points(executor.poll(1e6)):
        pass
    executor.perform(Yield(AttemptId("0-1")))
    left = executor.poll(1e6)
    assert [type(e) for e in left] == [ev.CheckpointSaved, ev.AttemptEnded]
    assert left[-1].at_s == 1.0


def test_a_kill_is_at_once_and_doing_things_twice_is_harmless() -> None:
    executor = cluster()
    for _ in range(2):
        executor.perform(launch())
    facts(executor, 1.5)
    for _ in range(2):
        executor.perform(Kill(AttemptId("0-1")))
    killed = [e for e in facts(executor) if isinstance(e, ev.AttemptEnded)]
    assert [(e.outcome, e.at_s) for e in killed] == [(Outcome.KILLED, 1.5)]
    executor.perform(DeleteCheckpoint("checkpoints/0/step-1-1"))
    assert executor.poll(1e7) == [ev.CheckpointDeleted(at_s=executor.clock.s, path="checkpoints/0/step-1-1")]


def test_slots_come_and_go() -> None:
    executor = cluster()
    executor.changes = ((2.0, (0,)), (5.0, (0, 1, 2)))
    executor.perform(launch(trial=0, cores=(0,)))
    executor.perform(launch(trial=1, cores=(1,)))
    found = facts(executor)
    gone = [e for e in found if isinstance(e, ev.AttemptEnded)]
    assert [(e.attempt, e.outcome, e.at_s) for e in gone] == [
        ("1-1", Outcome.LOST, 2.0),
        ("0-1", Outcome.COMPLETED, 6.0),
    ]
    assert [(e.at_s, e.cores) for e in found if isinstance(e, ev.DriverStarted)] == [(2.0, (0,)), (5.0, (0, 1, 2))]
    assert [e.at_s for e in found if isinstance(e, ev.Ticked)] == [2.0, 5.0]


def test_the_clock_waits_for_decisions_where_asked() -> None:
    executor = cluster()
    spent = [0.0]
    executor.deciding_s = lambda: spent[0]
    executor.perform(launch())
    spent[0] = 2.0
    found = facts(executor, 7.0)
    assert found[0].at_s == 2.0, "what the engine was told late happened late for it"
    assert points(found) == [(2.0, 1), (3.0, 2), (4.0, 3), (6.0, 4)], "who trains goes on training"


def test_a_horizon_is_declared_only_where_the_recording_says_so() -> None:
    for declared in (None, 9):
        executor = cluster(recording=Recording([1], [0.0], [1.0], max_steps=declared))
        executor.perform(launch())
        horizons = [e.max_steps for e in facts(executor, 2.0) if isinstance(e, ev.HorizonDeclared)]
        assert horizons == ([] if declared is None else [declared])


def test_cores_are_free_when_the_attempt_is_gone() -> None:
    executor = cluster(Hardships(leave_s=0.5, kill_s=2.0, prompt=False))
    executor.perform(launch(trial=0, cores=(0,)))
    executor.perform(launch(trial=1, cores=(1,)))
    executor.perform(launch(trial=2, cores=(2,)))
    seen: list[ev.Fact] = []
    while not points(seen):
        seen += executor.poll(1e6)
    executor.perform(Yield(AttemptId("0-1")))
    executor.perform(Kill(AttemptId("1-1")))
    ends = {e.attempt: (e.outcome, e.at_s) for e in facts(executor) if isinstance(e, ev.AttemptEnded)}
    assert ends == {
        "0-1": (Outcome.YIELDED, 3.5),  # it had gone on: it leaves after its second step
        "1-1": (Outcome.KILLED, 3.0),
        "2-1": (Outcome.COMPLETED, 6.5),
    }
