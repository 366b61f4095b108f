"""The cluster over time: which trial held which cores, as a Gantt chart."""

from __future__ import annotations

from msgspec import Struct

from foresail.plots.chronicle import Chronicle, Hold


class Bar(Struct, frozen=True):
    """An attempt on its cores. `end_s` None and `outcome` None: it lasts. `label`: its class in its last decision."""

    trial: int
    attempt: str
    cores: tuple[int, ...]
    start_s: float
    end_s: float | None
    label: str | None
    outcome: str | None
    resume_step: int


class Gantt(Struct, frozen=True):
    """`cores`: all that the study may use or has used, rising. `now_s`: where bars without an end have got to."""

    events: int
    now_s: float
    within_s: float | None
    cores: tuple[int, ...]
    bars: tuple[Bar, ...]


def gantt(chronicle: Chronicle, *, since: int = 0) -> Gantt:
    """Who held which cores when; `since`: only bars that an event after that number has begun or changed."""
    view = chronicle.view
    cores = {*view.cores, *(core for hold in chronicle.holds for core in hold.cores)}
    return Gantt(
        events=view.events,
        now_s=view.now_s,
        within_s=view.spec.goal.within_s,
        cores=tuple(sorted(cores)),
        bars=tuple(_bar(hold) for hold in chronicle.holds if hold.changed > since),
    )


def _bar(hold: Hold) -> Bar:
    return Bar(
        trial=hold.trial,
        attempt=hold.attempt,
        cores=hold.cores,
        start_s=hold.start_s,
        end_s=hold.end_s,
        label=hold.label and hold.label.value,
        outcome=hold.outcome and hold.outcome.value,
        resume_step=hold.resume_step,
    )
