"""The kinds of faults that `faults.py` does to a study: each does its harm and says whether it could.

Those of `UP` leave the driver up. Those of `DOWN` leave it down, or without its lock; the next one takes over.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from faults_scene import Lost, Scene


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
    """Who is forked meanwhile gets the limit too, and would keep it: as no process of a full disk does."""
    assert scene.driver is not None
    driver = psutil.Process(scene.driver.pid)
    done = _full(driver, 1.0)
    try:
        for child in driver.children(recursive=True):
            _set_limit(child, resource.RLIM_INFINITY)
    except psutil.Error:
        pass
    return done


def second_driver(scene: Scene) -> bool:
    """It must be refused, by the name of the first."""
    assert scene.driver is not None
    second = subprocess.Popen(scene.command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while second.poll() is None and scene.running():
        time.sleep(0.02)
    if not scene.running():  # the first one has ended or died meanwhile, and this one may have taken over
        second.kill()
        second.communicate()
        return False
    said = second.communicate()[1]
    if second.returncode == 0 or f"process {scene.driver.pid} " not in said:
        raise Lost(f"a second driver was not refused by the first's name: {said[-500:]}")
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


def lock_lost(scene: Scene) -> bool:
    """The driver is stopped, its lock's file is removed, and another one takes over; woken, the first must leave."""
    assert scene.driver is not None
    try:
        psutil.Process(scene.driver.pid).suspend()
    except psutil.Error:
        scene.fell()
        return False
    scene.storage.with_name(scene.storage.name + ".lock").unlink()
    scene.ousted.append(scene.driver)
    scene.down_s = time.monotonic()
    return True


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
    done = _set_limit(process, 0)
    time.sleep(seconds)
    return _set_limit(process, resource.RLIM_INFINITY) and done


def _set_limit(process: psutil.Process, size: int) -> bool:
    try:
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _on_spool(scene: Scene, what: Callable[[list[bytes]], bytes]) -> bool:
    spools = sorted(scene.folder.glob("attempts/*/spool.jsonl"))
    scene.rng.shuffle(spools)
    for spool in spools:
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
    lock_lost,
)
POINTS = ("before_append", "after_append", "before_perform", "after_perform")
