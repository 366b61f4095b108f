"""Attempts as real processes, treated badly."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from lab import GOAL, PATIENCE_S, Lab, WallClock
from trainings import HERE

from foresail.core import events as ev
from foresail.core.commands import Kill, Launch, Yield
from foresail.core.spec import Entry
from foresail.core.words import AttemptId, Outcome, TrialId
from foresail.errors import CallerError
from foresail.executors import local, printed
from foresail.executors.leftover import set_strangers_apart
from foresail.executors.local import LocalExecutor
from foresail.worker.folder import AttemptFolder, StudyFolder

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning"),
    pytest.mark.skipif(sys.platform != "linux", reason="asks /proc"),
]
both = pytest.mark.parametrize("kind", ["fork", "import"])


def is_alive(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def pid_of(lab, attempt: str) -> int:
    lab.until(lambda: lab.of(ev.AttemptStarted, attempt))
    return lab.of(ev.AttemptStarted, attempt)[0].pid


@both
def test_a_killed_worker_is_lost_and_its_points_are_kept(make_lab, kind):
    lab = make_lab(kind, "counts")
    attempt = lab.launch(config={"steps": 10_000, "pause_s": 0.001})
    lab.until_point(attempt, 5)
    os.kill(pid_of(lab, attempt), signal.SIGKILL)
    end = lab.until_end(attempt)
    assert (end.outcome, end.detail) == (Outcome.LOST, "killed from outside by SIGKILL")
    steps = [p.step for p in lab.of(ev.PointReported)]
    assert steps == list(range(1, len(steps) + 1))
    assert len(steps) >= 5
    assert lab.until_end(lab.launch(number=2)).outcome is Outcome.COMPLETED


@both
def test_a_killed_template_loses_its_attempts_and_another_takes_its_place(make_lab, kind):
    lab = make_lab(kind, "has_children")
    attempt = lab.launch()
    point = lab.until_point(attempt)
    pid = pid_of(lab, attempt)
    os.kill(int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]), signal.SIGKILL)
    assert lab.until_end(attempt).outcome is Outcome.LOST
    assert not any(is_alive(int(p)) for p in (pid, point.metrics["forked"], point.metrics["other"]))
    again = lab.launch(number=2, config={"leaves": True})
    assert lab.until_end(again).outcome is Outcome.COMPLETED


@both
@pytest.mark.parametrize("leaves", [True, False], ids=["returns", "is killed"])
def test_an_end_is_told_when_all_children_are_gone(make_lab, kind, leaves):
    lab = make_lab(kind, "has_children")
    attempt = lab.launch(config={"leaves": leaves})
    metrics = lab.until_point(attempt).metrics
    if not leaves:
        lab.executor.perform(Kill(attempt))
    assert lab.until_end(attempt).outcome is (Outcome.COMPLETED if leaves else Outcome.KILLED)
    assert not is_alive(int(metrics["forked"]))
    assert not is_alive(int(metrics["other"]))


@both
@pytest.mark.parametrize("command", [Yield, Kill])
def test_training_that_ignores_every_hint_is_killed_after_its_grace(make_lab, kind, command, monkeypatch):
    monkeypatch.setattr("foresail.executors.local._KILL_GRACE_S", 0.1)
    lab = make_lab(kind, "ignores_sigterm")
    attempt = lab.launch()
    lab.until_point(attempt)
    lab.executor.perform(command(attempt, 0.1))
    assert lab.until_end(attempt).outcome is Outcome.KILLED


def test_a_kill_leaves_time_to_clean_up(make_lab):
    lab = make_lab("fork", "cleans_up")
    attempt = lab.launch()
    lab.until_point(attempt)
    lab.executor.perform(Kill(attempt, PATIENCE_S))
    assert lab.until_end(attempt).outcome is Outcome.KILLED
    assert (lab.folder / "attempts" / attempt / "cleaned").exists()


def test_sigterm_from_outside_is_a_wish_to_suspend(make_lab):
    lab = make_lab("fork", "counts")
    attempt = lab.launch(config={"steps": 100_000, "pause_s": 0.001})
    lab.until_point(attempt)
    os.kill(pid_of(lab, attempt), signal.SIGTERM)
    assert lab.until_end(attempt).outcome is Outcome.YIELDED
    assert lab.of(ev.CheckpointSaved)


def test_endless_printing_goes_to_files_and_stops_nothing(make_lab):
    lab = make_lab("fork", "prints_endlessly")
    attempt = lab.launch()
    lab.until_point(attempt, 50)
    lab.executor.perform(Yield(attempt))
    assert lab.until_end(attempt).outcome is Outcome.YIELDED
    folder = lab.folder / "attempts" / attempt
    assert (folder / "stdout.log").read_text().startswith("first words\nxxx")
    assert (folder / "stderr.log").stat().st_size > 500_000


@both
def test_leaving_without_a_return_is_a_failure(make_lab, kind):
    lab = make_lab(kind, "vanishes")
    end = lab.until_end(lab.launch())
    assert (end.outcome, end.detail) == (Outcome.FAILED, "exit code 0 before the training function returned")


@both
@pytest.mark.parametrize("user", [None, "7"], ids=["granted", "the user's"])
def test_cores_are_pinned_and_threads_follow_unless_the_user_says_otherwise(make_lab, kind, user, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if user:
        monkeypatch.setenv("OMP_NUM_THREADS", user)
    lab = make_lab(kind, "tells_threads")
    core = min(os.sched_getaffinity(0))
    lab.until_end(lab.launch(cores=(core,)))
    metrics = lab.of(ev.PointReported)[0].metrics
    assert metrics == {"accuracy": float(user or 1), "cores": 1}


def test_a_closure_runs_where_this_process_can_be_forked(make_lab):
    captured = [41]
    lab = make_lab("fork", lambda run: run.report(accuracy=captured[0] + 1))
    lab.until_end(lab.launch())
    assert lab.values() == [42]


def test_a_closure_that_cannot_be_reached_names_what_it_captured(tmp_path):
    captured = threading.Lock()

    def train(run):
        run.report(accuracy=captured.locked())

    executor = LocalExecutor(tmp_path, clock=WallClock(), goal=GOAL, target=train, start="import")
    with pytest.raises(CallerError, match="uses captured of the function around it"):
        executor.start()
    executor.close()


def test_a_failing_import_fails_each_attempt_with_its_traceback(make_lab, tmp_path):
    script = tmp_path / "broken.py"
    script.write_text("import json\nraise RuntimeError('no such device')\ndef train(run): pass\n")
    lab = make_lab("import", Entry(function=f"{script}:train"))
    end = lab.until_end(lab.launch())
    assert (end.outcome, end.detail) == (Outcome.FAILED, "RuntimeError: no such device")
    assert "broken.py" in (lab.folder / "attempts" / "0-1" / "traceback.txt").read_text()


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        (f"{HERE}:coutns", "did you mean 'counts'"),
        ("nowhere.py:train", "there is no file"),
        ("no_such_module_anywhere:train", "there is no module"),
    ],
)
def test_a_wrong_reference_is_explained(make_lab, reference, said):
    lab = make_lab("import", Entry(function=reference))
    end = lab.until_end(lab.launch())
    assert end.outcome is Outcome.FAILED
    assert said in end.detail


def test_imports_that_start_threads_are_done_by_each_attempt(make_lab, tmp_path):
    script = tmp_path / "threads.py"
    script.write_text(
        "import os, threading, time\n"
        "in_template = os.environ.get('FORESAIL_TEMPLATE')\n"
        "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
        "def train(run): run.report(accuracy=threading.active_count() + 10 * (in_template == '1'))\n"
    )
    lab = make_lab("import", Entry(function=f"{script}:train"))
    assert lab.until_end(lab.launch()).outcome is Outcome.COMPLETED
    assert lab.values() == [12]
    assert not lab.executor.ready.warm
    assert "2 threads" in (lab.folder / "template.log").read_text()


def test_an_attempt_that_was_granted_before_a_crash_is_not_run_twice(make_lab):
    lab = make_lab("fork", "counts")
    attempt = lab.launch()
    lab.until_end(attempt)
    after = make_lab("fork", "counts", folder=lab.folder)
    after.launch()
    assert after.until_end(attempt).outcome is Outcome.COMPLETED
    assert after.values() == [1, 2, 3, 4, 5]


def test_a_torn_last_report_is_dropped_and_named(make_lab):
    lab = make_lab("fork", "counts")
    attempt = lab.launch()
    lab.until_end(attempt)
    spool = lab.folder / "attempts" / attempt / "spool.jsonl"
    lines = spool.read_bytes().splitlines(keepends=True)
    spool.write_bytes(b"".join(lines[:4]) + lines[4][:20])
    after = make_lab("fork", "counts", folder=lab.folder)
    facts = after.executor.adopt([attempt])
    assert [f.step for f in facts if isinstance(f, ev.PointReported)] == [1, 2, 3]
    assert facts[-1].outcome is Outcome.LOST
    assert "its last report was torn (20 bytes)" in facts[-1].detail


@pytest.mark.slow
@pytest.mark.torch
@both
def test_data_loader_workers_can_be_used(make_lab, kind):
    lab = make_lab(kind, "loads_data_with_workers")
    assert lab.until_end(lab.launch()).outcome is Outcome.COMPLETED
    assert lab.values() == [sum(range(64))]


@pytest.mark.slow
@pytest.mark.torch
def test_torch_gets_as_many_threads_as_cores(make_lab, tmp_path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    script = tmp_path / "with_torch.py"
    script.write_text("import torch\ndef train(run): run.report(accuracy=torch.get_num_threads())\n")
    lab = make_lab("import", Entry(function=f"{script}:train"))
    lab.until_end(lab.launch(cores=(0, 1)))
    assert lab.values() == [2]
    assert lab.executor.ready.warm


# --- the driver's own death --------------------------------------------------------------------------------------

DRIVER = """
import sys
from pathlib import Path
sys.path[:0] = {path!r}
from lab import GOAL, Lab, WallClock
from trainings import HERE, TRAININGS
from foresail.core.spec import Entry
from foresail.executors import local, printed
from foresail.executors.leftover import set_strangers_apart
from foresail.executors.local import LocalExecutor
from foresail.worker.folder import AttemptFolder, StudyFolder
clock = WallClock()
target = TRAININGS["has_children"] if {fork} else Entry(function=str(HERE) + ":has_children")
executor = LocalExecutor(Path({folder!r}), clock=clock, goal=GOAL, target=target)
lab = Lab(executor, clock, Path({folder!r}))
executor.start()
metrics = lab.until_point(lab.launch()).metrics
pid = lab.of(__import__("foresail.core.events").core.events.AttemptStarted)[0].pid
print(pid, int(metrics["forked"]), int(metrics["other"]), flush=True)
lab.until(lambda: False)
"""


@pytest.mark.parametrize("fork", [True, False], ids=["fork", "import"])
@pytest.mark.parametrize("template_too", [True, False], ids=["with its template", "alone"])
def test_a_killed_driver_leaves_no_process(tmp_path, make_lab, fork, template_too):
    here = [str(HERE.parent), *sys.path]
    code = DRIVER.format(path=here, folder=str(tmp_path / "study"), fork=fork)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as driver:
        pids = [int(word) for word in driver.stdout.readline().split()]
        assert len(pids) == 3
        assert all(map(is_alive, pids))
        template = int(Path(f"/proc/{pids[0]}/stat").read_text().rpartition(")")[2].split()[1])
        driver.kill()
        if template_too:
            os.kill(template, signal.SIGKILL)
    lab = make_lab("fork", "counts", folder=tmp_path / "study")
    facts = lab.executor.adopt([AttemptId("0-1")])
    assert [f.outcome for f in facts if isinstance(f, ev.AttemptEnded)] == [Outcome.LOST]
    assert [f.step for f in facts if isinstance(f, ev.PointReported)] == [1]
    lab.until(lambda: not any(map(is_alive, pids)))


# --- commands ----------------------------------------------------------------------------------------------------

SCRIPT = """
import json, os, sys
values = dict(zip(sys.argv[1::2], sys.argv[2::2]))
config = json.load(open(os.environ["FORESAIL_CONFIG"]))
assert values["--optimizer"] == config["optimizer"] == "adam w", (values, config)
with open(os.environ["FORESAIL_REPORTS"], "a") as reports:
    print(json.dumps({"max_steps": 9}), file=reports)
    print(json.dumps({"step": 3, "accuracy": 0.5}), file=reports)
    print(json.dumps({"step": 4, "accuracy": float("nan")}), file=reports)
