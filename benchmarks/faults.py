"""The fault campaign: small real studies under faults of many kinds, and the virtual world for very many.

    PYTHONPATH=src python benchmarks/faults.py real [--studies 3] [--seed 0] [--minutes 0] [--folder FOLDER]
    PYTHONPATH=src python benchmarks/faults.py virtual [--faults 100000] [--seed 0]

A study is given by its seed; faults come at random moments, so two runs differ in when, not in what. After each study:
its log is whole and folds, a fresh engine decides it again byte for byte, no trial that was over ran again, each curve
is what its configuration says (a point or a state that was lost would show), no process is left, and first-in-first-out
finds the best that it finds undisturbed. Recovery is timed from a fault that takes the driver to the next fact that
its successor records.

`real` needs Linux: it stops and kills processes, cuts their files short, and takes their disk away (a limit on the size
of files, since a test may not fill the machine's disk).
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import IO

import psutil

from foresail.api.drive import controller_of
from foresail.api.recorded import folder_of
from foresail.core import events as ev
from foresail.core.spec import Choice
from foresail.core.view import View, fold
from foresail.core.words import Status, trial_of
from foresail.engine.verify import verify
from foresail.stores.salvage import DamageWarning
from foresail.stores.sqlite import SqliteStore

sys.path.insert(0, str(Path(__file__).parent))
from faults_study import STEPS, TRIALS

SCRIPT = Path(__file__).with_name("faults_study.py")
STUDY_S = 1_800.0
"""Longest that one study may take, all its drivers together."""


class Lost(AssertionError):
    """Something did not survive."""


@dataclass
class Scene:
    """A study under attack."""

    storage: Path
    policy: str
    seed: int
    rng: random.Random
    counts: Counter[str]
    recoveries: list[float] = field(default_factory=list)
    driver: subprocess.Popen[bytes] | None = None
    down_s: float | None = None
    known: int = 0
    said: deque[str] = field(default_factory=lambda: deque(maxlen=60))

    @property
    def folder(self) -> Path:
        return folder_of(self.storage)

    def last(self) -> int:
        """Number of the last row, read as any reader does; of before where it cannot be read now."""
        try:
            with sqlite3.connect(f"file:{self.storage}?mode=ro", uri=True) as db:
                return int(db.execute("SELECT coalesce(max(seq), 0) FROM event").fetchone()[0])
        except sqlite3.Error:
            return self.known

    def start(self, *more: str, env: dict[str, str] | None = None) -> None:
        command = [sys.executable, str(SCRIPT), str(self.storage), self.policy, str(self.seed), *more]
        self.driver = subprocess.Popen(
            command,
            start_new_session=True,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env={**os.environ, **(env or {})},
        )
        Thread(target=self._hear, args=(self.driver.stderr,), daemon=True).start()
        self.known = self.last()
        self.said.clear()

    def _hear(self, stream: IO[bytes]) -> None:
        """What the driver says: through a pipe, since its own files may not grow at times."""
        with stream:
            for line in stream:
                self.said.append(line.decode(errors="replace"))

    def running(self) -> bool:
        return self.driver is not None and self.driver.poll() is None

    def note_recovery(self) -> None:
        """Time from the fault to the first fact after it."""
        if self.down_s is not None and self.last() > self.known:
            self.recoveries.append(time.monotonic() - self.down_s)
            self.down_s = None

    def fell(self) -> None:
        """The driver is down."""
        assert self.driver is not None
        self.driver.wait(60)
        self.down_s = time.monotonic()

    def workers(self) -> list[psutil.Process]:
        """Processes of attempts that have reported a step, so that a loss of them is no fruitless attempt."""
        found = []
        for alive in self.folder.glob("attempts/*/alive"):
            try:
                if b'"Point"' in (alive.parent / "spool.jsonl").read_bytes():
                    found.append(psutil.Process(int(alive.read_text())))
            except (OSError, ValueError, psutil.Error):
                continue
        return found

    def template(self) -> psutil.Process | None:
        assert self.driver is not None
        try:
            children = psutil.Process(self.driver.pid).children()
        except psutil.Error:
            return None
        return children[0] if children else None


# --- kinds of faults ---------------------------------------------------------------------------------------------
# Each does its harm and says whether it could. Those of `DOWN` leave the driver down; the next one takes over.


def worker_killed(scene: Scene, number: int = signal.SIGKILL) -> bool:
    for worker in scene.workers()[:1]:
        try:
            worker.send_signal(number)
        except psutil.Error:
            return False
        return True
    return False


def worker_terminated(scene: Scene) -> bool:
    return worker_killed(scene, signal.SIGTERM)


def worker_segfault(scene: Scene) -> bool:
    return worker_killed(scene, signal.SIGSEGV)


def worker_paused(scene: Scene) -> bool:
    return any(_pause(worker, 0.3) for worker in scene.workers()[:1])


def worker_disk_full(scene: Scene) -> bool:
    return any(_full(worker, 0.3) for worker in scene.workers()[:1])


def template_killed(scene: Scene) -> bool:
    template = scene.template()
    if template is None or not scene.workers():
        return False
    template.kill()
    return True


def template_paused(scene: Scene) -> bool:
    template = scene.template()
    return template is not None and _pause(template, 0.3)


def driver_paused(scene: Scene) -> bool:
    """Its reports come late, and all at once."""
    assert scene.driver is not None
    return _pause(psutil.Process(scene.driver.pid), 0.5)


def driver_disk_full(scene: Scene) -> bool:
    assert scene.driver is not None
    return _full(psutil.Process(scene.driver.pid), 1.0)


def second_driver(scene: Scene) -> bool:
    """It must be refused, by the name of the first."""
    assert scene.driver is not None
    command = [sys.executable, str(SCRIPT), str(scene.storage), scene.policy, str(scene.seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if not scene.running():
        return False  # the first had ended meanwhile
    if done.returncode == 0 or f"process {scene.driver.pid} " not in done.stderr:
        raise Lost(f"a second driver was not refused by the first's name: {done.stderr[-500:]}")
    return True


def spool_doubled(scene: Scene) -> bool:
    return _on_spool(scene, lambda lines: b"".join(lines[-2:]))


def spool_reordered(scene: Scene) -> bool:
    return _on_spool(scene, lambda lines: b"".join(reversed(lines[-3:])))


def spool_garbage(scene: Scene) -> bool:
    return _on_spool(scene, lambda lines: b'{"is":"Point","step":\xff\xfe}\n\x00\x00garbage\n')


def driver_killed(scene: Scene) -> bool:
    assert scene.driver is not None
    scene.driver.kill()
    return True


def driver_asked_to_stop(scene: Scene) -> bool:
    assert scene.driver is not None
    scene.driver.send_signal(signal.SIGINT)
    return True


def driver_interrupted_twice(scene: Scene) -> bool:
    assert scene.driver is not None
    for _ in range(2):
        scene.driver.send_signal(signal.SIGINT)
        time.sleep(0.05)
    return True


def log_torn(scene: Scene) -> bool:
    """The machine goes: the last page of the write-ahead log, or of the log, is half written."""
    driver_killed(scene)
    scene.fell()
    wal = scene.storage.with_name(scene.storage.name + "-wal")
    victim = wal if wal.exists() and wal.stat().st_size > 8_192 else scene.storage
    size = victim.stat().st_size
    if size < 8_192:
        return False
    os.truncate(victim, size - scene.rng.randrange(1, 4_096))
    return True


def log_garbled(scene: Scene) -> bool:
    """A page in the last third of the log is overwritten."""
    driver_killed(scene)
    scene.fell()
    wal = scene.storage.with_name(scene.storage.name + "-wal")
    victim = wal if wal.exists() and wal.stat().st_size > 8_192 else scene.storage
    size = victim.stat().st_size
    with victim.open("r+b") as file:
        file.seek(size - scene.rng.randrange(1, max(2, size // 3)))
        file.write(scene.rng.randbytes(16))
    return True


def checkpoint_torn(scene: Scene) -> bool:
    return _on_checkpoint(scene, lambda path: os.truncate(path, scene.rng.randrange(0, path.stat().st_size + 1)))


def checkpoint_garbled(scene: Scene) -> bool:
    return _on_checkpoint(scene, lambda path: path.write_bytes(scene.rng.randbytes(path.stat().st_size)))


def checkpoint_file_gone(scene: Scene) -> bool:
    return _on_checkpoint(scene, lambda path: path.unlink())


def _pause(process: psutil.Process, seconds: float) -> bool:
    try:
        process.suspend()
        time.sleep(seconds)
        process.resume()
    except psutil.Error:
        return False
    return True


def _full(process: psutil.Process, seconds: float) -> bool:
    """No file of the process can grow: writing fails as on a full disk."""
    try:
        before = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, before[1]))
        time.sleep(seconds)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, before)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _on_spool(scene: Scene, what: Callable[[list[bytes]], bytes]) -> bool:
    for spool in scene.folder.glob("attempts/*/spool.jsonl"):
        try:
            data = what(spool.read_bytes().splitlines(keepends=True))
            with spool.open("ab") as file:
                file.write(data)
        except OSError:
            continue
        return bool(data)
    return False


def _on_checkpoint(scene: Scene, what: Callable[[Path], object]) -> bool:
    """While no driver is there; the newest checkpoint of some trial."""
    driver_killed(scene)
    scene.fell()
    files = [path for path in scene.folder.glob("checkpoints/*/step-*/**/*") if path.is_file()]
    if not files:
        return False
    what(scene.rng.choice(files))
    return True


UP = (
    worker_killed,
    worker_terminated,
    worker_segfault,
    worker_paused,
    worker_disk_full,
    template_killed,
    template_paused,
    driver_paused,
    driver_disk_full,
    spool_doubled,
    spool_reordered,
    spool_garbage,
)
DOWN = (
    driver_killed,
    driver_asked_to_stop,
    driver_interrupted_twice,
    log_torn,
    log_garbled,
    checkpoint_torn,
    checkpoint_garbled,
    checkpoint_file_gone,
)
POINTS = ("before_append", "after_append", "before_perform", "after_perform")


# --- a study under attack ----------------------------------------------------------------------------------------


def maltreat(scene: Scene, *, drivers: int, faults_each: int) -> list[ev.Event]:
    """Run one study to its end through many faults; its log."""
    end_s = time.monotonic() + STUDY_S
    for number in range(1000):
        if time.monotonic() > end_s:
            raise Lost(f"{scene.storage}: the study does not come to its end: {''.join(scene.said)}")
        calm = number >= drivers
        death = () if calm else _death(scene)
        env = {"FAULTS_CUT_SAVES": "1"} if not number else {}
        scene.start(*death, env=env)
        if env:
            scene.counts["save_cut_short"] += 1
        for name in death:
            scene.counts[name.split(":")[0].replace("clock", "clock_moved")] += 1
        if _attend(scene, calm, faults_each, end_s):
            break
        scene.fell() if scene.down_s is None else None
    with SqliteStore.open(scene.storage, write=False) as store:
        return [event for _, event in store.read()]


def _death(scene: Scene) -> tuple[str, ...]:
    chance = scene.rng.random()
    if chance < 0.4:
        return (f"{scene.rng.choice(POINTS)}:{scene.rng.randint(1, 25)}",)
    return (f"clock:{scene.rng.randint(0, 99)}",) if chance < 0.6 else ()


def _attend(scene: Scene, calm: bool, faults_each: int, end_s: float) -> bool:
    """One driver's life. True: the study has ended."""
    assert scene.driver is not None
    left, next_s = (0, 0.0) if calm else (faults_each, time.monotonic())
    while scene.driver.poll() is None:
        if time.monotonic() > end_s:
            scene.driver.kill()
            raise Lost(f"{scene.storage}: the study does not come to its end: {''.join(scene.said)}")
        scene.note_recovery()
        if left and time.monotonic() >= next_s and scene.workers():
            kind = scene.rng.choice(UP)
            if kind(scene):
                scene.counts[kind.__name__] += 1
            left -= 1
            next_s = time.monotonic() + scene.rng.uniform(0.0, 0.2)
            if not left and scene.rng.random() < 0.15 and second_driver(scene):
                scene.counts["second_driver"] += 1
        elif not calm and not left:
            kind = scene.rng.choice(DOWN)
            if kind(scene):
                scene.counts[kind.__name__] += 1
            if scene.down_s is None:
                scene.fell()
            return False
        time.sleep(0.02)
    scene.note_recovery()
    code = scene.driver.returncode
    refused = any(
        "HostError: storage" in line for line in scene.said
    )  # its disk was taken away while it opened the log
    if code not in (0, -signal.SIGKILL) and not (code == 1 and refused):
        raise Lost(f"{scene.storage}: a driver ended with {code}: {''.join(scene.said)}")
    return code == 0 and _view(scene).ended is not None


