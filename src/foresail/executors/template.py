"""The template: a process that has done the training code's imports once, and forks an attempt from itself at a word.

It runs one thread, touches no device and computes nothing, so that a fork of it is safe. Where the imports themselves
start threads or a device, it becomes a bare one: attempts are then forked before the imports and do them each.

It is the parent of all attempts: it signals and reaps them, and an attempt's end is told when every process of its
group is gone. When the driver goes, it takes all of them with it.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Final, NoReturn

import msgspec

from foresail.core.words import AttemptId
from foresail.executors import birth, cores, linux, packed
from foresail.executors.channel import Begin, Channel, Ended, Ready, Refused, Signal, Started
from foresail.executors.strays import end_strays, own_children
from foresail.worker.entry import Training, load
from foresail.worker.folder import StudyFolder
from foresail.worker.grant import Grant, read_grant

_LINGER_S: Final = 0.3
"""Seconds that processes which an attempt left behind get to end by themselves after SIGTERM."""

_WATCH_S: Final = 1.0
"""Seconds between looks at whether the driver lives; its end of the channel tells earlier in all but odd cases."""


_LATE_IMPORTS: Final = {"torch": "torch._dynamo"}
"""Libraries with what they import late. The first optimizer of torch 2.x imports torch._dynamo, which took 1.1 CPU
seconds where torch itself took 1.9 (torch 2.13, CPU build)."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What a template is told at its start. `function`: empty for commands, and where `parcel` has it.

    `bell`, `channel`, `parcel`: descriptors; no parcel: -1. `places`: as of `LocalExecutor`.
    """

    root: str
    function: str
    channel: int
    bell: int
    driver: int
    path: tuple[str, ...]
    user_set: tuple[str, ...]
    parcel: int = -1
    bare: bool = False
    places: dict[int, int] = {}  # msgspec copies it


def main(setting_json: str) -> NoReturn:
    """Entry of a template in an interpreter of its own."""
    setting = msgspec.json.decode(setting_json, type=Setting)
    linux.die_with_parent(signal.SIGKILL)  # while it imports, it does not look whether the driver lives
    find: Callable[[], Training] = lambda: _load_alone(setting)
    ready = Ready(warm=False, why="each attempt does its imports")
    if (setting.function or setting.parcel >= 0) and not setting.bare:
        try:
            function = _load(setting)
            import_what_follows()
        except BaseException as error:
            find = _raiser(error)
            ready = Ready(warm=False, why=f"the import failed: {error}")
        else:
            if unsafe := unsafe_to_fork():
                print(f"attempts do their own imports: {unsafe}", file=sys.stderr)
                begin_anew(setting)
            find = lambda: function
            ready = Ready(warm=True)
            if setting.parcel >= 0:
                os.close(setting.parcel)
    serve(setting, find, ready)


def _load(setting: Setting) -> Training:
    return packed.unpack(setting.parcel) if setting.parcel >= 0 else load(setting.function)


def _load_alone(setting: Setting) -> Training:
    """Import the function in an attempt; a study that is run by the import is told where it stands."""
    os.environ["FORESAIL_TEMPLATE"] = "1"
    try:
        return _load(setting)
    finally:
        del os.environ["FORESAIL_TEMPLATE"]


def _raiser(error: BaseException) -> Callable[[], Training]:
    def find() -> Training:
        raise error

    return find


def import_what_follows() -> None:
    """Import what libraries put off until their first use, which every attempt would else do for itself."""
    for library, late in _LATE_IMPORTS.items():
        if library in sys.modules:
            with suppress(ImportError):
                import_module(late)


def unsafe_to_fork() -> str:
    """Why a fork of this process would not be safe; empty where it is."""
    threads = linux.count_threads() - cores.count_openblas_threads()
    if threads > 1:
        return f"{threads} threads run in it"
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return "it holds a CUDA device"
    return ""


def begin_anew(setting: Setting) -> NoReturn:
    """Replace this process by a template that imports nothing."""
    for descriptor in (setting.channel, setting.bell, *([setting.parcel] if setting.parcel >= 0 else [])):
        os.set_inheritable(descriptor, True)
    bare = msgspec.structs.replace(setting, bare=True)
    arguments = command(bare)
    os.execv(arguments[0], arguments)


def command(setting: Setting) -> list[str]:
    """The command line of a template of its own; it finds modules where the driver finds them."""
    code = f"import sys; sys.path[:] = {list(setting.path)!r}; from foresail.executors.template import main; "
    return [sys.executable, "-c", code + "main(sys.argv[1])", msgspec.json.encode(setting).decode()]


class Child:
    """An attempt's group, led by rank 0.

    `code`: of the rank whose end is the attempt's, once that has ended: rank 0, or the first other one that failed.
    """

    __slots__ = ("code", "pid", "rank", "ranks", "strict_s")

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.ranks = {pid: 0}
        self.rank = 0
        self.code: int | None = None
        self.strict_s = 0.0

    def lost(self, pid: int, code: int) -> bool:
        """One of its ranks has ended; whether that ends the attempt."""
        rank = self.ranks[pid]
        killed_first = code < 0 and self.code is not None and self.code > 0 and self.strict_s > time.monotonic()
        if (self.code is None and (rank == 0 or code != 0)) or (killed_first and code == -signal.SIGKILL):
            ends = self.code is None
            self.code, self.rank = code, rank
            return ends
        return False


def serve(setting: Setting, find: Callable[[], Training], ready: Ready) -> NoReturn:
    """Fork, signal and reap until the driver is gone."""
    try:
        _Template(setting, find).run(ready)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


class _Template:
    def __init__(self, setting: Setting, find: Callable[[], Training]) -> None:
        self._setting, self._find = setting, find
        self._study = StudyFolder(Path(setting.root))
        self._channel = Channel(socket.socket(fileno=setting.channel))
        self._children: dict[AttemptId, Child] = {}
        self._woken, self._waker = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._waker, False)

    def run(self, ready: Ready) -> None:
        linux.adopt_orphans()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        linux.die_with_parent(0)
        gc.collect()
        gc.freeze()
        try:
            self._channel.send(ready)
            while os.getppid() == self._setting.driver:
                self._turn()
        except (EOFError, OSError):
            pass  # the driver is gone
        self._end_all()

    def _turn(self) -> None:
        lingering = any(child.code is not None for child in self._children.values())
        wait_s = 0.005 if lingering else _WATCH_S
        ends: list[Channel | int] = [self._channel, self._woken]
        readable = select.select(ends, [], [], wait_s)[0]
        if self._woken in readable:
            os.read(self._woken, 4096)
        self._reap()
        if self._channel in readable:
            for order in self._channel.receive():
                match order:
                    case Begin(attempt=attempt):
                        self._begin(attempt)
                    case Signal(attempt=attempt, number=number):
                        self._signal(attempt, number)

    # --- beginnings ----------------------------------------------------------------------------------------------

    def _begin(self, attempt: AttemptId) -> None:
        parent = os.getpid()
        grant = read_grant(self._study.attempt(attempt))
        ranks = 1 if grant.entry.command else grant.layout.ranks
        for rank in range(ranks):
            group = self._children[attempt].pid if rank else 0
            try:
                pid = os.fork()
            except OSError as error:  # no process or no memory left: the other attempts go on
                if rank:
                    os.killpg(group, signal.SIGKILL)  # its first rank cannot go on alone; it ends, and is tried again
                    break
                self._channel.send(Refused(attempt=attempt, why=f"no process could be made: {error.strerror}"))
                return
            if pid == 0:
                self._become(attempt, grant, parent, rank=rank, group=group)
            birth.join_group(pid, group)
            if rank == 0:
                self._children[attempt] = Child(pid)
            self._children[attempt].ranks[pid] = rank
        self._channel.send(Started(attempt=attempt, pid=self._children[attempt].pid))

    def _become(self, attempt: AttemptId, grant: Grant, parent: int, *, rank: int, group: int) -> NoReturn:
        try:
            birth.start_afresh(parent, group)
            self._channel.close()
            os.close(self._woken)
            os.close(self._waker)
            folder = self._study.attempt(attempt)
            setting = self._setting
            places = setting.places
            grant = msgspec.structs.replace(grant, cores=tuple(places.get(core, core) for core in grant.cores))
            birth.become(folder, grant, self._find, bell=setting.bell, user_set=setting.user_set, rank=rank)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)

    # --- ends ----------------------------------------------------------------------------------------------------

    def _signal(self, attempt: AttemptId, number: int) -> None:
        child = self._children.get(attempt)
        if child is not None:
            _signal_group(child.pid, number)

    def _reap(self) -> None:
        """Collect what has died, and tell of each attempt whose last process is gone."""
        by_pid = {pid: child for child in self._children.values() for pid in child.ranks}
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            child = by_pid.get(pid)
            if child is not None and child.lost(pid, os.waitstatus_to_exitcode(status)):
                child.strict_s = time.monotonic() + _LINGER_S
                _signal_group(child.pid, signal.SIGTERM)
        for attempt, child in [*self._children.items()]:
            if child.code is not None and self._is_gone(attempt, child):
                del self._children[attempt]
                self._channel.send(Ended(attempt=attempt, code=child.code, rank=child.rank))

    def _is_gone(self, attempt: AttemptId, child: Child) -> bool:
        """Its group first: whoever left that has become a child of ours then, by and by."""
        number = signal.SIGKILL if time.monotonic() >= child.strict_s else 0
        return not _signal_group(child.pid, number) and not end_strays(
            self._study.attempt(attempt).path, own_children(), number
        )

    def _end_all(self) -> None:
        """Take everything along: groups first, then whatever else has become a child of ours."""
        for child in self._children.values():
            _signal_group(child.pid, signal.SIGKILL)
        while True:
            for pid in own_children():
                os.kill(pid, signal.SIGKILL)
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                return


def _signal_group(group: int, number: int) -> bool:
    """Send a signal to a group; whether it has any process left."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # only the dead are left, not reaped yet, or some that are not ours to signal
    return True
