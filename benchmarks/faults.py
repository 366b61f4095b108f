"""The fault campaign: real studies under faults of many kinds, and the virtual world for very many.

    PYTHONPATH=src python benchmarks/faults.py real [--studies 3] [--seed 0] [--minutes 0] [--folder FOLDER]
    PYTHONPATH=src python benchmarks/faults.py soak [--minutes 60] [--seed 0] [--folder FOLDER]
    PYTHONPATH=src python benchmarks/faults.py virtual [--faults 100000] [--seed 0]

`real`: small studies, one after the other. `soak`: one study of real training for so long. `--json FILE` keeps what
came of it. A study is given by its seed; faults come at random moments, so two runs differ in when, not in what.

After each study: its log is whole and folds, a fresh engine decides it again byte for byte, no trial that was over ran
again, each curve is what its configuration says, or what an undisturbed training of it gives (a point or a state that
was lost would show), no process is left, and first-in-first-out finds the best that it finds undisturbed. Recovery is
timed from the end of a driver until its successor has an attempt running: start of the interpreter, imports, salvage
and all.

`real` and `soak` need Linux: they stop and kill processes, cut their files short, and take their disk away (a limit on
the size of files, since a test may not fill the machine's disk).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foresail.api.drive import controller_of
from foresail.core import events as ev
from foresail.core.spec import Choice
from foresail.core.view import Trial, View, fold
from foresail.core.words import Status, trial_of
from foresail.engine.verify import verify
from foresail.stores.salvage import DamageWarning
from foresail.stores.sqlite import SqliteStore

sys.path.insert(0, str(Path(__file__).parent))
from faults_kinds import DOWN, POINTS, UP, second_driver
from faults_scene import Lost, Scene
from faults_study import STEPS, TRIALS, Undisturbed, digits

LIMIT_S = 1_800.0
"""Longest that one small study may take, all its drivers together."""
COMPARED = 60
"""Trials of real training whose curves are compared with undisturbed ones."""


# --- a study under attack ----------------------------------------------------------------------------------------


def maltreat(scene: Scene, *, drivers: float, faults_each: int, limit_s: float) -> list[ev.Event]:
    """Run one study to its end through many faults; its log.

    Raises:
        Lost: it does not come to its end, or a driver ended as none may.
    """
    try:
        return _maltreat(scene, drivers, faults_each, limit_s)
    finally:
        scene.clear_away()


def _maltreat(scene: Scene, drivers: float, faults_each: int, limit_s: float) -> list[ev.Event]:
    end_s = time.monotonic() + limit_s
    while True:
        calm = scene.drivers >= drivers
        death = () if calm else _death(scene)
        env = {} if scene.drivers else {"FAULTS_CUT_SAVES": "1"}
        scene.start(*death, env=env)
        scene.counts.update(["save_cut_short"] if env else [])
        scene.counts.update(name.split(":")[0].replace("clock", "clock_moved") for name in death)
        if _attend(scene, calm, faults_each, end_s):
            break
    scene.wake_the_ousted()
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
            story = scene.autopsy()
            scene.driver.kill()
            raise Lost(f"{scene.storage}: the study does not come to its end:\n{story}")
        scene.note_recovery()
        scene.measure()
        if left and time.monotonic() >= next_s and scene.workers():
            _harm(scene, UP)
            left -= 1
            next_s = time.monotonic() + scene.rng.uniform(0.0, 0.2)
            if not left and scene.rng.random() < 0.15 and second_driver(scene):
                scene.counts["second_driver"] += 1
        elif not calm and not left:
            before = scene.down_s
            _harm(scene, DOWN)
            if scene.down_s == before:
                scene.fell()
            return False
        time.sleep(0.02)
    return _has_ended(scene)


def _harm(scene: Scene, kinds: tuple[Any, ...]) -> None:
    kind = scene.rng.choice(kinds)
    if kind(scene):
        scene.counts[kind.__name__] += 1


def _has_ended(scene: Scene) -> bool:
    """Whether the driver that has just left has ended the study.

    Raises:
        Lost: it left as none may.
    """
    assert scene.driver is not None
    scene.note_recovery()
    code = scene.driver.returncode
    said = "".join(scene.said)
    no_disk = "HostError: storage" in said or "HostError: cannot write" in said  # taken away while it opened the log
    other_wrote = scene.contested and "was taken over" in said  # it was woken in the middle of a transaction
    if code not in (0, -signal.SIGKILL) and not (code == 1 and (no_disk or other_wrote)):
        raise Lost(f"{scene.storage}: a driver ended with {code}: {said}")
    if code == 0 and scene.view().ended is not None:
        return True
    scene.fell()
    return False


# --- what must hold ----------------------------------------------------------------------------------------------


def check(scene: Scene, events: list[ev.Event]) -> None:
    """Raises Lost."""
    view = fold(events)
    if view.ended is None:
        raise Lost(f"{scene.storage}: the study did not come to its end")
    over: set[int] = set()
    for event in events:
        if isinstance(event, ev.TrialEnded):
            over.add(event.trial)
        elif isinstance(event, ev.AttemptGranted) and event.trial in over:
            raise Lost(f"{scene.storage}: trial {event.trial} was over and ran again")
    if (difference := verify(events, controller_of(view.spec))) is not None:
        raise Lost(f"{scene.storage}: a fresh engine decides otherwise: {difference}")
    _check_points(scene, view, events)
    (_check_counting if scene.setting[0] == "counting" else _check_digits)(scene, view)
    end_s = time.monotonic() + 10.0
    while left := [p.pid for p in scene.processes()]:
        if time.monotonic() > end_s:
            raise Lost(f"{scene.storage}: processes are left: {left}")
        time.sleep(0.05)


def _check_points(scene: Scene, view: View, events: list[ev.Event]) -> None:
    told: dict[int, set[int]] = {}
    for event in events:
        if isinstance(event, ev.PointReported):
            told.setdefault(trial_of(event.attempt), set()).add(event.step)
    for trial in view.trials:
        if set(trial.steps) != told.get(trial.id, set()):
            raise Lost(f"{scene.storage}: trial {trial.id} lost a point")
        if list(trial.steps) != list(range(1, len(trial.steps) + 1)):
            raise Lost(f"{scene.storage}: trial {trial.id} has a gap: {list(trial.steps)}")


def _check_counting(scene: Scene, view: View) -> None:
    if len(view.trials) != TRIALS:
        raise Lost(f"{scene.storage}: {len(view.trials)} trials")
    for trial in view.trials:
        for step, value in zip(trial.steps, trial.values, strict=True):
            if abs(value - float(trial.config["x"]) * step / STEPS) > 1e-9:
                raise Lost(f"{scene.storage}: trial {trial.id} lost its state: {value} at step {step}")
        if view.status(trial) is Status.COMPLETED and len(trial.steps) != STEPS:
            raise Lost(f"{scene.storage}: trial {trial.id} completed with steps {list(trial.steps)}")
    if view.spec.policy.name != "fifo":
        return
    failed = [(t.id, t.detail) for t in view.trials if t.ended is not Status.COMPLETED]
    best = max(float(t.config["x"]) for t in view.trials)
    if failed or view.best is None or abs(view.best[2] - best) > 1e-9:
        raise Lost(f"{scene.storage}: best {view.best}, not {best}; trials not completed: {failed}")


def _check_digits(scene: Scene, view: View) -> None:
    """Curves are those of undisturbed trainings, to the bit."""
    failed = [(t.id, t.detail) for t in view.trials if t.ended is Status.FAILED]
    if failed:
        raise Lost(f"{scene.storage}: trials failed: {failed}")
    trained = [trial for trial in view.trials if trial.values]
    for trial in random.Random(0).sample(trained, min(COMPARED, len(trained))):
        if (quiet := undisturbed(view, trial)) != list(trial.values):
            raise Lost(f"{scene.storage}: trial {trial.id} lost its state: {list(trial.values)}, undisturbed {quiet}")


def undisturbed(view: View, trial: Trial) -> list[float]:
    """The values of a training of the trial's configuration without any fault, as far as the trial went."""
    import torch

    torch.set_num_threads(1)
    quiet = Undisturbed(trial.config, view.spec.seed * 1_000_003 + trial.id)
    digits(quiet)  # type: ignore[arg-type]
    return [float(value) for value in quiet.values[: len(trial.values)]]


