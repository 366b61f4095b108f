"""Checkpoints as a directory protocol.

A checkpoint is written under a temporary name beside its place, every file and the directory synced, and then moved
there by one rename: what lies at `step-<k>` is complete or was damaged from outside. Its manifest holds the sizes and
digests of all files, so damage is found and the previous one taken.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from foresail.core.words import TrialId
from foresail.errors import HostError
from foresail.worker.folder import StudyFolder
from foresail.worker.spool import to_wire

SCHEMA = 1
MANIFEST = "manifest.json"


class File(msgspec.Struct, frozen=True):
    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """`metrics`: of the step. `files`: by their path in the checkpoint."""

    trial: TrialId
    step: int
    metrics: dict[str, float | str]
    files: dict[str, File]
    schema: int = SCHEMA


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """A complete checkpoint. `digest`: of its manifest, which holds those of the files."""

    path: Path
    bytes: int
    digest: str


def write(
    folder: StudyFolder, trial: TrialId, step: int, *, metrics: Mapping[str, float], fill: Callable[[Path], None]
) -> Written:
    """Write the checkpoint of `step`; `fill` puts the files in the folder that it is given.

    Raises:
        HostError: the disk is full or cannot be written; what was there before is untouched.
    """
    place = folder.checkpoint(trial, step)
    sweep(place.parent)
    temporary = place.parent / f".saving-{step}-{os.getpid()}"
    try:
        temporary.mkdir(parents=True)
        fill(temporary)
        files = {p.relative_to(temporary).as_posix(): _measure(p) for p in sorted(temporary.rglob("*")) if p.is_file()}
        data = msgspec.json.encode(Manifest(trial=trial, step=step, metrics=to_wire(metrics), files=files))
        (temporary / MANIFEST).write_bytes(data)
        _settle(temporary, place)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        raise HostError(f"the checkpoint of step {step} was not written: {error}", do="free some space") from error
    size = len(data) + sum(file.bytes for file in files.values())
    return Written(path=place, bytes=size, digest=hashlib.sha256(data).hexdigest())


def verify(path: Path, *, digests: bool = False) -> Manifest:
    """The manifest of a whole checkpoint.

    Raises:
        HostError: it is not there or not whole; `digests`: also where a file's content changed under its size.
    """
    try:
        manifest = msgspec.json.decode((path / MANIFEST).read_bytes(), type=Manifest)
        for name, file in manifest.files.items():
            if (path / name).stat().st_size != file.bytes:
                raise HostError(f"checkpoint {path.name} is torn: {name} has not {file.bytes} bytes")
            if digests and _digest(path / name) != file.sha256:
                raise HostError(f"checkpoint {path.name} is damaged: {name} is not what was written")
    except OSError as error:
        raise HostError(f"checkpoint {path.name} is torn: {error.strerror}: {error.filename}") from error
    except msgspec.DecodeError as error:
        raise HostError(f"checkpoint {path.name} is torn: its manifest: {error}") from error
    return manifest


def newest_whole(folder: StudyFolder, trial: TrialId, step: int) -> tuple[Path, Manifest] | None:
    """The checkpoint of `step`, or the one before it that is whole; each that is not is warned about."""
    for candidate in reversed(folder.steps(trial)):
        if candidate > step:
            continue
        path = folder.checkpoint(trial, candidate)
        try:
            return path, verify(path, digests=True)
        except HostError as error:
            warnings.warn(f"{error}; the checkpoint before it is taken", RuntimeWarning, stacklevel=2)
    return None


def remove(path: Path) -> None:
    """Remove a checkpoint: gone at once, then its bytes. One that is not there is no error."""
    doomed = path.parent / f".deleted-{path.name}-{os.getpid()}"
    try:
        os.replace(path, doomed)
    except FileNotFoundError:
        return
    shutil.rmtree(doomed, ignore_errors=True)


def sweep(folder: Path) -> None:
    """Remove what saves and removals that were cut short left behind. Only the one writer of a trial calls this."""
    if folder.is_dir():
        for left in folder.iterdir():
            if left.name.startswith((".saving-", ".deleted-")):
                shutil.rmtree(left, ignore_errors=True)


def _settle(temporary: Path, place: Path) -> None:
    """Sync all of it, once all is written, so that the file system has one commit to make; then move it."""
    for path in temporary.rglob("*"):
        _sync(path)
    _sync(temporary)
    remove(place)  # a step that is trained again after a crash: the newer state is the one that its curve shows
    os.replace(temporary, place)
    _sync(place.parent)


def _measure(path: Path) -> File:
    return File(bytes=path.stat().st_size, sha256=_digest(path))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