"""


def command(tmp_path: Path, text: str, *arguments: str) -> Entry:
    script = tmp_path / "script.py"
    script.write_text(text)
    path = os.pathsep.join(p for p in sys.path if p)
    return Entry(command=(sys.executable, str(script), *arguments), env={"PYTHONPATH": path})


def test_a_command_gets_its_configuration_whole_and_reports_in_json(make_lab, tmp_path):
    lab = make_lab("import", command(tmp_path, SCRIPT))
    end = lab.until_end(lab.launch(config={"optimizer": "adam w"}))
    assert (end.outcome, end.detail) == (Outcome.COMPLETED, "")
    assert [p.step for p in lab.of(ev.PointReported)] == [3, 4]
    assert lab.values()[0] == 0.5
    assert lab.of(ev.HorizonDeclared)[0].max_steps == 9


LEAVES = """
n=0 state="$FORESAIL_KEPT/n"
if [ -e "$state" ]; then read -r n < "$state"; fi
while [ ! -e "$FORESAIL_ATTEMPT/yield" ]; do
  n=$((n + 1)); echo "{\\"step\\": $n, \\"accuracy\\": 0.5}" >> "$FORESAIL_REPORTS"; sleep 0.01
done
mkdir -p "$FORESAIL_KEPT"; echo "$n" > "$state"; echo '{"yielded": true}' >> "$FORESAIL_REPORTS"
"""


def test_a_script_in_any_language_can_leave_and_come_back(make_lab, tmp_path):
    lab = make_lab("import", Entry(command=("sh", "-c", LEAVES)))
    for number in (1, 2):
        attempt = lab.launch(number=number)
        lab.until_point(attempt, 3 if number == 1 else len(lab.of(ev.PointReported)) + 1)
        lab.executor.perform(Yield(attempt))
        assert lab.until_end(attempt).outcome is Outcome.YIELDED
    points = lab.of(ev.PointReported)
    assert [p.step for p in points] == list(range(1, len(points) + 1))


CLIENT = """
import sys
from foresail.worker import client
config = client.config(lr=0.5, steps=0)
kept = client.checkpoint_dir() / "n"
n = int(kept.read_text()) if kept.exists() else 0
while not client.should_stop():
    n += 1
    kept.write_text(str(n))
    client.report(step=n, accuracy=n * config.lr)
