"""A study under attack, as `faults.py` sees it: its drivers, its processes, and how long it takes to train again."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import IO

import psutil

from foresail.api.recorded import folder_of
from foresail.core.view import View, fold
from foresail.stores.sqlite import SqliteStore

SCRIPT = Path(__file__).with_name("faults_study.py")
TRAINS = b"trains\n"
"""What a driver of `faults_study.py` says once it has recorded that an attempt of its own has started."""


class Lost(AssertionError):
    """Something did not survive."""


@dataclass
class Scene:
    """`setting`: the words that `faults_study.py` is told after the storage. `ousted`: drivers that were stopped, whose
    lock was taken away, and which have not been woken yet. `contested`: whether one was woken since the present driver
    came. `most`: the most that a driver held."""

    storage: Path
    setting: tuple[str, ...]
    rng: random.Random
    counts: Counter[str]
    recoveries: list[float] = field(default_factory=list)
    driver: subprocess.Popen[bytes] | None = None
    ousted: list[subprocess.Popen[bytes]] = field(default_factory=list)
    contested: bool = False
    down_s: float | None = None
    trains_s: float | None = None
    drivers: int = 0
    most: dict[str, float] = field(default_factory=dict)
    said: deque[str] = field(default_factory=lambda: deque(maxlen=80))

    @property
    def folder(self) -> Path:
        return folder_of(self.storage)

    @property
    def command(self) -> list[str]:
        return [sys.executable, str(SCRIPT), str(self.storage), *self.setting]

    def start(self, *more: str, env: dict[str, str] | None = None) -> None:
        self.said.clear()
        self.trains_s = None
        self.contested = False
        self.drivers += 1
        self.driver = subprocess.Popen(
            [*self.command, *more],
            start_new_session=True,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env={**os.environ, **(env or {})},
        )
        Thread(target=self._hear, args=(self.driver, self.driver.stderr), daemon=True).start()

    def _hear(self, driver: subprocess.Popen[bytes], stream: IO[bytes]) -> None:
        """What a driver says: through a pipe, since its own files may not grow at times."""
        with stream:
            for line in stream:
                if line != TRAINS:
                    self.said.append(line.decode(errors="replace"))
                elif driver is self.driver:
                    self.trains_s = time.monotonic()

    def running(self) -> bool:
        return self.driver is not None and self.driver.poll() is None

    def fell(self) -> None:
        """The driver is down."""
        assert self.driver is not None
        self.driver.wait(120)
        self.down_s = time.monotonic()

    def note_recovery(self) -> None:
        """Time from the end of a driver until its successor trains.

        One that was stopped in the middle of a transaction keeps others from writing, until it is woken.
        """
        if self.ousted and any("another program holds it" in line for line in self.said):
            self.down_s = None
            self.wake_the_ousted()
        if self.down_s is not None and self.trains_s is not None:
            self.recoveries.append(self.trains_s - self.down_s)
            self.down_s = None
            self.wake_the_ousted()

    def wake_the_ousted(self) -> None:
        """They must leave by themselves: another one drives.

        Raises:
            Lost: one of them did not.
        """
        for driver in self.ousted:
            self.contested = True
            driver.send_signal(signal.SIGCONT)
            try:
                code = driver.wait(120)
            except subprocess.TimeoutExpired:
                raise Lost(f"{self.storage}: a driver that lost its lock goes on beside its successor") from None
            if code == 0:
                raise Lost(f"{self.storage}: a driver that lost its lock ended as if nothing had happened")
        self.ousted.clear()

    def clear_away(self) -> None:
        """Leave no driver behind, whatever became of the study."""
        for driver in (*self.ousted, *([self.driver] if self.driver else [])):
            driver.kill()
            driver.wait()

    def measure(self) -> None:
        """What the driver holds."""
        try:
            driver = psutil.Process(self.driver.pid) if self.driver else None
            held = {"memory_mb": driver.memory_info().rss / 1e6, "descriptors": driver.num_fds()} if driver else {}
        except psutil.Error:
            return
        held["log_mb"] = self.storage.stat().st_size / 1e6 if self.storage.exists() else 0.0
        self.most = {name: max(value, self.most.get(name, 0.0)) for name, value in held.items()}

    def workers(self) -> list[psutil.Process]:
        """Processes of attempts that have reported a step, so that a loss of them is no fruitless attempt."""
        found = []
        for alive in self.folder.glob("attempts/*/alive"):
            try:
                if b'"Point"' in (alive.parent / "spool.jsonl").read_bytes():
                    process = psutil.Process(int(alive.read_text().split()[0]))
                    found += [process] if process.status() != psutil.STATUS_ZOMBIE else []
            except (OSError, ValueError, IndexError, psutil.Error):
                continue
        self.rng.shuffle(found)
        return found

    def template(self) -> psutil.Process | None:
        assert self.driver is not None
        try:
            children = psutil.Process(self.driver.pid).children()
        except psutil.Error:
            return None
        return children[0] if children else None

    def processes(self) -> Iterator[psutil.Process]:
        """All that know of the study, this one left out."""
        for process in psutil.process_iter(["cmdline", "environ"]):
            told = " ".join(process.info["cmdline"] or ()) + str(process.info["environ"] or "")
            if str(self.storage) in told and process.pid != os.getpid():
                yield process

    def view(self) -> View:
        with SqliteStore.open(self.storage, write=False) as store:
            return fold(event for _, event in store.read())

    def autopsy(self) -> str:
        """Why it may hang: the last events, each process with its state, and where driver and template stand."""
        try:
            with sqlite3.connect(f"file:{self.storage}?mode=ro", uri=True) as db:
                rows = db.execute("SELECT seq, body FROM event ORDER BY seq DESC LIMIT 8").fetchall()
        except sqlite3.Error as error:
            rows = [(0, str(error))]
        states = []
        for process in self.processes():
            try:
                times = process.cpu_times()
                states.append(f"{process.pid} of {process.ppid()}: {process.status()}, {times.user:.1f} s of CPU")
            except psutil.Error:
                continue
        if self.running() and self.driver is not None:
            for process in (self.driver, self.template()):
                if process is not None:
                    process.send_signal(signal.SIGUSR1)  # they show their stacks
            time.sleep(2.0)
        parts = [f"{seq} {body}" for seq, body in reversed(rows)] + states + [line.rstrip() for line in self.said]
        return "\n".join(parts)
