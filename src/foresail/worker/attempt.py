"""One life of a training function, from its call to its farewell."""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType

from foresail.core.words import Outcome
from foresail.worker import randomness
from foresail.worker.entry import Training
from foresail.worker.folder import AttemptFolder, StudyFolder
from foresail.worker.grant import Grant
from foresail.worker.run import Killed, Run, Yielded
from foresail.worker.spool import Farewell, Spool

_MEMORY_WORDS = ("out of memory", "can't allocate memory", "cannot allocate memory")


def live(
    grant: Grant,
    find: Callable[[], Training],
    *,
    bell: int | None = None,
    own_process: bool = True,
    rank: int = 0,
) -> Farewell:
    """Find the function, call it, and put its farewell on the spool.

    Args:
        grant: what the attempt is told.
        find: gives the training function; may import it.
        bell: a pipe that wakes the driver.
        own_process: whether the process is the attempt's own, so that signals to it are meant for the attempt.
        rank: which of the attempt's processes this is.
    """
    folder = StudyFolder(Path(grant.root)).attempt(grant.attempt).of_rank(rank)
    spool = Spool(folder.spool, bell=bell)
    try:
        farewell = _call(grant, find, spool, own_process, rank)
    except (Exception, SystemExit, Killed) as error:
        farewell = explain(error)
        with suppress(Exception):  # no memory left for it, a full disk, an error of its own: the farewell must be said
            _keep_traceback(folder, error)
    spool.write(farewell)
    spool.close(wait=own_process)
    return farewell


def _call(grant: Grant, find: Callable[[], Training], spool: Spool, own_process: bool, rank: int) -> Farewell:
    function = find()
    randomness.seed_all(grant.seed)
    run = Run(grant, spool=spool, rank=rank)
    if own_process:
        _heed_signals(run, StudyFolder(Path(grant.root)).attempt(grant.attempt).kill)
    run.meet()
    try:
        function(run)
    except Yielded:
        return Farewell(outcome=Outcome.YIELDED)
    except SystemExit as leaving:
        if leaving.code not in (None, 0):
            raise
    return Farewell(outcome=Outcome.YIELDED if run.heeded else Outcome.COMPLETED)


def _heed_signals(run: Run, kill: Path) -> None:
    """SIGTERM from outside is a wish to suspend; after our own mark it ends the training."""

    def terminated(number: int, frame: FrameType | None) -> None:
        if kill.exists():
            run.end_now()
        run.ask_to_leave()

    signal.signal(signal.SIGTERM, terminated)


def explain(error: BaseException) -> Farewell:
    """How an error that left the training function is to be understood."""
    if isinstance(error, Killed):
        return Farewell(outcome=Outcome.KILLED)
    words = _words_of(error)
    said = f"{type(error).__name__}: {words}".strip().splitlines()[0].removesuffix(":")
    detail = said.encode("utf-8", "backslashreplace").decode()  # half of a surrogate pair is no UTF-8
    short_of_memory = isinstance(error, MemoryError) or any(word in words.lower() for word in _MEMORY_WORDS)
    return Farewell(outcome=Outcome.OUT_OF_MEMORY if short_of_memory else Outcome.FAILED, detail=detail)


def _words_of(error: BaseException) -> str:
    """What the error says; the training code's own class may fail even at that."""
    try:
        return str(error)
    except Exception:
        return "it cannot be shown"


def _keep_traceback(folder: AttemptFolder, error: BaseException) -> None:
    if isinstance(error, Killed):
        return
    text = "".join(traceback.format_exception(error))
    folder.traceback.write_text(text, encoding="utf-8", errors="backslashreplace")
    with suppress(OSError, ValueError):  # the training code has closed it; the file has the text
        print(text, end="", file=sys.stderr)