# --- campaigns ---------------------------------------------------------------------------------------------------


@dataclass
class Campaign:
    """What came of it."""

    counts: Counter[str] = field(default_factory=Counter)
    recoveries: list[float] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)

    def scene(self, folder: Path, number: int, *setting: str) -> Scene:
        return Scene(
            folder / f"study-{number}.db",
            (*setting, str(number)),
            random.Random(number),
            self.counts,
            self.recoveries,
        )

    def told(self) -> dict[str, Any]:
        seconds = sorted(self.recoveries)
        found: dict[str, Any] = {"faults": sum(self.counts.values()), "kinds": len(self.counts), **self.figures}
        if seconds:
            found["recoveries"] = len(seconds)
            found["recovery_median_s"] = round(statistics.median(seconds), 2)
            found["recovery_95_percent_s"] = round(seconds[int(0.95 * (len(seconds) - 1))], 2)
            found["recovery_longest_s"] = round(seconds[-1], 2)
        return {**found, "by_kind": dict(self.counts.most_common())}


def real(studies: int, seed: int, minutes: float, folder: Path, *, drivers: int = 8, faults_each: int = 12) -> Campaign:
    """Small studies on real processes.

    Raises:
        Lost: something did not survive.
    """
    campaign, began, done = Campaign(), time.monotonic(), 0
    while done < studies or time.monotonic() < began + 60.0 * minutes:
        scene = campaign.scene(folder, seed + done, "counting", ("fifo", "asha")[(seed + done) % 2])
        check(scene, maltreat(scene, drivers=drivers, faults_each=faults_each, limit_s=LIMIT_S))
        done += 1
        campaign.figures = {"studies": done, "seconds": round(time.monotonic() - began)}
        print(json.dumps({**campaign.told(), "by_kind": None}), flush=True)
    return campaign


