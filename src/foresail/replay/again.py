"""A recorded study played again: its own policy, goal, seed and workers on its own curves, order and delays.

It tells how far a replay is from the life that it stands for (`Fidelity`), and it is not the check that a log's
decisions follow from its facts, which is exact (`engine/verify.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from foresail.core import events as ev
from foresail.core.spec import Choice, Resources
from foresail.errors import CallerError
from foresail.policies.registry import make
from foresail.replay.recorded import read_events
from foresail.replay.session import Setting, run
from foresail.replay.table import RECORDED
from foresail.stores.memory import MemoryStore


class Fidelity(Struct, frozen=True):
    """`live_s`, `replayed_s`: study seconds of both. `same_grants_frac`: share of the live study's grants (trial and
    step it goes on from) that the replay made in the same place of the order.
    """

    live_s: float
    replayed_s: float
    same_grants_frac: float

    @property
    def error_frac(self) -> float:
        """By how much the replay is off in total time, as a share of the live time."""
        return abs(self.replayed_s - self.live_s) / self.live_s


def play_again(events: Iterable[ev.Event], *, where: Path | str) -> Fidelity:
    """The study of a log, played again.

    Raises:
        CallerError: the log tells of no study, of no point, or of a study that has not ended.
    """
    log = list(events)
    trace = read_events(log, where=where)
    if trace.study is None or not isinstance(log[-1], ev.StudyEnded | ev.DriverStopped):
        raise CallerError(f"{where}: the study has not ended", do="replay it when it has")
    workers = trace.workers
    spec = replace(
        trace.study,
        space=trace.space.to_dict(),
        search=Choice(RECORDED),
        resources=Resources(workers=workers),
    )
    store = MemoryStore()
    setting = Setting(workers=workers, start_s=None, restart_s=None, leave_s=None, same_fates=True)
    run(trace, spec, make(spec.policy), setting, store=store)
    again = [event for _, event in store.read()]
    return Fidelity(_length_s(log), _length_s(again), _same(_grants(log), _grants(again)))


def _length_s(log: Sequence[ev.Event]) -> float:
    """From the first driver to the last thing that the study did."""
    began_s = next(event.at_s for event in log if isinstance(event, ev.DriverStarted))
    return max(event.at_s for event in log if isinstance(event, ev.AttemptEnded)) - began_s


def _grants(log: Sequence[ev.Event]) -> list[tuple[int, int]]:
    return [(event.trial, event.resume_step) for event in log if isinstance(event, ev.AttemptGranted)]


def _same(live: Sequence[tuple[int, int]], again: Sequence[tuple[int, int]]) -> float:
    return sum(a == b for a, b in zip(live, again, strict=False)) / max(1, len(live))
