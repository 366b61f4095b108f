"""What an attempt's process is told. It lies in the attempt's folder as JSON."""

from __future__ import annotations

import msgspec

from foresail.core.goal import Goal
from foresail.core.layout import Layout
from foresail.core.spec import Entry
from foresail.core.words import AttemptId, Config, TrialId
from foresail.worker.folder import AttemptFolder


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """`root`: the study's folder. `best`: the trial's best value so far. The rest as in `core.commands.Launch`."""

    root: str
    attempt: AttemptId
    trial: TrialId
    number: int
    config: Config
    goal: Goal
    entry: Entry = Entry()
    cores: tuple[int, ...] = ()
    devices: tuple[str, ...] = ()
    resume_step: int = 0
    checkpoint: str = ""
    seed: int = 0
    best: float | None = None
    layout: Layout = Layout()


def write_grant(folder: AttemptFolder, grant: Grant) -> None:
    """Make the folder with all that the process is told, and its spool, which then needs no room to be opened.

    Raises:
        OSError: the disk is full or cannot be written.
    """
    folder.path.mkdir(parents=True, exist_ok=True)
    folder.spool.touch()
    folder.config.write_bytes(msgspec.json.encode(grant.config))
    folder.grant.write_bytes(msgspec.json.encode(grant))


def read_grant(folder: AttemptFolder) -> Grant:
    return msgspec.json.decode(folder.grant.read_bytes(), type=Grant)
