"""A small study with one trial of each kind, as its log."""

from __future__ import annotations

import math
from pathlib import Path

from foresail.core import events as ev
from foresail.core.goal import maximize
from foresail.core.plan import Verdict
from foresail.core.reason import Reason, Rule
from foresail.core.spec import Entry, StudySpec
from foresail.core.words import Act, AttemptId, Label, Outcome, Status, TrialId, attempt_id
from foresail.space import Float, Space
from foresail.stores.sqlite import SqliteStore

SPEC = StudySpec(
    name="digits",
    space=Space(lr=Float(1e-4, 1.0, log=True), momentum=Float(0.0, 0.99)).to_dict(),
    goal=maximize("accuracy", target=0.95, within="10 min"),
    entry=Entry(command=("python", "train.py"), cwd="/home/somebody/digits"),
    max_steps=10,
)


def one_of_each() -> list[ev.Event]:
    """Trial 0 reached the target, 1 was poor, 2 diverged, 3 failed, 4 is suspended."""
    return [
        ev.StudyCreated(at_s=0.0, spec=SPEC),
        ev.DriverStarted(at_s=0.0, cores=(0, 1), host="myhost"),
        *(proposed(n, lr) for n, lr in enumerate((0.1, 0.001, 0.9, 0.5, 0.02))),
        planned(0.0, 0, *(verdict(n, Act.RUN, Rule.POP_UNSEEN, Label.OPPORTUNISTIC) for n in (0, 1))),
        granted(0.0, 0, 1, core=0),
        granted(0.0, 1, 1, core=1),
        ev.AttemptStarted(at_s=0.1, attempt=life(0, 1), pid=4711),
        ev.AttemptStarted(at_s=0.1, attempt=life(1, 1), pid=4712),
        *(point(n, step, step * rise, at_s=step + 0.1) for step in (1, 2, 3) for n, rise in ((0, 0.25), (1, 0.1))),
        saved(3.2, 0, 3),
        planned(3.2, 1, poor(1)),
        ev.TrialEnded(at_s=3.2, trial=TrialId(1), status=Status.ENDED, detail=poor(1).reason.sentence()),
        ev.AttemptEnding(at_s=3.2, attempt=life(1, 1)),
        ended(3.4, 1, Outcome.KILLED, code=-15),
        granted(3.4, 2, 1, core=1),
        point(2, 1, math.nan, at_s=4.0),
        ev.TrialEnded(at_s=4.0, trial=TrialId(2), status=Status.DIVERGED, detail="accuracy = nan at step 1"),
        ev.AttemptEnding(at_s=4.0, attempt=life(2, 1)),
        ended(4.1, 2, Outcome.KILLED),
        granted(4.1, 3, 1, core=1),
        ended(4.5, 3, Outcome.FAILED, code=1, detail="ValueError: no such file"),
        ev.TrialEnded(at_s=4.5, trial=TrialId(3), status=Status.FAILED, detail="ValueError: no such file"),
        granted(4.5, 4, 1, core=1),
        point(4, 1, 0.5, at_s=5.5),
        ended(5.6, 4, Outcome.YIELDED),
        planned(5.6, 2, promising(0)),
        point(0, 4, 0.96, at_s=6.0),
        ev.StudyEnding(at_s=6.0, end="target", why="trial 0 reached accuracy = 0.96 at step 4"),
        ev.AttemptEnding(at_s=6.0, attempt=life(0, 1)),
        saved(6.1, 0, 4),
        ended(6.2, 0, Outcome.YIELDED),
        ev.StudyEnded(at_s=6.2, end="target", why="trial 0 reached accuracy = 0.96 at step 4"),
    ]


def store(path: Path, events: list[ev.Event]) -> Path:
    with SqliteStore.open(path) as log:
        log.append(events)
    return path


def life(trial: int, number: int) -> AttemptId:
    return attempt_id(TrialId(trial), number)


def proposed(trial: int, lr: float) -> ev.TrialProposed:
    config = {"lr": lr, "momentum": 0.9}
    return ev.TrialProposed(at_s=0.0, trial=TrialId(trial), config=config, origin="random")


def verdict(trial: int, act: Act, rule: Rule, label: Label, **numbers: float) -> Verdict:
    return Verdict(TrialId(trial), act, Reason(rule, numbers), label=label)


def poor(trial: int) -> Verdict:
    return verdict(trial, Act.END, Rule.POP_POOR, Label.POOR, p=0.012, poor=0.05, seen_frac=0.3, final=0.41)


def promising(trial: int) -> Verdict:
    return verdict(trial, Act.RUN, Rule.POP_PROMISING, Label.PROMISING, p=0.91, threshold=0.5, final=0.97, ert_s=2.0)


def planned(at_s: float, decision: int, *verdicts: Verdict) -> ev.Planned:
    return ev.Planned(at_s=at_s, decision=decision, verdicts=verdicts)


def granted(at_s: float, trial: int, number: int, *, core: int) -> ev.AttemptGranted:
    attempt = life(trial, number)
    return ev.AttemptGranted(at_s=at_s, attempt=attempt, trial=TrialId(trial), number=number, cores=(core,))


def point(trial: int, step: int, value: float, *, at_s: float, number: int = 1) -> ev.PointReported:
    metrics = {"accuracy": value, "loss": 1.0 - value}
    return ev.PointReported(at_s=at_s, attempt=life(trial, number), step=step, metrics=metrics, seconds=1.0)


def saved(at_s: float, trial: int, step: int) -> ev.CheckpointSaved:
    path = f"checkpoints/{trial}/step-{step}"
    return ev.CheckpointSaved(at_s=at_s, attempt=life(trial, 1), step=step, path=path, bytes=1_200_000)


def ended(at_s: float, trial: int, outcome: Outcome, *, code: int | None = None, detail: str = "") -> ev.AttemptEnded:
    return ev.AttemptEnded(at_s=at_s, attempt=life(trial, 1), outcome=outcome, exit_code=code, detail=detail)
