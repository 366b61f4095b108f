"""What stands for a driver on each machine of a cluster: a local executor that is asked over the network."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from foresail.core.commands import Command
from foresail.core.events import Fact
from foresail.core.goal import Goal
from foresail.core.spec import Entry
from foresail.executors.cores import THREAD_VARIABLES
from foresail.executors.local import LocalExecutor


class Agent:
    """Runs the attempts of one machine; one call of `turn` at a time, and `wake` beside it.

    Args:
        folder: the study's, the same on all machines.
        goal: as for the local executor.
        entry: what a trial runs.
        cores: the study's ids of this machine's cores.
        variables: thread variables that the user has set where the driver runs; the cluster's own do not count.
    """

    def __init__(
        self, folder: str, *, goal: Goal, entry: Entry, cores: tuple[int, ...], variables: dict[str, str]
    ) -> None:
        for name in THREAD_VARIABLES:
            os.environ.pop(name, None)
        os.environ.update(variables)
        real = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [*range(len(cores))]
        places = {core: real[at % len(real)] for at, core in enumerate(cores)}
        self._executor = LocalExecutor(
            Path(folder), clock=_Clock(), goal=goal, target=entry, start="import", places=places
        )
        self._executor.start()

    def turn(self, commands: Sequence[Command], wait_s: float) -> Sequence[Fact]:
        """Perform the commands, then wait for news, for `wait_s` at most."""
        for command in commands:
            self._executor.perform(command)
        return self._executor.poll(time.monotonic() + (0.0 if commands else wait_s))

    def wake(self) -> None:
        """Let `turn` come back: there are commands."""
        self._executor.wake()

    def close(self, grace_s: float) -> Sequence[Fact]:
        """End everything; the last news."""
        self._executor.close(grace_s)
        return self._executor.poll(0.0)


class _Clock:
    def now_s(self) -> float:
        return time.monotonic()