def soak(seed: int, minutes: float, folder: Path) -> Campaign:
    """One study of real training for so many minutes of a driver's work, through faults all the time.

    Raises:
        Lost: something did not survive.
    """
    os.environ["OMP_NUM_THREADS"] = "1"  # as the trials have
    campaign, began = Campaign(), time.monotonic()
    scene = campaign.scene(folder, seed, f"digits:{minutes}", "hybrid")
    events = maltreat(scene, drivers=float("inf"), faults_each=12, limit_s=180.0 * minutes)
    view = fold(events)
    campaign.figures = {
        "seconds": round(time.monotonic() - began),
        "drivers": scene.drivers,
        "trials": len(view.trials),
        "attempts": sum(trial.attempts for trial in view.trials),
        "points": view.points,
        "events": len(events),
        **{f"most_{name}": round(value, 1) for name, value in scene.most.items()},
    }
    print(json.dumps(campaign.told()), flush=True)
    check(scene, events)
    campaign.figures["compared_curves"] = min(COMPARED, sum(bool(trial.values) for trial in view.trials))
    return campaign


def virtual(faults: int, seed: int) -> Campaign:
    """Histories in the virtual world, all invariants checked at each event."""
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
    figures = {"histories": number - seed, "seconds": round(time.monotonic() - began)}
    return Campaign(counts, figures=figures)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("where", choices=("real", "soak", "virtual"))
    parser.add_argument("--studies", type=int, default=3)
    parser.add_argument("--minutes", type=float, help="real: go on for so long (0); soak: length of the study (60)")
    parser.add_argument("--faults", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore", DamageWarning)
    with tempfile.TemporaryDirectory() as place:
        folder = given.folder or Path(place)
        folder.mkdir(parents=True, exist_ok=True)
        if given.where == "virtual":
            campaign = virtual(given.faults, given.seed)
        elif given.where == "soak":
            campaign = soak(given.seed, 60.0 if given.minutes is None else given.minutes, folder)
        else:
            campaign = real(given.studies, given.seed, given.minutes or 0.0, folder)
    told = json.dumps({"command": " ".join(sys.argv[1:]), **campaign.told(), "lost": 0}, indent=1)
    print(told)
    if given.json is not None:
        given.json.write_text(told + "\n")


if __name__ == "__main__":
    main()
