"""The driver's side of the template: starts it, speaks with it, and starts another one when it is killed."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, Literal, NoReturn

from foresail.core.spec import Entry
from foresail.core.words import AttemptId
from foresail.errors import CallerError, HostError
from foresail.executors import cores, packed, template
from foresail.executors.channel import Answer, Begin, Channel, Ended, Message, Ready, Refused, Signal, Started
from foresail.worker.entry import Training, refer
from foresail.worker.folder import StudyFolder

Start = Literal["auto", "fork", "import"]

_ORPHANS_S: Final = 2.0
"""Seconds to wait for the groups of a template that was killed."""

_CLOSE_S: Final = 10.0
"""Seconds that a template has to leave after its channel was closed."""


class Nursery:
    """Where attempts are born.

    Args:
        study: the study's folder.
        target: the training function, or an `Entry`.
        start: how the template comes to be: see `LocalExecutor`.
        places: as of `LocalExecutor`.
    """

    def __init__(
        self,
        study: StudyFolder,
        target: Training | Entry,
        *,
        start: Start,
        places: Mapping[int, int] | None = None,
    ) -> None:
        self._study, self._target, self._start = study, target, start
        self._places = dict(places or {})
        self._entry = target if isinstance(target, Entry) else Entry()
        self._channel: Channel | None = None
        self._template: _Forked | subprocess.Popen[bytes] | None = None
        self._pids: dict[AttemptId, int | None] = {}
        self._heard: list[Answer] = []
        self._bell, self._striker = os.pipe()
        os.set_blocking(self._bell, False)
        os.set_blocking(self._striker, False)
        self.ready: Ready | None = None

    def start(self) -> None:
        """Start the template, where there is none; it warms while others work.

        Raises:
            CallerError: the function cannot be reached from another process and this one cannot be forked safely.
            HostError: the platform cannot fork.
        """
        if self._channel is not None:
            return
        if not hasattr(os, "fork"):
            raise HostError("this platform cannot fork", allowed="Linux, macOS, WSL")
        reference, function = self._reference()
        ours, theirs = socket.socketpair()
        try:
            if reference is None:
                self._fork(ours, theirs)
            else:
                self._spawn(reference, function, theirs)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self._channel = Channel(ours)

    def _reference(self) -> tuple[str | None, bytes]:
        """How a new interpreter finds the function: by reference, or packed; None: fork this process."""
        if isinstance(self._target, Entry):
            return self._target.function, b""
        unsafe = template.unsafe_to_fork() if sys.platform == "linux" else "it is not Linux"
        if self._start == "fork" or (self._start == "auto" and not unsafe):
            return None, b""
        try:
            return refer(self._target), b""
        except CallerError as error:
            return "", packed.pack(self._target, error, f"; this process cannot be forked instead: {unsafe}")

    def _setting(self, function: str, channel: int, parcel: int = -1) -> template.Setting:
        return template.Setting(
            parcel=parcel,
            root=str(self._study.root),
            function=function,
            channel=channel,
            bell=self._striker,
            driver=os.getpid(),
            places=self._places,
            path=tuple(entry or os.getcwd() for entry in sys.path),
            user_set=cores.set_by_user({**os.environ, **self._entry.env}),
        )

    def _fork(self, ours: socket.socket, theirs: socket.socket) -> None:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        setting = self._setting("", theirs.fileno())
        pid = os.fork()
        if pid == 0:
            self._become_template(setting, ours, theirs)
        self._template = _Forked(pid)

    def _become_template(self, setting: template.Setting, ours: socket.socket, theirs: socket.socket) -> NoReturn:
        try:
            os.setsid()
            ours.close()
            theirs.detach()
            os.close(self._bell)
            function: Training = self._target  # type: ignore[assignment]  # an Entry is never forked
            template.import_what_follows()
            template.serve(setting, lambda: function, Ready(warm=True))
        finally:
            os._exit(1)

    def _spawn(self, reference: str, function: bytes, theirs: socket.socket) -> None:
        with packed.parcel(function) as parcel:
            self._spawn_with(reference, parcel, theirs)

    def _spawn_with(self, reference: str, parcel: int, theirs: socket.socket) -> None:
        environment = {**os.environ, **self._entry.env, "FORESAIL_TEMPLATE": "1"}
        setting = self._setting(reference, theirs.fileno(), parcel)
        cores.set_thread_variables(environment, 1, but=setting.user_set)
        if self._entry.cwd and not os.path.isdir(self._entry.cwd):
            raise CallerError(f"there is no folder {self._entry.cwd!r} to work in")
        with self._study.template_log.open("ab") as log:
            self._template = subprocess.Popen(
                template.command(setting),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._entry.cwd or None,
                env=environment,
                pass_fds=(theirs.fileno(), self._striker, *([parcel] if parcel >= 0 else [])),
                start_new_session=True,
            )

    # --- orders --------------------------------------------------------------------------------------------------

    def begin(self, attempt: AttemptId) -> None:
        """Have the attempt begun whose grant lies in its folder. Its end will be heard of, whatever happens."""
        if self._channel is None:
            self.start()
        self._pids[attempt] = None
        self._send(Begin(attempt=attempt))

    def signal(self, attempt: AttemptId, number: int) -> None:
        """Signal the attempt's group. While imports go on nothing is begun, so what must die takes them with it."""
        if attempt not in self._pids:
            return
        if number == signal.SIGKILL and self.ready is None and self._template is not None:
            _kill_group(self._template.pid)
        else:
            self._send(Signal(attempt=attempt, number=number))

    def _send(self, order: Message) -> None:
        if self._channel is not None:
            with suppress(OSError):  # it has died, which `messages` hears
                self._channel.send(order)

    # --- answers -------------------------------------------------------------------------------------------------

    def wait(self, seconds: float) -> None:
        """Until somebody has something to say, for `seconds` at most."""
        ends: list[Any] = [self._bell] if self._channel is None else [self._bell, self._channel]
        if self._bell in select.select(ends, [], [], seconds)[0]:
            with suppress(BlockingIOError):
                os.read(self._bell, 1 << 16)

    def ring(self) -> None:
        """From another thread: end the wait."""
        with suppress(BlockingIOError):
            os.write(self._striker, b"!")

    def messages(self) -> list[Started | Refused | Ended]:
        """What the template has said since the last call."""
        said: list[Started | Refused | Ended] = []
        while self._channel is not None and select.select([self._channel], [], [], 0)[0]:
            try:
                messages = self._channel.receive()
            except EOFError:
                return said + self._bereaved()
            for message in messages:
                match message:
                    case Ready():
                        self.ready = message
                    case Started(attempt=attempt, pid=pid):
                        self._pids[attempt] = pid
                        said.append(message)
                    case Refused(attempt=attempt) | Ended(attempt=attempt):
                        self._pids.pop(attempt, None)
                        said.append(message)
        return said

    def _bereaved(self) -> list[Started | Refused | Ended]:
        """The template was killed: so are all attempts."""
        groups = [pid for pid in self._pids.values() if pid is not None]
        lost: list[Started | Refused | Ended] = [Ended(attempt=attempt, code=-signal.SIGKILL) for attempt in self._pids]
        self._pids.clear()
        self._drop()
        end_s = time.monotonic() + _ORPHANS_S
        while groups and time.monotonic() < end_s:
            groups = [group for group in groups if _kill_group(group)]
            select.select([], [], [], 0.005)
        return lost

    def _drop(self) -> None:
        """Close the channel, on which the template ends everything and leaves, and reap it."""
        if self._channel is None or self._template is None:
            return
        self._channel.hang_up()
        if self.ready is None:
            _kill_group(self._template.pid)
        try:
            self._template.wait(_CLOSE_S)
        except subprocess.TimeoutExpired:
            _kill_group(self._template.pid)
            self._template.wait()
        self._channel = self._template = self.ready = None

    def close(self) -> None:
        """End the template and everything that is left of any attempt."""
        groups = [pid for pid in self._pids.values() if pid is not None]
        self._drop()
        for group in groups:
            _kill_group(group)
        if self._bell >= 0:
            os.close(self._bell)
            os.close(self._striker)
            self._bell = self._striker = -1


class _Forked:
    """A forked template, with as much of `Popen` as is needed."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def wait(self, timeout: float | None = None) -> int:
        end_s = None if timeout is None else time.monotonic() + timeout
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG if timeout is not None else 0)
            if pid:
                return os.waitstatus_to_exitcode(status)
            if end_s is not None and time.monotonic() > end_s:
                raise subprocess.TimeoutExpired("template", timeout or 0.0)
            select.select([], [], [], 0.002)


def _kill_group(group: int) -> bool:
    """Kill what is left of a group; whether there was anything."""
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return False
    return True
