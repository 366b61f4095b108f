"""Checkpoints that are cut short, damaged or in the way."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from foresail.core.words import TrialId
from foresail.errors import HostError
from foresail.worker import checkpoint
from foresail.worker.folder import StudyFolder

TRIAL = TrialId(4)


class Cut(BaseException):
    """The process ends here."""


def fill(folder: Path) -> None:
    (folder / "tracked").mkdir()
    (folder / "tracked" / "model.bin").write_bytes(b"weights" * 1000)
    (folder / "random.json").write_text("{}")


def save(root: Path, step: int) -> checkpoint.Written:
    return checkpoint.write(StudyFolder(root), TRIAL, step, metrics={"accuracy": 0.5 * step}, fill=fill)


def test_what_was_written_is_whole(tmp_path):
    written = save(tmp_path, 3)
    manifest = checkpoint.verify(written.path, digests=True)
    assert (manifest.trial, manifest.step, manifest.metrics) == (TRIAL, 3, {"accuracy": 1.5})
    assert manifest.files.keys() == {"tracked/model.bin", "random.json"}
    assert written.bytes == sum(p.stat().st_size for p in written.path.rglob("*") if p.is_file())
    assert written.path == tmp_path / "checkpoints" / "4" / "step-3"


CALLS = ["fsync", "replace", "mkdir"]


@pytest.mark.parametrize("call", CALLS)
def test_a_save_that_is_cut_at_any_call_leaves_the_one_before(tmp_path, monkeypatch, call):
    """Ends the process at the first, second, ... call of each kind, until a save comes through."""
    save(tmp_path, 3)
    study = StudyFolder(tmp_path)
    original = getattr(os, call)
    for cut_at in range(1, 50):
        calls = 0

        def counting(*arguments, cut_at=cut_at, **more):
            nonlocal calls
            calls += 1
            if calls == cut_at:
                raise Cut
            return original(*arguments, **more)

        with monkeypatch.context() as patch:
            patch.setattr(os, call, counting)
            try:
                save(tmp_path, 4)
            except Cut:
                found = checkpoint.newest_whole(study, TRIAL, 4)
                assert found is not None
                assert found[1].step in (3, 4)
                checkpoint.remove(study.checkpoint(TRIAL, 4))
                continue
        break
    else:
        pytest.fail("no save came through")
    assert cut_at > 1
    assert checkpoint.newest_whole(study, TRIAL, 4)[1].step == 4
    assert sorted(p.name for p in study.checkpoints(TRIAL).iterdir()) == ["step-3", "step-4"]


def damage_manifest(path: Path) -> None:
    (path / "manifest.json").write_bytes((path / "manifest.json").read_bytes()[:-9])


def lose_manifest(path: Path) -> None:
    (path / "manifest.json").unlink()


def shorten_file(path: Path) -> None:
    os.truncate(path / "tracked" / "model.bin", 10)


def lose_file(path: Path) -> None:
    (path / "random.json").unlink()


def flip_bit(path: Path) -> None:
    data = bytearray((path / "tracked" / "model.bin").read_bytes())
    data[5] ^= 1
    (path / "tracked" / "model.bin").write_bytes(data)


@pytest.mark.parametrize("damage", [damage_manifest, lose_manifest, shorten_file, lose_file, flip_bit])
def test_damage_is_found_and_the_one_before_taken(tmp_path, damage):
    for step in (2, 3, 10):
        save(tmp_path, step)
    damage(tmp_path / "checkpoints/4/step-10")
    with pytest.raises(HostError, match="checkpoint step-10 is"):
        checkpoint.verify(tmp_path / "checkpoints/4/step-10", digests=True)
    with pytest.warns(RuntimeWarning, match="the checkpoint before it is taken"):
        path, manifest = checkpoint.newest_whole(StudyFolder(tmp_path), TRIAL, 10)
    assert (path.name, manifest.step) == ("step-3", 3)


def test_a_step_that_is_saved_again_replaces_the_old_state(tmp_path):
    first = save(tmp_path, 3)
    (first.path / "old").touch()
    again = save(tmp_path, 3)
    assert again.path == first.path
    assert not (again.path / "old").exists()
    checkpoint.verify(again.path, digests=True)


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path):
    def full(folder: Path) -> None:
        (folder / "part").touch()
        raise OSError(28, "No space left on device")

    with pytest.raises(HostError, match=r"step 3 was not written.*No space left"):
        checkpoint.write(StudyFolder(tmp_path), TRIAL, 3, metrics={}, fill=full)
    assert list((tmp_path / "checkpoints/4").iterdir()) == []


def test_what_a_cut_save_left_is_swept_by_the_next(tmp_path):
    left = tmp_path / "checkpoints/4/.saving-1-99"
    left.mkdir(parents=True)
    (left / "part").touch()
    save(tmp_path, 2)
    assert [p.name for p in left.parent.iterdir()] == ["step-2"]


def test_only_steps_up_to_the_asked_one_are_found(tmp_path):
    study = StudyFolder(tmp_path)
    assert checkpoint.newest_whole(study, TRIAL, 5) is None
    for step in (2, 9):
        save(tmp_path, step)
    assert checkpoint.newest_whole(study, TRIAL, 5)[1].step == 2
