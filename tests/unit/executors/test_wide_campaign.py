"""Random suspends, changes of width and kills of ranks over small real trainings: each ends as if nothing had happened.

FORESAIL_CAMPAIGN is the number of incidents: 10 if not given, as many as there is time for by command.
"""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import psutil
import pytest
from wide_lab import LAYOUTS, ONE, TRAINING, curve, launch

from foresail.core import events as ev
from foresail.core.commands import Kill, Yield
from foresail.core.layout import Layout
from foresail.core.words import Outcome

INCIDENTS = int(os.environ.get("FORESAIL_CAMPAIGN", "10"))
STEPS, ROOM_S = 12, 20.0
SHAPES = [ONE, *LAYOUTS.values(), Layout(dp=2, tp=2), Layout(dp=4), Layout(pp=2, dp=2)]


def ranks_of(lab, attempt: str) -> list[psutil.Process]:
    """The processes of an attempt, by its group."""
    started = lab.of(ev.AttemptStarted, attempt)
    if not started:
        return []
    return [p for p in psutil.process_iter() if _group(p.pid) == started[-1].pid]


def _group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


def strike(lab, attempt: str, luck: random.Random) -> None:
    """One incident: a wish to leave, a kill of ours, or a rank killed from outside."""
    match luck.choice(["yield", "yield", "kill", "rank"]):
        case "yield":
            lab.executor.perform(Yield(attempt))
        case "kill":
            lab.executor.perform(Kill(attempt, grace_s=luck.choice([0.0, 2.0])))
        case "rank":
            living = ranks_of(lab, attempt)
            if living:
                luck.choice(living).send_signal(signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.timeout(60 + ROOM_S * INCIDENTS * 2)
def test_whatever_happens_the_curve_is_that_of_one_quiet_process(make_lab):
    seed = int(os.environ.get("FORESAIL_CAMPAIGN_SEED", "1"))
    luck, lab, incidents, trial = random.Random(seed), make_lab("import", TRAINING), 0, 0
    quiet = {"transformer": 0, "network": 1}
    for kind, number in quiet.items():
        lab.until_end(launch(lab, number, ONE, kind=kind, steps=STEPS))
    trial = len(quiet)
    while incidents < INCIDENTS:
        kind, number, over = luck.choice([*quiet]), 0, False
        while not over:
            number += 1
            attempt = launch(lab, trial, luck.choice(SHAPES), number, kind=kind, steps=STEPS, pause_s=0.02)
            if incidents < INCIDENTS and number < 6:
                lab.until_point_or_end(attempt, luck.randint(1, STEPS - 1))
                if not lab.of(ev.AttemptEnded, attempt):
                    incidents += 1
                    strike(lab, attempt, luck)
            end = lab.until_end(attempt)
            assert end.outcome in (Outcome.COMPLETED, Outcome.YIELDED, Outcome.KILLED, Outcome.LOST), end
            assert not ranks_of(lab, attempt), "a process is left"
            over = end.outcome is Outcome.COMPLETED
        told, right = curve(lab, trial), curve(lab, quiet[kind])
        assert sorted(told) == [*range(1, STEPS + 1)]
        for step, (loss, order) in told.items():
            assert order == pytest.approx(right[step][1], rel=1e-12), f"trial {trial}: other samples in step {step}"
            assert loss == pytest.approx(right[step][0], rel=1e-4), f"trial {trial}: another loss in step {step}"
        trial += 1
    attempts = len(lab.of(ev.AttemptEnded))
    print(f"{incidents} incidents, {attempts} attempts, {trial - len(quiet)} trainings, seed {seed}")
    _tell(Path(os.environ.get("FORESAIL_CAMPAIGN_LOG", os.devnull)), lab)


def _tell(path: Path, lab) -> None:
    ends = [str(end.outcome) for end in lab.of(ev.AttemptEnded)]
    path.write_text("\n".join(f"{ends.count(kind)} {kind}" for kind in sorted(set(ends))))