def _view(scene: Scene) -> View:
    with SqliteStore.open(scene.storage, write=False) as store:
        return fold(event for _, event in store.read())


# --- what must hold ----------------------------------------------------------------------------------------------


def check(scene: Scene, events: list[ev.Event]) -> None:
    """Raises Lost."""
    view = fold(events)
    if view.ended is None or len(view.trials) != TRIALS:
        raise Lost(f"{scene.storage}: the study did not come to its end")
    over: set[int] = set()
    for event in events:
        if isinstance(event, ev.TrialEnded):
            over.add(event.trial)
        elif isinstance(event, ev.AttemptGranted) and event.trial in over:
            raise Lost(f"{scene.storage}: trial {event.trial} was over and ran again")
    _check_curves(scene, view, events)
    if (difference := verify(events, controller_of(view.spec))) is not None:
        raise Lost(f"{scene.storage}: a fresh engine decides otherwise: {difference}")
    _check_best(scene, view)
    end_s = time.monotonic() + 5.0
    while left := [p.pid for p in _of_study(scene)]:
        if time.monotonic() > end_s:
            raise Lost(f"{scene.storage}: processes are left: {left}")
        time.sleep(0.05)


def _check_curves(scene: Scene, view: View, events: list[ev.Event]) -> None:
    told: dict[int, set[int]] = {}
    for event in events:
        if isinstance(event, ev.PointReported):
            told.setdefault(trial_of(event.attempt), set()).add(event.step)
    for trial in view.trials:
        if set(trial.steps) != told.get(trial.id, set()):
            raise Lost(f"{scene.storage}: trial {trial.id} lost a point")
        for step, value in zip(trial.steps, trial.values, strict=True):
            if abs(value - float(trial.config["x"]) * step / STEPS) > 1e-9:
                raise Lost(f"{scene.storage}: trial {trial.id} lost its state: {value} at step {step}")
        if view.status(trial) is Status.COMPLETED and list(trial.steps) != list(range(1, STEPS + 1)):
            raise Lost(f"{scene.storage}: trial {trial.id} completed with steps {list(trial.steps)}")


