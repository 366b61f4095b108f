"""Writes `schema-<n>.db` and `schema-<n>.txt`: a small log with every kind of event, of the schema of today.

A kept log is never written again: it stands for those that users have. Run this once for each new schema number,

    python tests/assets/make_log.py

and commit what it writes. The second file holds each event as Python shows it, one a line.
"""

from __future__ import annotations

import math
from pathlib import Path

from foresail.core import events as ev
from foresail.core.goal import Goal
from foresail.core.plan import Verdict
from foresail.core.reason import Reason, Rule
from foresail.core.spec import SCHEMA, Choice, Entry, Resources, StudySpec
from foresail.core.words import Act, AttemptId, Label, Outcome, Status, TrialId
from foresail.stores.sqlite import SqliteStore

A, B, TRIAL = AttemptId("0-1"), AttemptId("0-2"), TrialId(0)
SPEC = StudySpec(
    name="digits",
    space={
        "lr": {"type": "float", "low": 1e-4, "high": 1.0, "log": True},
        "layers": {"type": "int", "low": 1, "high": 4},
        "optimizer": {"type": "choice", "choices": ["sgd", "adam w"]},
        "nesterov": {"type": "flag"},
    },
    goal=Goal("accuracy", "max", target=0.985, within_s=1200.0),
    seed=7,
    policy=Choice("pop", {"poor": 0.05}),
    resources=Resources(workers=2),
    entry=Entry(command=("python", "train.py"), env={"A": "ü"}),
    max_steps=50,
)
EVENTS: list[list[ev.Event]] = [
    [
        ev.StudyCreated(at_s=0.0, spec=SPEC),
        ev.DriverStarted(at_s=0.0, cores=(0, 1), host="here", wall_time="2026-01-02T03:04:05+00:00"),
    ],
    [
        ev.TrialProposed(
            at_s=0.5,
            trial=TRIAL,
            config={"lr": 0.125, "layers": 2, "optimizer": "adam w", "nesterov": True, "warmup": "none"},
            origin="random",
        ),
        ev.Planned(
            at_s=0.5,
            decision=0,
            verdicts=(Verdict(TRIAL, Act.RUN, Reason(Rule.POP_UNSEEN, {"ert_s": math.inf}), 1, Label.OPPORTUNISTIC),),
        ),
        ev.AttemptGranted(at_s=0.5, attempt=A, trial=TRIAL, number=1, cores=(0,)),
    ],
    [
        ev.AttemptStarted(at_s=0.75, attempt=A, pid=4242),
        ev.HorizonDeclared(at_s=1.0, attempt=A, max_steps=20),
        ev.PointReported(at_s=2.0, attempt=A, step=1, metrics={"accuracy": 0.5, "loss": 1.25}, seconds=1.0),
    ],
    [ev.CheckpointSaved(at_s=2.5, attempt=A, step=1, path="trials/0/1", bytes=1024, digest="ab12", seconds=0.01)],
    [ev.Ticked(at_s=3.0), ev.AttemptEnding(at_s=3.0, attempt=A)],
    [ev.AttemptEnded(at_s=3.5, attempt=A, outcome=Outcome.YIELDED, exit_code=0)],
    [
        ev.AttemptGranted(
            at_s=4.0, attempt=B, trial=TRIAL, number=2, cores=(0, 1), resume_step=1, checkpoint="trials/0/1"
        )
    ],
    [ev.PointReported(at_s=5.0, attempt=B, step=2, metrics={"accuracy": math.nan, "loss": math.inf}, seconds=1.0)],
    [ev.AttemptEnded(at_s=5.5, attempt=B, outcome=Outcome.FAILED, detail="ValueError: 'ü'\n", exit_code=1)],
    [ev.TrialEnded(at_s=5.5, trial=TRIAL, status=Status.DIVERGED, detail="accuracy was nan at step 2")],
    [ev.CheckpointDeleted(at_s=6.0, path="trials/0/1"), ev.SearchExhausted(at_s=6.0, why="no further point")],
    [ev.StopRequested(at_s=7.0), ev.StudyEnding(at_s=7.0, end="stopped", why="Ctrl-C")],
    [ev.StudyEnded(at_s=8.0, end="stopped", why="Ctrl-C", summary={"trials": 1.0, "best": math.nan})],
    [ev.DriverStopped(at_s=8.0, why="the study ended")],
]


def main() -> None:
    path = Path(__file__).with_name(f"schema-{SCHEMA}.db")
    if path.exists():
        raise SystemExit(f"{path} is kept for ever; raise SCHEMA for a new one")
    with SqliteStore.open(path) as store:
        for batch in EVENTS:
            store.append(batch, durable=True)
    path.with_name(path.name + ".lock").unlink()
    lines = [repr(event) for batch in EVENTS for event in batch]
    path.with_suffix(".txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
