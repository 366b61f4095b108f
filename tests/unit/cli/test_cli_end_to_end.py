"""The command line as a person uses it: real processes, real training code, real signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from foresail.api.recorded import load_events
from foresail.core import events as ev
from foresail.core.words import Outcome

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="needs fork and signals")]

SPACE = """
[space]
lr = {type = "float", low = 0.5, high = 1.0}
"""
SCRIPT = """
import foresail as fs
lr = fs.config().lr
for step in range(1, 6):
    fs.report(step, accuracy=lr * step / 5)
"""
TRAIN = """
import time
def train(run):
    done = []
    run.on_save(lambda folder: (folder / "done.txt").write_text(",".join(map(str, done))))
    run.on_load(lambda folder: done.extend(map(int, (folder / "done.txt").read_text().split(","))))
    for step in run.steps(max=400):
        time.sleep(0.01)
        done.append(step)
        assert done == list(range(1, step + 1))
        run.report(accuracy=step / 100)
"""
DEAF = """
import signal, time
import foresail as fs
signal.signal(signal.SIGTERM, signal.SIG_IGN)
fs.report(1, accuracy=0.1)
time.sleep(600)
"""


class Terminal:
    """`foresail` in a process of its own, in a group of its own as a shell would give it."""

    def __init__(self, folder: Path, *args: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "foresail", *args],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.family: list[psutil.Process] = []

    def wait_for(self, words: str) -> None:
        """Read stderr until a line holds `words`."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if words in line:
                self.family += psutil.Process(self.process.pid).children(recursive=True)
                return
        raise AssertionError(f"{words!r} never came; exit code {self.process.wait()}")

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def end(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err

    def left(self) -> list[psutil.Process]:
        """Processes of it that outlive it."""
        return psutil.wait_procs(self.family, timeout=10)[1]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "deaf.py").write_text(DEAF)
    yield tmp_path
    for process in psutil.process_iter(["cmdline"]):
        assert str(tmp_path) not in " ".join(process.info["cmdline"] or ())


def write(folder: Path, entry: str, goal: str, study: str = "") -> None:
    text = f'[study]\nstorage = "s.db"\npolicy = "fifo"\n{entry}\n{study}\n[goal]\nmaximize = "accuracy"\n{goal}\n'
    (folder / "study.toml").write_text(text + SPACE)


def script(name: str) -> str:
    return f"command = {json.dumps([sys.executable, name])}"


def test_a_command_reaches_its_target(folder: Path) -> None:
    write(folder, script("script.py"), 'target = 0.5\nwithin = "50 s"')
    code, out, err = Terminal(folder, "run", "study.toml", "--json").end()
    assert code == 0, err
    result = json.loads(out)
    assert result["reached"] is True
    assert result["best"]["value"] >= 0.5
    assert "study 's' starts" in err
    trial = str(result["best"]["trial"])
    code, out, err = Terminal(folder, "explain", trial, "study.toml", "--json").end()
    assert (code, err) == (0, "")
    assert json.loads(out)["best"] == result["best"]["value"]
    assert Terminal(folder, "doctor", "s.db").end()[0] == 0
    code, out, err = Terminal(folder, "run", "study.toml", "--json").end()
    assert code == 0
    assert json.loads(out)["points"] == result["points"]
    assert "study 's' has ended (target)" in err


def test_a_target_that_is_not_reached_exits_with_4(folder: Path) -> None:
    write(folder, script("script.py"), "target = 2.0\ntrials = 3")
    code, out, err = Terminal(folder, "run", "study.toml").end()
    assert code == 4, err
    assert "trials:" in out
    assert "foresail explain" in out


def test_ctrl_c_saves_and_resume_goes_on(folder: Path) -> None:
    write(folder, 'function = "train.py:train"', "target = 4.0\ntrials = 2")
    running = Terminal(folder, "run", "study.toml")
    running.wait_for("best accuracy")
    running.interrupt()
    code, out, _ = running.end()
    assert code == 130
    assert "foresail resume s.db" in out
    assert running.left() == []
    events = load_events(folder / "s.db")
    asked = next(n for n, event in enumerate(events) if isinstance(event, ev.StopRequested))
    assert not [event for event in events[asked:] if isinstance(event, ev.AttemptGranted | ev.TrialProposed)]
    ends = [event for event in events if isinstance(event, ev.AttemptEnded)]
    assert ends
    assert {end.outcome for end in ends} == {Outcome.YIELDED}
    saved = {event.attempt for event in events if isinstance(event, ev.CheckpointSaved)}
    assert saved == {end.attempt for end in ends}
    code, _, err = Terminal(folder, "resume", "s.db").end()
    assert code == 0, err
    granted = [e for e in load_events(folder / "s.db")[len(events) :] if isinstance(e, ev.AttemptGranted)]
    assert all(grant.resume_step > 0 for grant in granted if grant.number > 1)


def test_ctrl_c_twice_ends_at_once_and_leaves_no_process(folder: Path) -> None:
    write(folder, script("deaf.py"), 'target = 4.0\nwithin = "500 s"', 'grace = "300 s"')
    running = Terminal(folder, "run", "study.toml")
    running.wait_for("best accuracy")
    running.interrupt()
    running.wait_for("stopping")
    running.interrupt()
    code, _, err = running.end()
    assert code == 130
    assert "foresail resume s.db" in err
    assert running.left() == []


def test_training_code_that_fails_stops_the_study_and_shows_where(folder: Path) -> None:
    (folder / "train.py").write_text("def train(run):\n    raise ValueError('no such data')\n")
    write(folder, 'function = "train.py:train"', "trials = 50")
    code, out, err = Terminal(folder, "run", "study.toml").end()
    assert code == 5
    assert "failed before their first report" in out
    assert "no such data" in err
    trace = folder / "s.runs" / "attempts" / "0-1" / "traceback.txt"
    assert str(trace) in out
    code, out, _ = Terminal(folder, "explain", "0").end()
    assert code == 0
    assert "ValueError: no such data" in out
    assert "line 2, in train" in out


def test_one_driver_a_study_and_any_number_of_watchers(folder: Path) -> None:
    write(folder, 'function = "train.py:train"', "target = 3.0\ntrials = 4")
    until = f"while step > 100 and not os.path.exists({str(folder / 'go')!r}): time.sleep(0.01)"
    (folder / "train.py").write_text("import os\n" + TRAIN.replace("time.sleep(0.01)", until))
    running = Terminal(folder, "run", "study.toml")
    running.wait_for("best accuracy")
    watching = Terminal(folder, "watch")
    code, _, err = Terminal(folder, "run", "study.toml").end()
    assert code == 2
    assert "is being written by process" in err
    assert "foresail watch" in err
    assert "running: process" in Terminal(folder, "status").end()[1]
    (folder / "go").touch()
    assert running.end()[0] == 0
    code, out, err = watching.end()
    assert code == 0, err
    assert "target: " in out