def _check_best(scene: Scene, view: View) -> None:
    if scene.policy != "fifo":
        return
    failed = [t.id for t in view.trials if t.ended is not Status.COMPLETED]
    best = max(float(t.config["x"]) for t in view.trials)
    if failed or view.best is None or abs(view.best[2] - best) > 1e-9:
        details = [view.trials[t].detail for t in failed]
        raise Lost(f"{scene.storage}: best {view.best}, not {best}; trials not completed: {failed} {details}")


def _of_study(scene: Scene) -> Iterator[psutil.Process]:
    for process in psutil.process_iter(["cmdline", "environ"]):
        told = " ".join(process.info["cmdline"] or ()) + str(process.info["environ"] or "")
        if str(scene.storage) in told and process.pid != os.getpid():
            yield process


# --- campaigns ---------------------------------------------------------------------------------------------------


def real(
    studies: int, seed: int, minutes: float, folder: Path, *, drivers: int = 8, faults_each: int = 12
) -> Counter[str]:
    """Studies on real processes; faults by kind.

    Raises:
        Lost: something did not survive.
    """
    counts: Counter[str] = Counter()
    recoveries: list[float] = []
    began = time.monotonic()
    done = 0
    while done < studies or time.monotonic() < began + 60.0 * minutes:
        number = seed + done
        scene = Scene(
            folder / f"study-{number}.db",
            ("fifo", "asha")[number % 2],
            number,
            random.Random(number),
            counts,
            recoveries,
        )
        warnings.simplefilter("ignore", DamageWarning)
        check(scene, maltreat(scene, drivers=drivers, faults_each=faults_each))
        done += 1
        took = time.monotonic() - began
        print(f"{done} studies, {sum(counts.values())} faults of {len(counts)} kinds, {took:.0f} s", flush=True)
    if recoveries:
        middle = statistics.median(recoveries)
        print(f"recoveries {len(recoveries)}, median {middle:.1f} s, longest {max(recoveries):.1f} s")
    return counts


