"""Whether what a study trains can be found on this machine: asked before anything is started, for a trial that cannot
start counts as failed."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from foresail.core.spec import Entry
from foresail.errors import CallerError, nearest

_READS_A_SCRIPT = re.compile(r"(python[\d.]*|bash|sh)\Z")


def check_entry(entry: Entry) -> None:
    """Refuse an entry that no process of this machine could follow.

    Raises:
        CallerError: the function exists in the process that began the study alone; or its file, the program of the
            command, or the folder in which it runs is not there.
    """
    if entry.cwd and not Path(entry.cwd).is_dir():
        raise CallerError(f"the folder {entry.cwd}, in which the study trains, is not there", do="bring it back")
    if entry.command:
        _check_program(entry)
        _check_script(entry)
    elif not entry.function:
        raise CallerError(
            "the training function of this study exists only in the script that began it",
            do="run that script again: study.run() continues the study",
        )
    else:
        _check_file(entry)


def _check_program(entry: Entry) -> None:
    program = entry.command[0]
    path = entry.env.get("PATH", os.environ.get("PATH"))
    found = shutil.which(os.path.join(entry.cwd, program) if os.path.dirname(program) else program, path=path)
    if found is None:
        raise CallerError(
            f"there is no program {program!r}",
            allowed="one that is on PATH, or a path to one that may be executed",
            do=f"check study.command; it is looked for from {entry.cwd or 'the current folder'}",
        )


def _check_script(entry: Entry) -> None:
    """Of `python train.py` and its like: whether the script is there."""
    program, script = os.path.basename(entry.command[0]), "".join(entry.command[1:2])
    if not _READS_A_SCRIPT.match(program) or not script.endswith((".py", ".sh")) or "{" in script:
        return
    place = Path(entry.cwd, script)
    if not place.is_file():
        found = sorted(file.name for file in place.parent.glob("*" + place.suffix)) if place.parent.is_dir() else []
        raise CallerError(
            f"there is no script {place}", do=nearest(place.name, found) if found else "check study.command"
        )


def _check_file(entry: Entry) -> None:
    place = entry.function.rpartition(":")[0]
    if place.endswith(".py") and not Path(entry.cwd, place).is_file():
        raise CallerError(f"there is no file {place}, in which this study's training code was", do="bring it back")