"""


def test_a_script_with_the_client_heeds_the_wish_and_finds_its_files_again(make_lab, tmp_path):
    lab = make_lab("import", command(tmp_path, CLIENT))
    for number in (1, 2):
        attempt = lab.launch(number=number)
        lab.until_point(attempt, 3)
        lab.executor.perform(Yield(attempt))
        assert lab.until_end(attempt).outcome is Outcome.YIELDED
    points = lab.of(ev.PointReported)
    assert [p.step for p in points] == list(range(1, len(points) + 1))
    assert points[-1].metrics["accuracy"] == points[-1].step * 0.5


@pytest.mark.parametrize(
    ("text", "outcome", "said"),
    [
        ("raise ValueError('no')", Outcome.FAILED, "exit code 1: ValueError: no"),
        ("raise MemoryError('too much')", Outcome.OUT_OF_MEMORY, "MemoryError: too much"),
        ("import os; os.abort()", Outcome.FAILED, "died of SIGABRT"),
        ("pass", Outcome.COMPLETED, ""),
        (
            "import os, time\nopen(os.environ['FORESAIL_REPORTS'], 'a').write('{\"acuracy\": 1}\\n')\ntime.sleep(600)",
            Outcome.FAILED,
            "line 1 of reports.jsonl: report(): the goal's metric 'accuracy' is missing",
        ),
        (
            "import os, time\nopen(os.environ['FORESAIL_REPORTS'], 'a').write('accuracy = 1\\n')\ntime.sleep(600)",
            Outcome.FAILED,
            "line 1 of reports.jsonl: ",
        ),
        (
            "import os, time\nopen(os.environ['FORESAIL_REPORTS'], 'a').write('[' * 100_000 + '\\n')\ntime.sleep(600)",
            Outcome.FAILED,
            "line 1 of reports.jsonl: ",
        ),
        ("import os, signal\nos.kill(0, signal.SIGRTMIN + 2)", Outcome.FAILED, "died of signal "),
    ],
    ids=["raises", "memory", "aborts", "silent", "misspells", "no JSON", "nested", "odd signal"],
)
def test_how_commands_end(make_lab, tmp_path, text, outcome, said):
    lab = make_lab("import", command(tmp_path, text))
    end = lab.until_end(lab.launch())
    assert end.outcome is outcome
    assert said in end.detail


@pytest.mark.parametrize(
    ("text", "values", "said"),
    [('{"accuracy": 0.5}', [0.5], ""), ('{"accuracy": 0.', [], "its last report was torn (15 bytes)")],
    ids=["whole", "torn"],
)
def test_the_last_line_of_a_script_needs_no_newline(make_lab, tmp_path, text, values, said):
    written = f"import os\nopen(os.environ['FORESAIL_REPORTS'], 'a').write({text!r})"
    lab = make_lab("import", command(tmp_path, written))
    end = lab.until_end(lab.launch())
    assert (lab.values(), end.outcome, end.detail) == (values, Outcome.COMPLETED, said)


def test_a_command_that_is_not_there(make_lab):
    lab = make_lab("import", Entry(command=("no-such-program-anywhere",)))
    end = lab.until_end(lab.launch())
    assert (end.outcome, end.detail) == (Outcome.FAILED, "no-such-program-anywhere: No such file or directory")


def test_a_command_is_killed_with_its_group(make_lab, tmp_path):
    text = "import subprocess, os\np = subprocess.Popen(['sleep', '600'])\n"
    text += "print(p.pid, file=open(os.environ['FORESAIL_ATTEMPT'] + '/child', 'w'), flush=True)\n"
    text += "print('{\"accuracy\": 1}', file=open(os.environ['FORESAIL_REPORTS'], 'a'), flush=True)\np.wait()\n"
    lab = make_lab("import", command(tmp_path, text))
    attempt = lab.launch()
    lab.until_point(attempt)
    lab.executor.perform(Yield(attempt, 0.05))
    assert lab.until_end(attempt).outcome is Outcome.KILLED
    assert not is_alive(int((lab.folder / "attempts" / attempt / "child").read_text()))


# --- how the template comes to be --------------------------------------------------------------------------------

CALLER = """
import sys, threading, time
from pathlib import Path
sys.path[:0] = {path!r}
from lab import GOAL, Lab, WallClock
from foresail.errors import CallerError
from foresail.executors.local import LocalExecutor

