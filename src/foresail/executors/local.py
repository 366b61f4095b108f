"""Attempts as processes of this machine.

Each attempt is a folder and a fresh process in a group of its own, forked from a template that has done the imports.
The template is forked from the calling process where that is safe (then any function works, closures included), else
it is an interpreter of its own that imports the function.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, assert_never

from foresail.core import events as ev
from foresail.core.commands import Command, DeleteCheckpoint, Kill, Launch, Yield
from foresail.core.events import Fact
from foresail.core.goal import Goal
from foresail.core.spec import Entry
from foresail.core.words import AttemptId, Outcome
from foresail.errors import CallerError, HostError
from foresail.executors import linux
from foresail.executors.channel import Ended, Ready, Started
from foresail.executors.ending import Death, classify, last_line
from foresail.executors.grants import grant_of
from foresail.executors.leftover import collect
from foresail.executors.listening import Listener, read_farewell
from foresail.executors.nursery import Nursery, Start
from foresail.ports import Clock
from foresail.worker import checkpoint
from foresail.worker.entry import Training
from foresail.worker.folder import AttemptFolder, StudyFolder
from foresail.worker.grant import write_grant

_QUIET_S: Final = 0.02
"""Seconds between looks at the files of attempts that cannot ring: commands."""

_KILL_GRACE_S: Final = 5.0
"""Seconds from SIGTERM to SIGKILL where the command names none."""

_FAREWELL_S: Final = 60.0
"""Seconds that a process may take to exit after its training function has returned."""


class LocalExecutor:
    """Runs attempts on this machine.

    Args:
        folder: where attempts and checkpoints live; made where there is none.
        clock: study time; its seconds pass like those of the wall.
        goal: the training code needs it to know when its state is worth keeping.
        target: the training function, or an `Entry` (a reference to one, or a command).
        start: "fork" the template from this process in any case, "import" the function in a new interpreter in any
            case, or "auto": fork where that is safe.
    """

    def __init__(
        self,
        folder: Path,
        *,
        clock: Clock,
        goal: Goal,
        target: Training | Entry,
        start: Start = "auto",
    ) -> None:
        self._study = StudyFolder(folder.resolve())
        self._clock, self._goal = clock, goal
        self._entry = target if isinstance(target, Entry) else Entry()
        self._nursery = Nursery(self._study, target, start=start)
        self._live: dict[AttemptId, _Watched] = {}
        self._pending: list[Fact] = []
        self._woken = False

    @property
    def ready(self) -> Ready | None:
        """What the template said when it had done the imports; None before."""
        return self._nursery.ready

    def start(self) -> None:
        """Begin to warm the template.

        Raises:
            CallerError: the function cannot be reached from another process and this one cannot be forked safely.
            HostError: the study's folder cannot be made.
        """
        root = self._study.root
        try:
            root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise HostError(
                f"cannot make the folder {root}: {error.strerror}", do="check the place and the rights"
            ) from error
        self._nursery.start()

    # --- commands ------------------------------------------------------------------------------------------------

    def perform(self, command: Command) -> None:
        match command:
            case Launch():
                self._launch(command)
            case Yield(attempt=attempt, grace_s=grace_s):
                self._yield(attempt, grace_s)
            case Kill(attempt=attempt, grace_s=grace_s):
                self._kill(attempt, grace_s)
            case DeleteCheckpoint(path=path):
                self._delete(path)
            case _:
                assert_never(command)

    def _launch(self, launch: Launch) -> None:
        if launch.attempt in self._live:
            return
        folder = self._study.attempt(launch.attempt)
        if folder.grant.exists():
            self._pending += self.adopt([launch.attempt])
            return
        self._live[launch.attempt] = _Watched(self._listener(launch.attempt), folder, linux.count_oom_kills())
        try:
            write_grant(folder, grant_of(launch, root=self._study.root, goal=self._goal, entry=self._entry))
            self._nursery.begin(launch.attempt)
        except (CallerError, OSError) as error:
            self._end(launch.attempt, Outcome.FAILED, str(error))

    def _listener(self, attempt: AttemptId) -> Listener:
        folder = self._study.attempt(attempt)
        return Listener(attempt, folder, metric=self._goal.metric, now_s=self._clock.now_s())

    def _yield(self, attempt: AttemptId, grace_s: float) -> None:
        watched = self._live.get(attempt)
        if watched is not None and not watched.asked:
            watched.folder.wish.touch()
            watched.asked = True
            watched.hurry(self._clock.now_s() + grace_s, signal.SIGTERM)

    def _kill(self, attempt: AttemptId, grace_s: float) -> None:
        watched = self._live.get(attempt)
        if watched is None:
            return
        watched.hurry(self._clock.now_s() + grace_s, signal.SIGKILL)
        if not watched.killed:
            watched.folder.kill.touch()
            watched.killed = watched.asked = True
            self._nursery.signal(attempt, signal.SIGTERM if grace_s > 0 else signal.SIGKILL)

    def _delete(self, path: str) -> None:
        checkpoint.remove(self._study.checkpoint_named(path))
        self._pending.append(ev.CheckpointDeleted(at_s=self._clock.now_s(), path=path))

    # --- facts ---------------------------------------------------------------------------------------------------

    def poll(self, until_s: float) -> Sequence[Fact]:
        while True:
            self._enforce()
            self._gather()
            if self._pending:
                facts, self._pending = self._pending, []
                return facts
            wait_s = self._wait_s(until_s)
            if wait_s < 0 or self._woken:
                self._woken = False
                return ()
            self._nursery.wait(wait_s)

    def wake(self) -> None:
        """From another thread: let the `poll` that waits, or else the next one, return."""
        self._woken = True
        self._nursery.ring()

    def _wait_s(self, until_s: float) -> float:
        """Seconds to sleep at most; below 0 where the time is up."""
        now_s = self._clock.now_s()
        if now_s >= until_s:
            return -1.0
        deadline_s = min((w.deadline_s for w in self._live.values()), default=until_s)
        quiet_s = _QUIET_S if self._entry.command and self._live else until_s - now_s
        return max(0.0, min(until_s - now_s, deadline_s - now_s, quiet_s))

    def _enforce(self) -> None:
        """Send the signals whose time has come."""
        now_s = self._clock.now_s()
        for attempt, watched in self._live.items():
            if now_s >= watched.deadline_s:
                watched.deadline_s = float("inf")
                if watched.next_signal is signal.SIGTERM:
                    self._kill(attempt, _KILL_GRACE_S)
                else:
                    watched.deadline_s = now_s + _KILL_GRACE_S
                    self._nursery.signal(attempt, signal.SIGKILL)

    def _gather(self) -> None:
        """Read everything that there is to read without waiting."""
        messages = self._nursery.messages()
        for message in messages:
            if isinstance(message, Started) and message.attempt in self._live:
                self._live[message.attempt].started = True
                now_s = self._clock.now_s()
                self._pending.append(ev.AttemptStarted(at_s=now_s, attempt=message.attempt, pid=message.pid))
        for attempt, watched in self._live.items():
            if watched.started:
                self._listen(attempt)
        for message in messages:
            if isinstance(message, Ended) and message.attempt in self._live:
                self._bury(message.attempt, message.code, message.rank)

    def _listen(self, attempt: AttemptId) -> None:
        watched = self._live[attempt]
        listener = watched.listener
        self._pending += listener.facts(self._clock.now_s())
        if listener.refusal and not watched.killed:
            self._kill(attempt, _KILL_GRACE_S)
        elif listener.farewell is not None and not self._entry.command:
            watched.hurry(self._clock.now_s() + _FAREWELL_S, signal.SIGKILL)

    def _bury(self, attempt: AttemptId, code: int, rank: int) -> None:
        watched = self._live[attempt]
        self._pending += watched.listener.last_facts(self._clock.now_s())
        if watched.listener.refusal:
            self._end(attempt, Outcome.FAILED, watched.listener.refusal)
            return
        own = watched.folder.of_rank(rank)
        death = Death(
            farewell=read_farewell(own.spool) if rank else watched.listener.farewell,
            code=code,
            command=bool(self._entry.command),
            killed=watched.killed,
            oom_kills=linux.count_oom_kills() - watched.oom_kills,
            complaint=last_line(own.stderr),
        )
        outcome, detail = classify(death)
        self._end(attempt, outcome, f"rank {rank}: {detail}" if rank else detail, code)

    def _end(self, attempt: AttemptId, outcome: Outcome, detail: str, code: int | None = None) -> None:
        watched = self._live.pop(attempt)
        watched.listener.close()
        detail = "; ".join(part for part in (detail, watched.listener.loss) if part)
        now_s = self._clock.now_s()
        self._pending.append(
            ev.AttemptEnded(at_s=now_s, attempt=attempt, outcome=outcome, detail=detail, exit_code=code)
        )

    # --- before and after ----------------------------------------------------------------------------------------

    def adopt(self, attempts: Iterable[AttemptId]) -> Sequence[Fact]:
        """Attempts of an earlier driver end with it, so what comes back is their last words and their ends."""
        facts: list[Fact] = []
        for attempt in attempts:
            if attempt not in self._live:
                command = bool(self._entry.command)
                facts += collect(self._study.attempt(attempt), self._listener(attempt), self._clock, command=command)
        return facts

    def close(self, grace_s: float = 0.0) -> None:
        for attempt in self._live:
            self._kill(attempt, grace_s)
        end_s = self._clock.now_s() + grace_s + _KILL_GRACE_S
        kept: list[Fact] = []
        while self._live and self._clock.now_s() < end_s:
            kept += self.poll(min(end_s, self._clock.now_s() + 1.0))
        self._pending = kept + self._pending
        self._nursery.close()


class _Watched:
    """A live attempt. `deadline_s`: when `next_signal` is due, if it has not gone before."""

    __slots__ = ("asked", "deadline_s", "folder", "killed", "listener", "next_signal", "oom_kills", "started")

    def __init__(self, listener: Listener, folder: AttemptFolder, oom_kills: int) -> None:
        self.listener, self.folder, self.oom_kills = listener, folder, oom_kills
        self.asked = self.killed = self.started = False
        self.deadline_s = float("inf")
        self.next_signal = signal.SIGTERM

    def hurry(self, deadline_s: float, next_signal: signal.Signals) -> None:
        """Let the deadline be no later than this."""
        if deadline_s < self.deadline_s:
            self.deadline_s, self.next_signal = deadline_s, next_signal
