"""A study as plots need it: the view, and what the view lets go of: who held which cores when, and each new best.

`Chronicle.of(events)` folds a log, or its first n events for the study as it stood then; `take` carries it on, at the
same cost for each event however long the study is.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from foresail.core import events as ev
from foresail.core.view import View, apply
from foresail.core.words import AttemptId, Label, Outcome, TrialId
from foresail.errors import CallerError


class Hold:
    """An attempt's time on its cores. `end_s` None: it lasts. `changed`: number of the latest event that it shows."""

    __slots__ = ("attempt", "changed", "cores", "end_s", "label", "outcome", "resume_step", "start_s", "trial")

    def __init__(self, event: ev.AttemptGranted, label: Label | None, changed: int) -> None:
        self.attempt: AttemptId = event.attempt
        self.trial: TrialId = event.trial
        self.cores = event.cores
        self.resume_step = event.resume_step
        self.start_s = event.at_s
        self.end_s: float | None = None
        self.outcome: Outcome | None = None
        self.label = label
        self.changed = changed


class Improvement(Struct, frozen=True):
    """The study's best changed. `value` None: it was taken back, for its trial diverged.

    `steps`: of all trials until then, those trained again after a crash counted each time; `device_s`: core-seconds.
    """

    at_s: float
    steps: int
    device_s: float
    trial: int | None
    step: int
    value: float | None


class Claim(Struct, frozen=True):
    """What a decision said of a trial: `p`, chance of the target in time; `final`, expected value at the end."""

    at_s: float
    trial: int
    step: int
    p: float | None
    final: float


class Chronicle:
    """`view`, and beside it `holds`, `improvements` and `claims` in the order of the log, and `steps`, trained by all.

    `changed`: of each trial, the number of the latest event that told anything of it.
    """

    def __init__(self) -> None:
        self.view = View()
        self.holds: list[Hold] = []
        self.improvements: list[Improvement] = []
        self.claims: list[Claim] = []
        self.changed: list[int] = []
        self.steps = 0
        self._live: dict[AttemptId, Hold] = {}

    @classmethod
    def of(cls, events: Iterable[ev.Event]) -> Chronicle:
        """The chronicle of a log.

        Raises:
            InternalError: an event cannot follow those before it.
        """
        chronicle = cls()
        chronicle.take(events)
        return chronicle

    @classmethod
    def load(cls, storage: Path | str) -> Chronicle:
        """The chronicle of a study's storage, or of its log as JSON lines, as it stands now.

        Raises:
            CallerError: there is no such study, or the file is no log of one.
            HostError: the log is damaged or cannot be read.
        """
        from foresail.replay.source import events_of

        if not Path(storage).is_file():
            raise CallerError(f"there is no study at {storage}", do="give the file of its log, digits.db")
        chronicle = cls.of(events_of(Path(storage)))
        if not chronicle.view.events:
            raise CallerError(f"{storage} holds no study yet", do="start it")
        return chronicle

    def take(self, events: Iterable[ev.Event]) -> None:
        """Carry it over further events; errors as `of`."""
        view = self.view
        for event in events:
            best = view.best
            match event:
                case ev.PointReported(attempt=attempt, step=step):
                    live = view.attempts[attempt]
                    self.steps += max(0, step - live.step)
                    apply(view, event)
                    self.changed[live.trial] = view.events
                case _:
                    apply(view, event)
                    self._note(event)
            if view.best is not best:
                self._improve()

    def _note(self, event: ev.Event) -> None:
        match event:
            case ev.TrialProposed():
                self.changed.append(self.view.events)
            case ev.Planned(verdicts=verdicts):
                for verdict in verdicts:
                    self._hear(event.at_s, verdict.trial, verdict.label, verdict.reason.numbers)
            case ev.AttemptGranted(trial=trial):
                last = self.view.trials[trial].verdict
                hold = Hold(event, last.label if last else None, self.view.events)
                self.holds.append(hold)
                self._live[event.attempt] = hold
                self.changed[trial] = self.view.events
            case ev.AttemptEnded():
                self._close(event)
            case ev.TrialEnded(trial=trial):
                self.changed[trial] = self.view.events

    def _hear(self, at_s: float, trial: TrialId, label: Label | None, numbers: dict[str, float]) -> None:
        about = self.view.trials[trial]
        self.changed[trial] = self.view.events
        hold = self._live.get(about.attempt) if about.attempt else None
        if hold is not None and hold.label is not label:
            hold.label, hold.changed = label, self.view.events
        if "final" in numbers:
            p = numbers.get("foreseen", numbers.get("p"))
            self.claims.append(Claim(at_s, trial, about.last_step, p, numbers["final"]))

    def _close(self, event: ev.AttemptEnded) -> None:
        hold = self._live.pop(event.attempt)
        hold.end_s, hold.outcome, hold.changed = event.at_s, event.outcome, self.view.events
        self.changed[hold.trial] = self.view.events

    def _improve(self) -> None:
        view = self.view
        trial, step, value = view.best if view.best is not None else (None, 0, None)
        self.improvements.append(Improvement(view.now_s, self.steps, view.device_s_used, trial, step, value))