def main():
    captured = 41
    def train(run):
        run.report(accuracy=captured + 1)
    if {threads}:
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    clock, folder = WallClock(), Path({folder!r})
    executor = LocalExecutor(folder, clock=clock, goal=GOAL, target=train)
    try:
        executor.start()
    except CallerError as error:
        print(error)
    else:
        lab = Lab(executor, clock, folder)
        lab.until_end(lab.launch())
        print(lab.values(), executor.ready.warm)
    executor.close()

main()
"""


@pytest.mark.parametrize(
    ("threads", "said"),
    [
        (False, "[42.0] True"),
        (True, "[42.0] True"),
    ],
)
def test_a_closure_is_trained_whether_its_process_can_be_forked_or_not(tmp_path, threads, said):
    code = CALLER.format(path=[str(HERE.parent), *sys.path], folder=str(tmp_path), threads=threads)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(said)
    assert done.stderr == ""


def test_threads_of_openblas_do_not_hinder_a_fork():
    code = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "import numpy\n"
        "numpy.ones((300, 300)) @ numpy.ones((300, 300))\n"
        "from foresail.executors import linux, template\n"
        "print(repr(template.unsafe_to_fork()))"
    )
    environment = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "''\n"


def test_a_folder_that_cannot_be_written_is_waited_for(make_lab):
    lab = make_lab("fork", "counts")
    told: list[str] = []
    lab.executor._trouble = told.append
    (lab.folder / "attempts").touch()
    attempt = lab.launch()
    assert "0-1 could not be started" in told[0]
    (lab.folder / "attempts").unlink()
    assert lab.until_end(attempt).outcome is Outcome.COMPLETED


def test_imports_that_never_end_end_with_the_attempt(make_lab, tmp_path):
    script = tmp_path / "endless.py"
    script.write_text("import time\ntime.sleep(600)\ndef train(run): pass\n")
    lab = make_lab("import", Entry(function=f"{script}:train"))
    attempt = lab.launch()
    lab.executor.perform(Kill(attempt, 0.0))
    assert lab.until_end(attempt).outcome is Outcome.KILLED
    lab.launch(number=2)


def test_a_working_folder_must_be_there(tmp_path):
    entry = Entry(command=("true",), cwd=str(tmp_path / "nowhere"))
    executor = LocalExecutor(tmp_path, clock=WallClock(), goal=GOAL, target=entry)
    with pytest.raises(CallerError, match="there is no folder"):
        executor.start()
    executor.close()


# --- a host that refuses, and what is left on disk ---------------------------------------------------------------


@both
def test_a_host_that_cannot_start_it_is_no_fault_of_the_trial(make_lab, kind, monkeypatch):
    lab, told, full = make_lab(kind, "counts"), [], [True]
    write = local.write_grant

    def refuse(folder, grant):
        if full[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(folder, grant)

    monkeypatch.setattr(local, "write_grant", refuse)
    lab.executor._trouble = told.append
    attempt = lab.launch()
    assert not lab.executor.poll(lab.clock.now_s() + 0.1)
    assert told == ["attempt 0-1 could not be started: [Errno 28] No space left on device; it is tried again"]
    full[0] = False
    assert lab.until_end(attempt).outcome is Outcome.COMPLETED
    assert lab.values() == [1, 2, 3, 4, 5]


def test_a_launch_that_waits_for_its_host_can_be_taken_back(make_lab, monkeypatch):
    def refuse(folder, grant):
        raise OSError(errno.ENOSPC, "No space left on device")

    lab = make_lab("fork", "counts")
    monkeypatch.setattr(local, "write_grant", refuse)
    attempts = [lab.launch(trial) for trial in range(2)]
    lab.executor.perform(Yield(attempts[0]))
    lab.executor.perform(Kill(attempts[1]))
    assert [lab.until_end(attempt).outcome for attempt in attempts] == [Outcome.YIELDED, Outcome.KILLED]


def test_a_process_that_cannot_make_its_files_is_started_again(make_lab, monkeypatch):
    lab = make_lab("fork", "counts")
    blocked = lab.folder / "attempts" / "0-1" / "stdout.log"
    begin = lab.executor._nursery.begin

    def begin_blocked(attempt):
        if not lab.facts:
            blocked.mkdir()
            lab.facts.append("blocked")
        begin(attempt)

    monkeypatch.setattr(lab.executor._nursery, "begin", begin_blocked)
    attempt = lab.launch()
    assert lab.until_end(attempt).outcome is Outcome.COMPLETED


@both
def test_what_is_printed_without_end_is_bounded_on_disk(make_lab, kind, monkeypatch):
    for name, value in (("MOST_BYTES", 300_000), ("KEPT_BYTES", 50_000), ("EVERY_S", 0.05)):
        monkeypatch.setattr(printed, name, value)
    lab = make_lab(kind, "prints_endlessly")
    attempt = lab.launch()
    folder = lab.folder / "attempts" / attempt
    lab.until(lambda: (folder / "stderr.log.1").exists() and (folder / "stdout.log.1").exists())
    kept = (folder / "stdout.log.1").read_bytes()
    assert kept.startswith(b"[foresail: ")
    assert b"bytes before this were cut" in kept[:80]
    assert len(kept) < 51_000
    lab.executor.perform(Kill(attempt))
    lab.until_end(attempt)


@both
def test_files_of_an_attempt_go_when_its_end_is_recorded(make_lab, kind):
    lab = make_lab(kind, "counts")
    attempt = lab.launch()
    lab.until_end(attempt)
    assert (lab.folder / "attempts" / attempt / "spool.jsonl").exists(), "until the driver asks again"
    lab.executor.poll(lab.clock.now_s())
    assert not (lab.folder / "attempts" / attempt).exists()
    lab.launch()
    assert not lab.executor.poll(lab.clock.now_s() + 0.2), "what is over is not begun again"


def test_what_a_training_printed_or_left_in_its_folder_stays(make_lab):
    lab = make_lab("fork", "cleans_up")
    attempt = lab.launch()
    lab.until_point(attempt)
    lab.executor.perform(Kill(attempt))
    lab.until_end(attempt)
    lab.executor.poll(lab.clock.now_s())
    assert {p.name for p in (lab.folder / "attempts" / attempt).iterdir()} == {"cleaned"}


def test_the_oldest_logs_go_when_all_are_too_much(tmp_path):
    kept = printed.Printed(most_bytes=250)
    for n in range(4):
        folder = AttemptFolder(tmp_path / str(n))
        folder.path.mkdir()
        folder.stdout.write_bytes(b"x" * 100)
        kept.ended(folder)
    assert [(tmp_path / str(n) / "stdout.log").exists() for n in range(4)] == [False, False, True, True]


@both
def test_an_attempt_of_which_the_log_does_not_know_is_ended_and_set_apart(make_lab, kind):
    """A torn log lost the start: its number is given again, to another configuration."""
    lab = make_lab(kind, "counts")
    attempt = lab.launch(config={"steps": 10_000, "pause_s": 0.001})
    lab.until_point(attempt)
    pid, study = pid_of(lab, attempt), StudyFolder(lab.folder)
    assert not set_strangers_apart(study, {attempt: launch_of(attempt, {"steps": 10_000, "pause_s": 0.001})})
    (aside,) = set_strangers_apart(study, {})
    assert not is_alive(pid)
    assert aside.name == "0-1.lost-1"
    assert (aside / "spool.jsonl").exists()
    other = make_lab(kind, "counts")
    assert other.until_end(other.launch(config={"steps": 2})).outcome is Outcome.COMPLETED
    assert other.values() == [1, 2]


def test_a_folder_of_another_start_is_not_taken_for_the_same(make_lab):
    first = make_lab("fork", "counts")
    attempt = first.launch(config={"steps": 3})
    first.until_end(attempt)
    second = make_lab("fork", "counts")
    second.until_end(second.launch(config={"steps": 2}))
    assert second.values() == [1, 2]
    assert (second.folder / "attempts" / "0-1.lost-1").exists()


def test_a_study_folder_is_its_owners_alone(make_lab):
    umask = os.umask(0)
    try:
        lab = make_lab("fork", "counts")
    finally:
        os.umask(umask)
    assert lab.folder.stat().st_mode & 0o777 == 0o700


def launch_of(attempt, config):
    return Launch(attempt=attempt, trial=TrialId(0), number=1, config=config, cores=(0,))


# --- functions that no other process can import ------------------------------------------------------------------


def closure_of(step):
    """As a notebook makes them: what it uses is not at the top level of any file."""
    values = [0.25 * step, 0.5 * step]

    def train(run):
        for value in values:
            run.report(accuracy=value)

    return train


@pytest.fixture
def threaded():
    """This process has a second thread, so it cannot be forked: a notebook's kernel has several."""
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    yield
    done.set()
    thread.join()


