"""The names of every file that attempts read and write. No other file spells one.

    <study>/attempts/<trial>-<n>/     one life of a trial's processes: what it was told, said and printed
    <study>/attempts/<...>/rank-<k>/  the same of one of its ranks, where it has several; rank 0 speaks for it
    <study>/checkpoints/<trial>/      its saved states, `step-<k>` each, complete ones only
    <study>/kept/<trial>/             what a plain script keeps for itself between its attempts
    <study>/template.log              what the training code printed while it was imported

Names are ids only, so nothing that a user writes becomes a path.
"""

from __future__ import annotations

import re
from pathlib import Path

from foresail.core.words import AttemptId, TrialId
from foresail.errors import CallerError

PRIVATE = 0o700
"""Rights of a study's folder: who shares the machine can neither read nor steer the study."""
_STEP = re.compile(r"step-(\d+)\Z")


class AttemptFolder:
    """One attempt's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.json"
        self.grant = path / "grant.json"
        self.spool = path / "spool.jsonl"
        self.reports = path / "reports.jsonl"
        self.wish = path / "yield"
        self.kill = path / "kill"
        self.alive = path / "alive"
        self.stdout = path / "stdout.log"
        self.stderr = path / "stderr.log"
        self.traceback = path / "traceback.txt"

    @property
    def has_begun(self) -> bool:
        """Whether a process has taken the attempt up."""
        try:
            return self.alive.stat().st_size > 0
        except OSError:
            return False

    def of_rank(self, rank: int) -> AttemptFolder:
        """Where that rank says and prints; rank 0 speaks for the attempt, in the attempt's own."""
        return self if rank == 0 else AttemptFolder(self.path / f"rank-{rank}")


class StudyFolder:
    """The folder of a study's running side."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.template_log = root / "template.log"

    @property
    def is_used(self) -> bool:
        """Whether attempts of a study lie here."""
        attempts = self.root / "attempts"
        return attempts.is_dir() and any(attempts.iterdir())

    def attempt(self, attempt: AttemptId) -> AttemptFolder:
        return AttemptFolder(self.root / "attempts" / attempt)

    def checkpoints(self, trial: TrialId) -> Path:
        return self.root / "checkpoints" / str(trial)

    def checkpoint(self, trial: TrialId, step: int) -> Path:
        return self.checkpoints(trial) / f"step-{step}"

    def kept(self, trial: TrialId) -> Path:
        return self.root / "kept" / str(trial)

    def steps(self, trial: TrialId) -> list[int]:
        """Steps with a checkpoint, rising."""
        folder = self.checkpoints(trial)
        names = (_STEP.match(p.name) for p in folder.iterdir()) if folder.is_dir() else ()
        return sorted(int(name[1]) for name in names if name)

    def relative(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def checkpoint_named(self, relative: str) -> Path:
        """The place of a checkpoint, from its name relative to the study's folder.

        Raises:
            CallerError: it is no checkpoint's name.
        """
        parts = Path(relative).parts
        if len(parts) != 3 or parts[0] != "checkpoints" or not parts[1].isdigit() or not _STEP.match(parts[2]):
            raise CallerError(f"{relative!r} is no checkpoint", allowed="checkpoints/<trial>/step-<k>")
        return self.root / relative
