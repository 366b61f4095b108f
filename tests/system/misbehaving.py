"""Training functions that misbehave, each in its way; those of the table behave where the configuration says `well`."""

from __future__ import annotations

import faulthandler
import os
import random
import resource
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

MANY = 20_000


def misbehaves(function: Callable[[Any], object]) -> Callable[[Any], object]:
    @wraps(function)
    def train(run: Any) -> object:
        faulthandler.disable()  # the tests' own, which would tell its story of every signal
        if run.config.get("well"):
            run.report(accuracy=7)
            return None
        return function(run)

    return train


@misbehaves
def prints_odd_encodings(run: Any) -> None:
    os.write(1, b"\xff\xfe\x00 no text \x80\n")
    print("\udc80 half a pair", file=sys.stderr)
    sys.stdout.buffer.write("caf\xe9\n".encode("latin-1"))
    run.report(accuracy=1)


@misbehaves
def closes_its_stdout(run: Any) -> None:
    sys.stdout.close()
    os.close(2)
    run.report(accuracy=1)


@misbehaves
def forks_children_and_leaves(run: Any) -> None:
    for _ in range(3):
        if os.fork() == 0:
            time.sleep(600)
    run.report(accuracy=1)


@misbehaves
def leaks_memory_up_to_its_limit(run: Any) -> None:
    run.report(accuracy=1)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + 2**28
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    leaked = []
    while True:
        leaked.append(bytearray(2**26))


@misbehaves
def changes_directory(run: Any) -> None:
    os.chdir("/")
    run.report(accuracy=1)
    run.report(accuracy=2)


@misbehaves
def removes_its_directory(run: Any) -> None:
    place = tempfile.mkdtemp()
    os.chdir(place)
    run.report(accuracy=1)
    os.rmdir(place)
    run.report(accuracy=2)


@misbehaves
def reports_out_of_order(run: Any) -> None:
    run.report(step=5, accuracy=1)
    run.report(step=3, accuracy=2)


@misbehaves
def reports_a_step_twice(run: Any) -> None:
    run.report(step=1, accuracy=1)
    run.report(step=1, accuracy=2)


@misbehaves
def reports_text(run: Any) -> None:
    run.report(accuracy="good")


@misbehaves
def reports_none(run: Any) -> None:
    run.report(accuracy=None)


@misbehaves
def reports_nan(run: Any) -> None:
    run.report(accuracy=float("nan"))


@misbehaves
def reports_infinity(run: Any) -> None:
    run.report(accuracy=float("inf"))


@misbehaves
def reports_a_huge_integer(run: Any) -> None:
    run.report(accuracy=10**400)


@misbehaves
def reports_other_names_later(run: Any) -> None:
    run.report(accuracy=1)
    run.report(acuracy=2)


def reports_many_metrics(run: Any) -> None:
    run.report(accuracy=1, **{f"metric_{n}": n for n in range(MANY)})


@misbehaves
def never_reports(run: Any) -> None:
    """It trains, and tells nobody."""


@misbehaves
def exits_with_0(run: Any) -> None:
    sys.exit(0)


@misbehaves
def exits_with_3(run: Any) -> None:
    sys.exit(3)


@misbehaves
def leaves_by_os_exit(run: Any) -> None:
    os._exit(0)


@misbehaves
def dies_of_a_signal(run: Any) -> None:
    run.report(accuracy=1)
    os.kill(os.getpid(), signal.SIGSEGV)


@misbehaves
def aborts(run: Any) -> None:
    os.abort()


@misbehaves
def is_killed(run: Any) -> None:
    run.report(accuracy=1)
    os.kill(os.getpid(), signal.SIGKILL)


@misbehaves
def recurses_without_end(run: Any) -> object:
    def again() -> object:
        return again()

    return again()


@misbehaves
def changes_the_random_state(run: Any) -> None:
    random.seed(0)
    random.setstate(random.Random(1).getstate())
    run.report(accuracy=1)


@misbehaves
def raises_without_words(run: Any) -> None:
    raise ValueError


class Unshowable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("it does not say")


@misbehaves
def raises_what_cannot_be_shown(run: Any) -> None:
    raise Unshowable


@misbehaves
def raises_a_group(run: Any) -> None:
    raise ExceptionGroup("several", [ValueError("a"), TypeError("b")])


@misbehaves
def returns_something(run: Any) -> object:
    run.report(accuracy=1)
    return {"accuracy": 2}


@misbehaves
def starts_threads(run: Any) -> None:
    threads = [threading.Thread(target=time.sleep, args=(0.01,)) for _ in range(20)]
    for thread in threads:
        thread.start()
    run.report(accuracy=1)


@misbehaves
def leaves_a_thread_behind(run: Any) -> None:
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    run.report(accuracy=1)


@misbehaves
def ignores_sigpipe_and_sigchld(run: Any) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    run.report(accuracy=1)


@misbehaves
def sets_its_own_limits(run: Any) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))
    run.report(accuracy=1)


def ignores_sigterm(run: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    run.report(accuracy=1)
    while True:
        time.sleep(60)
