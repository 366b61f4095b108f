"""Attempts as processes of this machine.

Each attempt is a folder and a fresh process in a group of its own, forked from a template that has done the imports.
The template is forked from the calling process where that is safe (then any function works, closures included), else
it is an interpreter of its own that imports the function.

A host that cannot start an attempt (a full disk, no process left) does not count against the trial: the launch is held
and tried again, and `trouble` says so.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, assert_never

from foresail.core import events as ev
from foresail.core.commands import Command, DeleteCheckpoint, Kill, Launch, Yield
from foresail.core.events import Fact
from foresail.core.goal import Goal
from foresail.core.spec import Entry
from foresail.core.words import AttemptId, Outcome
from foresail.errors import CallerError, HostError
from foresail.executors import linux, printed
from foresail.executors.channel import Ended, Ready, Refused, Started
from foresail.executors.ending import COULD_NOT_BEGIN, Death, classify, last_line
from foresail.executors.grants import grant_of
from foresail.executors.leftover import collect, is_same_launch, set_apart
from foresail.executors.listening import Listener, read_farewell
from foresail.executors.nursery import Nursery, Start
from foresail.ports import Clock
from foresail.worker import checkpoint
from foresail.worker.entry import Training
from foresail.worker.folder import PRIVATE, AttemptFolder, StudyFolder
from foresail.worker.grant import write_grant

_QUIET_S: Final = 0.02
"""Seconds between looks at the files of attempts that cannot ring: commands."""

_KILL_GRACE_S: Final = 5.0
"""Seconds from SIGTERM to SIGKILL where the command names none."""

_AGAIN_S: Final = 2.0
"""Seconds after which a launch that the host refused is tried again."""

_REPEAT_S: Final = 60.0
"""As long as the host refuses, this is said so often."""

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
        trouble: called with a sentence where the host refuses something that is tried again.
        places: the machine's own numbers of cores that the study knows by others.
    """

    def __init__(
        self,
        folder: Path,
        *,
        clock: Clock,
        goal: Goal,
        target: Training | Entry,
        start: Start = "auto",
        trouble: Callable[[str], None] | None = None,
        places: Mapping[int, int] | None = None,
    ) -> None:
        self._study = StudyFolder(folder.resolve())
        self._clock, self._goal = clock, goal
        self._trouble = trouble
        self._told_s = float("-inf")
        self._entry = target if isinstance(target, Entry) else Entry()
        self._nursery = Nursery(self._study, target, start=start, places=places)
        self._live: dict[AttemptId, _Watched] = {}
        self._held: dict[AttemptId, tuple[Launch, float]] = {}
        self._over: set[AttemptId] = set()
        self._told_of: list[AttemptId] = []
        self._printed = printed.Printed()
        self._look_s = 0.0
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
            root.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        except OSError as error:
            raise HostError(
                f"cannot make the folder {root}: {error.strerror}", do="check the place and the rights"
            ) from error
        try:
            self._nursery.start()
        except OSError as error:
            raise HostError(
                f"attempts cannot be started in {root}: {error}", do="check the disk and the rights"
            ) from error

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
        attempt = launch.attempt
        if attempt in self._live or attempt in self._held or attempt in self._over:
            return
        folder = self._study.attempt(attempt)
        grant = grant_of(launch, root=self._study.root, goal=self._goal, entry=self._entry)
        try:
            if folder.grant.exists() and is_same_launch(folder, launch):
                self._pending += self._collect(attempt)
                return
            if folder.path.exists():
                set_apart(folder)
            write_grant(folder, grant)
            self._live[attempt] = _Watched(self._listener(attempt), folder, linux.count_oom_kills(), launch)
            self._nursery.begin(attempt)
        except CallerError as error:
            self._live.setdefault(attempt, _Watched(self._listener(attempt), folder, 0, launch))
            self._end(attempt, Outcome.FAILED, str(error))
        except OSError as error:
            self._hold(launch, error)

    def _hold(self, launch: Launch, error: OSError | str) -> None:
        """The host could not: no fault of the trial. The launch is tried again, unless the trial is asked to leave."""
        watched = self._live.pop(launch.attempt, None)
        if watched is not None:
            watched.listener.close()
        shutil.rmtree(self._study.attempt(launch.attempt).path, ignore_errors=True)
        now_s = self._clock.now_s()
        self._held[launch.attempt] = (launch, now_s + _AGAIN_S)
        self._complain(f"attempt {launch.attempt} could not be started: {error}; it is tried again")

    def _complain(self, sentence: str) -> None:
        now_s = self._clock.now_s()
        if self._trouble is not None and now_s >= self._told_s + _REPEAT_S:
            self._told_s = now_s
            self._trouble(sentence)

    def _try_held_again(self) -> None:
        now_s = self._clock.now_s()
        for attempt, (launch, at_s) in [*self._held.items()]:
            if now_s >= at_s:
                del self._held[attempt]
                self._launch(launch)

    def _let_go(self, attempt: AttemptId, outcome: Outcome) -> None:
        """A held launch is wanted no more."""
        if self._held.pop(attempt, None) is not None:
            self._over.add(attempt)
            self._pending.append(ev.AttemptEnded(at_s=self._clock.now_s(), attempt=attempt, outcome=outcome))

    def _listener(self, attempt: AttemptId) -> Listener:
        folder = self._study.attempt(attempt)
        return Listener(attempt, folder, metric=self._goal.metric, now_s=self._clock.now_s())

    def _yield(self, attempt: AttemptId, grace_s: float) -> None:
        self._let_go(attempt, Outcome.YIELDED)
        watched = self._live.get(attempt)
        if watched is not None and not watched.asked:
            watched.asked = True
            if not _mark(watched.folder.wish):
                self._nursery.signal(attempt, signal.SIGTERM)
            watched.hurry(self._clock.now_s() + grace_s, signal.SIGTERM)

    def _kill(self, attempt: AttemptId, grace_s: float) -> None:
        self._let_go(attempt, Outcome.KILLED)
        watched = self._live.get(attempt)
        if watched is None:
            return
        watched.hurry(self._clock.now_s() + grace_s, signal.SIGKILL)
        if not watched.killed:
            _mark(watched.folder.kill)
            watched.killed = watched.asked = True
            self._nursery.signal(attempt, signal.SIGTERM if grace_s > 0 else signal.SIGKILL)

    def _delete(self, path: str) -> None:
        place = self._study.checkpoint_named(path)
        try:
            checkpoint.remove(place)
        except OSError as error:  # it stays in the books, and is removed when the trial saves its next one
            self._complain(f"checkpoint {path} could not be removed: {error}")
            return
        self._pending.append(ev.CheckpointDeleted(at_s=self._clock.now_s(), path=path))

    # --- facts ---------------------------------------------------------------------------------------------------

    def poll(self, until_s: float) -> Sequence[Fact]:
        self._tidy()
        while True:
            self._enforce()
            self._gather()
            if self._pending:
                facts, self._pending = self._pending, []
                self._told_of += [fact.attempt for fact in facts if isinstance(fact, ev.AttemptEnded)]
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
        deadline_s = min([deadline_s, *(at_s for _, at_s in self._held.values())])
        if self._live:
            deadline_s = min(deadline_s, self._look_s)
        quiet_s = _QUIET_S if self._entry.command and self._live else until_s - now_s
        return max(0.0, min(until_s - now_s, deadline_s - now_s, quiet_s))

    def _enforce(self) -> None:
        """Send the signals whose time has come, try again what the host refused, and look at what is printed."""
        now_s = self._clock.now_s()
        self._try_held_again()
        if now_s >= self._look_s:
            self._look_s = now_s + printed.EVERY_S
            for watched in self._live.values():
                printed.bound(watched.folder)
        for attempt, watched in self._live.items():
            if now_s >= watched.deadline_s:
                watched.deadline_s = float("inf")
                if watched.next_signal is signal.SIGTERM:
                    self._kill(attempt, _KILL_GRACE_S)
                else:
                    watched.deadline_s = now_s + _KILL_GRACE_S
                    self._nursery.signal(attempt, signal.SIGKILL)

    def _tidy(self) -> None:
        """Attempts whose ends were told are in the log by now, since the driver asks again: their files may go."""
        for attempt in self._told_of:
            self._printed.ended(self._study.attempt(attempt))
        self._told_of.clear()

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
            elif isinstance(message, Refused) and message.attempt in self._live:
                self._refused(message.attempt, message.why)

    def _refused(self, attempt: AttemptId, why: str) -> None:
        """It never began. One that was asked to leave meanwhile has left; else it is tried again."""
        watched = self._live[attempt]
        if watched.asked:
            self._end(attempt, Outcome.KILLED if watched.killed else Outcome.YIELDED, why)
        else:
            self._hold(watched.launch, why)

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
        if code == COULD_NOT_BEGIN and not watched.folder.has_begun:
            self._refused(attempt, "its files could not be made; is the disk full?")
            return
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
        if outcome is Outcome.OUT_OF_MEMORY and death.farewell is None and code == -signal.SIGKILL:
            for other in self._live.values():
                other.oom_kills += 1  # that kill was not theirs
        self._end(attempt, outcome, f"rank {rank}: {detail}" if rank else detail, code)

    def _end(self, attempt: AttemptId, outcome: Outcome, detail: str, code: int | None = None) -> None:
        watched = self._live.pop(attempt)
        self._over.add(attempt)
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
                facts += self._collect(attempt)
                self._told_of.append(attempt)
        return facts

    def _collect(self, attempt: AttemptId) -> list[Fact]:
        self._over.add(attempt)
        command = bool(self._entry.command)
        return collect(self._study.attempt(attempt), self._listener(attempt), self._clock, command=command)

    def close(self, grace_s: float = 0.0) -> None:
        self._tidy()
        self._held.clear()
        for attempt in self._live:
            self._kill(attempt, grace_s)
        end_s = self._clock.now_s() + grace_s + _KILL_GRACE_S
        kept: list[Fact] = []
        while self._live and self._clock.now_s() < end_s:
            kept += self.poll(min(end_s, self._clock.now_s() + 1.0))
        self._pending = kept + self._pending
        self._nursery.close()


def _mark(path: Path) -> bool:
    """Make an empty file that says something; whether the disk took it."""
    try:
        path.touch()
    except OSError:
        return False
    return True


class _Watched:
    """A live attempt. `deadline_s`: when `next_signal` is due, if it has not gone before."""

    __slots__ = ("asked", "deadline_s", "folder", "killed", "launch", "listener", "next_signal", "oom_kills", "started")

    def __init__(self, listener: Listener, folder: AttemptFolder, oom_kills: int, launch: Launch) -> None:
        self.listener, self.folder, self.oom_kills, self.launch = listener, folder, oom_kills, launch
        self.asked = self.killed = self.started = False
        self.deadline_s = float("inf")
        self.next_signal = signal.SIGTERM

    def hurry(self, deadline_s: float, next_signal: signal.Signals) -> None:
        """Let the deadline be no later than this."""
        if deadline_s < self.deadline_s:
            self.deadline_s, self.next_signal = deadline_s, next_signal