def lab_of(folder, target):
    clock = WallClock()
    executor = LocalExecutor(folder, clock=clock, goal=GOAL, target=target)
    executor.start()
    return Lab(executor, clock, folder)


def test_a_closure_is_carried_over_where_the_process_cannot_be_forked(tmp_path, threaded):
    lab = lab_of(tmp_path / "study", closure_of(2))
    try:
        attempts = [lab.launch(trial) for trial in range(2)]
        for attempt in attempts:
            end = lab.until_end(attempt)
            assert (end.outcome, end.detail) == (Outcome.COMPLETED, "")
            assert lab.values(attempt) == [0.5, 1.0]
    finally:
        lab.executor.close()


def test_what_cannot_be_carried_over_is_named_with_what_to_do(tmp_path, threaded):
    lock = threading.Lock()

    def train(run):
        with lock:
            run.report(accuracy=1.0)

    with pytest.raises(CallerError, match=r"train uses lock .* cannot be forked .* cannot be carried over") as caught:
        lab_of(tmp_path / "study", train)
    assert "top level of a file" in caught.value.allowed


def test_without_cloudpickle_the_error_says_how_to_get_it(tmp_path, threaded, monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(CallerError, match=r"cloudpickle.* is not installed") as caught:
        lab_of(tmp_path / "study", closure_of(1))
    assert "pip install 'foresail[notebook]'" in caught.value.do