def virtual(faults: int, seed: int) -> Counter[str]:
    """Histories in the virtual world, all invariants checked at each event; faults by kind."""
    from foresail.testing.history import Case, play

    counts: Counter[str] = Counter()
    began = time.monotonic()
    number = seed
    while sum(counts.values()) < faults:
        policy = ("fifo", "asha", "asha-stop", "median")[number % 4]
        played = play(Case.drawn(number, Choice(policy)))
        counts["driver dies"] += played.drivers - 1
        for worker in played.world.workers.values():
            if worker.fate not in ("completes",):
                counts[f"worker {worker.fate}"] += 1
            counts["worker deaf to a wish"] += worker.deaf
            counts["value not finite"] += bool(worker.nature.diverges_at)
        counts["word late"] += played.world.late
        counts["word doubled"] += played.world.echoes
        counts["machine changes"] += max(0, min(played.drivers, len(played.case.machines)) - 1)
        number += 1
    print(f"{number - seed} histories, {time.monotonic() - began:.0f} s")
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("where", choices=("real", "virtual"))
    parser.add_argument("--studies", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=0.0, help="go on for so long")
    parser.add_argument("--faults", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    if given.where == "virtual":
        counts = virtual(given.faults, given.seed)
    else:
        with tempfile.TemporaryDirectory() as place:
            counts = real(given.studies, given.seed, given.minutes, given.folder or Path(place))
    for kind, count in counts.most_common():
        print(f"{count:8}  {kind}")
    print(f"{sum(counts.values()):8}  in all, {len(counts)} kinds; nothing lost")


if __name__ == "__main__":
    main()
