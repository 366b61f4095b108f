"""What has happened, in past participles. The log of these is the only truth.

Two kinds. *Facts* come from outside: the driver, the executor, the user, the clock. *Decisions* are made by the
engine from the facts before them and nothing else, so a log can be checked: feed its facts to a fresh engine and
the same decisions must come out, byte for byte.

`at_s` is study time: seconds during which a driver was at work, from the creation of the study. It never falls, and
it does not depend on the machine's clock.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from foresail.core.plan import Verdict
from foresail.core.spec import StudySpec
from foresail.core.words import AttemptId, Config, Outcome, Status, TrialId


class Happened(Struct, frozen=True, tag=True, tag_field="event", kw_only=True, gc=False):
    """Not looked at by the garbage collector: no event is part of a cycle, and a log may hold millions."""

    at_s: float


# --- facts -----------------------------------------------------------------------------------------------------


class StudyCreated(Happened, frozen=True, kw_only=True):
    spec: StudySpec


class DriverStarted(Happened, frozen=True, kw_only=True):
    """A driver took the study. `cores`: ids of the cores that it may grant. `wall_time`: ISO 8601, for people."""

    cores: tuple[int, ...]
    devices: tuple[str, ...] = ()
    host: str = ""
    wall_time: str = ""


class MachinesChanged(Happened, frozen=True, kw_only=True):
    """A machine came or went. `machines`: the cores that may be granted, by machine; ids are never used again."""

    machines: tuple[tuple[int, ...], ...]


class DriverStopped(Happened, frozen=True, kw_only=True):
    why: str


class Ticked(Happened, frozen=True, kw_only=True):
    """Time passed a moment that the engine had asked to be woken at."""


class StopRequested(Happened, frozen=True, kw_only=True):
    """A person asked the study to stop (Ctrl-C); it may be resumed."""

    by: str = "user"


class AttemptStarted(Happened, frozen=True, kw_only=True):
    attempt: AttemptId
    pid: int | None = None


class HorizonDeclared(Happened, frozen=True, kw_only=True):
    """The training code said how many steps it will do at most."""

    attempt: AttemptId
    max_steps: int


class PointReported(Happened, frozen=True, kw_only=True):
    """`seconds`: training time since the attempt's previous point (or its start). Values may be NaN or infinite."""

    attempt: AttemptId
    step: int
    metrics: dict[str, float]
    seconds: float = 0.0


class Noted(Happened, frozen=True, kw_only=True):
    """What the training code wants remembered of its trial, as plain data. No decision rests on it."""

    attempt: AttemptId
    notes: dict[str, Any]


class CheckpointSaved(Happened, frozen=True, kw_only=True):
    """A complete, synced checkpoint at `path` (relative to the study's folder); `bytes` is its size."""

    attempt: AttemptId
    step: int
    path: str
    bytes: int = 0
    digest: str = ""
    seconds: float = 0.0


class CheckpointDeleted(Happened, frozen=True, kw_only=True):
    path: str


class AttemptEnded(Happened, frozen=True, kw_only=True):
    """`detail`: one line for people; the whole traceback is in the attempt's folder."""

    attempt: AttemptId
    outcome: Outcome
    detail: str = ""
    exit_code: int | None = None


# --- decisions -------------------------------------------------------------------------------------------------


class TrialProposed(Happened, frozen=True, kw_only=True):
    """`origin`: the search that proposed it, or "default"."""

    trial: TrialId
    config: Config
    origin: str


class SearchExhausted(Happened, frozen=True, kw_only=True):
    """The space has no further configuration."""

    why: str


class Planned(Happened, frozen=True, kw_only=True):
    """Verdicts that differ from the last ones of their trials. `decision`: number of the decision."""

    decision: int
    verdicts: tuple[Verdict, ...]


class AttemptGranted(Happened, frozen=True, kw_only=True):
    """The cores belong to the attempt from now until `AttemptEnded`. `resume_step` 0: from the start."""

    attempt: AttemptId
    trial: TrialId
    number: int
    cores: tuple[int, ...]
    devices: tuple[str, ...] = ()
    resume_step: int = 0
    checkpoint: str = ""


class AttemptEnding(Happened, frozen=True, kw_only=True):
    """The attempt was asked to leave."""

    attempt: AttemptId


class AttemptSilent(Happened, frozen=True, kw_only=True):
    """The attempt has said nothing for `silent_s`, as long as the study allows: it has failed and is ended."""

    attempt: AttemptId
    silent_s: float


class TrialEnded(Happened, frozen=True, kw_only=True):
    """`status`: completed, ended, diverged or failed."""

    trial: TrialId
    status: Status
    detail: str = ""


class StudyEnding(Happened, frozen=True, kw_only=True):
    """No new starts; what runs is asked to leave. `end` names the kind, `why` tells it."""

    end: str
    why: str


class StudyEnded(Happened, frozen=True, kw_only=True):
    end: str
    why: str
    summary: dict[str, float] = field(default_factory=dict)


Fact = (
    StudyCreated
    | DriverStarted
    | MachinesChanged
    | DriverStopped
    | Ticked
    | StopRequested
    | AttemptStarted
    | HorizonDeclared
    | PointReported
    | Noted
    | CheckpointSaved
    | CheckpointDeleted
    | AttemptEnded
)
Decision = (
    TrialProposed
    | SearchExhausted
    | Planned
    | AttemptGranted
    | AttemptEnding
    | AttemptSilent
    | TrialEnded
    | StudyEnding
    | StudyEnded
)
Event = Fact | Decision
