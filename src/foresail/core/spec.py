"""What a study is, as data: everything that the engine needs to decide, and nothing that only a process needs."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, UnsetType, field

from foresail.core.goal import Goal
from foresail.core.layout import Layout, Parallel
from foresail.core.words import Config

SCHEMA = 1
"""Number of the form in which studies are stored. A reader exists for every number that was released."""


class Entry(Struct, frozen=True):
    """What a trial runs: a Python function, or a command line.

    `function`: "module:name" or "path/to/file.py:name". `command`: a list, the configuration is added as arguments.
    `cwd`: where it runs. Exactly one of the two is given.
    """

    function: str = ""
    command: tuple[str, ...] = ()
    cwd: str = ""
    env: dict[str, str] = field(default_factory=dict)


class Resources(Struct, frozen=True):
    """`workers`: trials at a time; `cores_per_trial`: cores of each, threads follow. `None`: as many as fit.

    `parallel`: what a trial does with its cores where it runs as several ranks; unset, it is one process, and the
    record is that of studies from before there were ranks.
    """

    workers: int | None = None
    cores_per_trial: int = 1
    parallel: Parallel | UnsetType = UNSET

    def layout(self, cores: int) -> Layout:
        """The ranks of an attempt with so many cores."""
        return Layout() if isinstance(self.parallel, UnsetType) else self.parallel.layout(cores)

    def usable(self, cores: int, config: Config) -> int:
        """Of so many cores, the most with which a trial of this configuration keeps its batch: never fewer than
        `cores_per_trial`, and a multiple of it."""
        if isinstance(self.parallel, UnsetType):
            return cores
        fewer = range(cores, self.cores_per_trial, -self.cores_per_trial)
        return next((n for n in fewer if self.parallel.keeps_batch(n, config)), min(cores, self.cores_per_trial))


class Choice(Struct, frozen=True):
    """A policy or a search by its name, with its options."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)


class StudySpec(Struct, frozen=True):
    """The study as recorded by its first event.

    `silence_s`: an attempt that says nothing for so long has failed; not set: it may be silent for ever. Fields that
    came later are left out where they are not set, so that the logs of before are written as they were.
    """

    name: str
    space: dict[str, Any]
    goal: Goal
    seed: int = 0
    policy: Choice = Choice("hybrid")
    search: Choice = Choice("random")
    resources: Resources = Resources()
    entry: Entry = Entry()
    max_steps: int | None = None
    retries: int = 2
    grace_s: float = 30.0
    keep_bytes: int = 10_000_000_000
    repeats: bool = False
    silence_s: float | UnsetType = UNSET
    schema: int = SCHEMA

    @property
    def silence_limit_s(self) -> float | None:
        return None if self.silence_s is UNSET else self.silence_s
