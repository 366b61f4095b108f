"""Who shares a machine with a study can neither read nor steer it; nothing that is read runs code."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

import foresail as fs
from foresail.errors import CallerError, ForesailError
from foresail.executors import packed
from foresail.worker.state import Kept

HERE = Path(__file__).parent
SECRET = "hunter2-correct-horse"
STUDY = f"""
import os, sys
sys.path.insert(0, {str(HERE)!r})
os.umask(0)
import foresail as fs

def train(run):
    assert os.environ["MY_API_KEY"] == {SECRET!r}
    run.track(counter=Counter())
    for step in run.steps(max=2):
        run.report(score=step)

class Counter:
    def state_dict(self): return {{"n": 1}}
    def load_state_dict(self, state): pass

if __name__ == "__main__":
    goal = fs.maximize("score", trials=2)
    fs.Study(train, space=fs.Space(x=fs.Float(0.0, 1.0)), goal=goal, storage=sys.argv[1], workers=1).run(quiet=True)
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a study that was run with a secret in its environment and the most careless umask."""
    folder = tmp_path_factory.mktemp("ran")
    script = folder / "script.py"
    script.write_text(STUDY)
    storage = folder / "place" / "study.db"
    environment = {**os.environ, "MY_API_KEY": SECRET, "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, str(script), str(storage)], check=True, env=environment, timeout=120)
    return storage.parent


def test_nobody_else_can_read_or_steer_a_study(ran: Path) -> None:
    rights = {path.name: path.stat().st_mode & 0o777 for path in ran.iterdir()}
    assert {"study.db", "study.db.lock", "study.runs"} <= rights.keys()
    assert {name: mode for name, mode in rights.items() if mode & 0o077} == {}


def test_a_secret_is_in_no_file_of_a_study(ran: Path) -> None:
    files = [path for path in ran.rglob("*") if path.is_file()]
    assert any(path.name == "study.db" for path in files)
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []


@pytest.mark.parametrize("name", ["WANDB_API_KEY", "HF_TOKEN", "db_password", "AWS_SECRET_ACCESS_KEY", "SECRET"])
def test_what_looks_like_a_secret_is_not_recorded(name: str) -> None:
    with pytest.raises(CallerError, match=f"env.{name} looks like a secret"):
        study_with({name: SECRET})


@pytest.mark.parametrize("name", ["TOKENIZERS_PARALLELISM", "KEYBOARD", "DATA", "MONKEY", "TOKENS"])
def test_other_names_are_let_through(name: str) -> None:
    assert study_with({name: "1"}).spec.entry.env == {name: "1"}


def study_with(env: dict[str, str]) -> fs.Study:
    goal = fs.maximize("score", trials=1)
    return fs.Study(command=["true"], space=fs.Space(x=fs.Float(0.0, 1.0)), goal=goal, storage="s.db", env=env)


def test_a_study_listens_on_no_port(make_lab: Any) -> None:
    lab = make_lab("fork", "keeps_nothing")
    attempt = lab.launch()
    lab.until_point(attempt)
    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    assert len(family) >= 3
    listening = [c for p in family for c in p.net_connections("inet") if c.status == psutil.CONN_LISTEN]
    assert listening == []


class Harmful:
    def __reduce__(self) -> Any:
        return (os.mkdir, ("harmed",))


@pytest.mark.torch
def test_no_code_of_a_checkpoint_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    tracked = tmp_path / "tracked"
    tracked.mkdir()
    torch.save({"weight": Harmful()}, tracked / "model.pt")
    with pytest.raises((ForesailError, pickle.UnpicklingError)):
        Kept().track("model", torch.nn.Linear(1, 1), tmp_path)
    assert not (tmp_path / "harmed").exists()


def test_only_what_this_process_packed_is_unpacked() -> None:
    """A parcel is a file without a name: nobody else can open or replace it."""
    with packed.parcel(b"x") as descriptor:
        assert os.fstat(descriptor).st_nlink == 0
        assert os.fstat(descriptor).st_mode & 0o077 == 0
    source = Path(packed.__file__).parents[1]
    users = {p.name for p in source.rglob("*.py") if "pickle.loads" in p.read_text() or "pickle.load(" in p.read_text()}
    assert users <= {"packed.py"}
