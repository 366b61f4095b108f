"""Exit codes, once: `foresail --help`, the documentation and the commands read this table."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    DONE = 0
    BUG = 1
    CALLER = 2
    HOST = 3
    UNREACHED = 4
    FAILING = 5
    INTERRUPTED = 130
    PIPE_CLOSED = 141


MEANINGS: dict[Exit, str] = {
    Exit.DONE: "done; of run and resume: the target was reached, or, without a target, there is a result",
    Exit.BUG: "a bug of Foresail; please report it",
    Exit.CALLER: "the call, the study file or the storage's name is wrong; nothing was started",
    Exit.HOST: "the machine could not do it: disk, rights, a damaged storage; of doctor: a check failed",
    Exit.UNREACHED: "the study ended before its target, or without a result; of best: no result yet",
    Exit.FAILING: "the training code fails: all trials failed alike, and the study stopped early",
    Exit.INTERRUPTED: "stopped by Ctrl-C or SIGTERM; `foresail resume` continues",
    Exit.PIPE_CLOSED: "the reader of the output went away",
}
