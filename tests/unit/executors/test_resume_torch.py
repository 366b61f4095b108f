"""Training that was suspended and resumed equals training that was not, bit for bit."""

from __future__ import annotations

import random

import pytest
from trainings import HERE

from foresail.core import events as ev
from foresail.core.spec import Entry
from foresail.core.words import Outcome


@pytest.mark.slow
@pytest.mark.torch
def test_suspended_training_equals_uninterrupted_training(make_lab):
    import torch

    lab = make_lab("import", Entry(function=f"{HERE.with_name('torch_training.py')}:train"))
    leave_after = sorted(random.sample(range(1, 12), 2))
    config = {"lr": 0.01, "leave_after": ""}
    assert lab.until_end(lab.launch(0, seed=11, config=config)).outcome is Outcome.COMPLETED
    config["leave_after"] = " ".join(map(str, leave_after))
    assert lab.until_end(lab.launch(1, seed=11, config=config)).outcome is Outcome.YIELDED
    for number in (2, 3):
        saved = [s for s in lab.of(ev.CheckpointSaved) if s.attempt == f"1-{number - 1}"][-1]
        attempt = lab.launch(1, number, seed=11, config=config, resume_step=saved.step, checkpoint=saved.path)
        lab.until_end(attempt)
    whole = [(p.step, p.metrics) for p in lab.of(ev.PointReported) if p.attempt == "0-1"]
    parts = [(p.step, p.metrics) for p in lab.of(ev.PointReported) if p.attempt != "0-1"]
    assert [step for step, _ in whole] == list(range(1, 13))
    assert whole[0][1]["accuracy"] < 2 * whole[-1][1]["accuracy"], "it learns"
    assert parts == whole, f"suspended after {leave_after}"
    ends = [torch.load(lab.folder / "attempts" / a / "final.pt", weights_only=True) for a in ("0-1", "1-3")]
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])
