"""What happens in a fresh process before and after the training: from the fork to the exit. Never returns."""

from __future__ import annotations

import atexit
import fcntl
import os
import platform
import re
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NoReturn

from foresail.core.words import Config, Outcome, Scalar
from foresail.executors import cores, linux
from foresail.executors.ending import COULD_NOT_BEGIN
from foresail.executors.strays import VARIABLE
from foresail.worker.attempt import live
from foresail.worker.entry import Training
from foresail.worker.folder import AttemptFolder, StudyFolder
from foresail.worker.grant import Grant
from foresail.worker.spool import Farewell, Spool

_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")


def become(
    folder: AttemptFolder,
    grant: Grant,
    find: Callable[[], Training],
    *,
    bell: int | None,
    user_set: tuple[str, ...],
    rank: int = 0,
) -> NoReturn:
    """Turn this freshly forked process into the attempt.

    Args:
        folder: the attempt's.
        grant: what it is told.
        find: gives the training function; not used for a command.
        bell: the pipe that wakes the driver.
        user_set: thread variables that are the user's own.
        rank: which of the attempt's processes it is.
    """
    code = COULD_NOT_BEGIN
    try:
        own = folder.of_rank(rank)
        own.path.mkdir(exist_ok=True)
        _redirect(own)
        _hold_alive(own)
        code = 1
        _settle(folder, grant, user_set, rank)
        inherited = _children()
        if grant.entry.command:
            _execute(folder, grant)
        farewell = live(grant, find, bell=bell if rank == 0 else None, rank=rank)
        code = 0 if farewell.outcome in (Outcome.COMPLETED, Outcome.YIELDED) else 1
        _leave(_children() - inherited)
    except BaseException:
        code = code or 1
        sys.excepthook(*sys.exc_info())
    finally:
        _flush()
        os._exit(code)


def _settle(folder: AttemptFolder, grant: Grant, user_set: tuple[str, ...], rank: int) -> None:
    ranks = 1 if grant.entry.command else grant.layout.ranks
    os.environ.pop("FORESAIL_TEMPLATE", None)
    os.environ.update(environment(folder, grant))
    if ranks > 1:
        os.environ.update(_place(rank, ranks))
    mine = cores.part(grant.cores, rank, ranks)
    threads = max(1, len(mine))
    user_set = (*user_set, *cores.set_by_user(grant.entry.env))
    cores.pin(mine)
    cores.set_thread_variables(os.environ, threads, but=user_set)
    if grant.devices:
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(cores.part(grant.devices, rank, ranks))
    if not grant.entry.command:
        cores.set_library_threads(threads, user_set=user_set)
    if grant.entry.cwd:
        os.chdir(grant.entry.cwd)


def environment(folder: AttemptFolder, grant: Grant) -> dict[str, str]:
    """What the attempt finds in its environment beside what the driver had."""
    return {
        **grant.entry.env,
        VARIABLE: str(folder.path),
        "FORESAIL_CONFIG": str(folder.config),
        "FORESAIL_REPORTS": str(folder.reports),
        "FORESAIL_SEED": str(grant.seed),
        "FORESAIL_KEPT": str(StudyFolder(Path(grant.root)).kept(grant.trial)),
    }


def _place(rank: int, ranks: int) -> dict[str, str]:
    """What torch and its friends look for; ranks of one machine speak over its loopback device alone."""
    loopback = "lo" if sys.platform == "linux" else "lo0"
    place = {"RANK": rank, "WORLD_SIZE": ranks, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": ranks}
    return {**{name: str(value) for name, value in place.items()}, "GLOO_SOCKET_IFNAME": loopback}


def _redirect(folder: AttemptFolder) -> None:
    """Own files for what is printed, nothing to read."""
    _flush()
    for number, path, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, folder.stdout, os.O_WRONLY | os.O_CREAT | os.O_APPEND),
        (2, folder.stderr, os.O_WRONLY | os.O_CREAT | os.O_APPEND),
    ):
        opened = os.open(path, flags, 0o644)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)


def _hold_alive(folder: AttemptFolder) -> None:
    """Hold a lock as long as this process or a descendant that inherited it lives; the file tells the group."""
    lock = os.open(folder.alive, os.O_WRONLY | os.O_CREAT, 0o644)
    os.write(lock, f"{os.getpgrp()} {platform.node()}".encode())
    os.set_inheritable(lock, True)
    fcntl.flock(lock, fcntl.LOCK_EX)


def _execute(folder: AttemptFolder, grant: Grant) -> NoReturn:
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    arguments = command_line(grant.entry.command, grant.config)
    try:
        os.execvp(arguments[0], arguments)
    except OSError as error:
        spool = Spool(folder.spool)
        spool.write(Farewell(outcome=Outcome.FAILED, detail=f"{arguments[0]}: {error.strerror}"))
        os._exit(127)


def command_line(command: tuple[str, ...], config: Config) -> list[str]:
    """The command with the configuration: `{name}` is replaced, every other knob is added as `--name value`.

    A value that begins with a dash is added as `--name=value`, for parsers take `--lr -1e-05` for two options.

    >>> command_line(("python", "train.py", "--lr={lr}"), {"lr": 0.1, "optimizer": "adam w"})
    ['python', 'train.py', '--lr=0.1', '--optimizer', 'adam w']
    """
    placed: set[str] = set()

    def fill(match: re.Match[str]) -> str:
        if match[1] not in config:
            return match[0]
        placed.add(match[1])
        return _text(config[match[1]])

    arguments = [_PLACEHOLDER.sub(fill, argument) for argument in command]
    for name, value in config.items():
        if name not in placed:
            text = _text(value)
            arguments += [f"--{name}={text}"] if text.startswith("-") else [f"--{name}", text]
    return arguments


def _text(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _children() -> set[Any]:
    multiprocessing = sys.modules.get("multiprocessing")
    return set(multiprocessing.active_children()) if multiprocessing else set()


def _leave(children: set[Any]) -> None:
    """What an interpreter does at its end: wait for children and threads, then the functions registered for it."""
    for child in children:
        if child.daemon:
            child.terminate()
        child.join()
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass  # closed, full or replaced by the training code: nothing more can be told there


def start_afresh(parent: int, group: int = 0) -> None:
    """First things after the fork: own group or that of rank 0, default signals, an end together with the parent."""
    join_group(0, group)
    linux.die_with_parent(signal.SIGKILL)
    linux.die_first()
    if os.getppid() != parent:
        os._exit(1)
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    atexit._clear()


def join_group(pid: int, group: int = 0) -> None:
    """Put the process in a group, 0: lead its own. Parent and child both call it, so neither has to wait."""
    try:
        os.setpgid(pid, group)
    except (PermissionError, ProcessLookupError):
        pass  # it has gone on, as the leader of its group, or has ended
