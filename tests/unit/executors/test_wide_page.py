"""The training that docs/wide.md shows, run as it stands: as one process, and as two ranks, with the same curve."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from foresail.api.machine import usable_cores
from foresail.core import events as ev
from foresail.core.goal import Goal
from foresail.core.layout import Layout
from foresail.core.spec import Entry
from foresail.core.view import fold
from foresail.core.words import Outcome, Status
from foresail.stores.sqlite import SqliteStore

PAGE = Path(__file__).parents[3] / "docs" / "wide.md"


@pytest.mark.slow
@pytest.mark.torch
def test_the_training_of_the_page_learns_the_same_at_both_widths(make_lab, tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    (tmp_path / "page.py").write_text(code)
    lab = make_lab("import", Entry(function=f"{tmp_path / 'page.py'}:train"), goal=Goal("loss", "min", trials=2))
    for trial, layout in enumerate((Layout(), Layout(dp=2))):
        end = lab.until_end(lab.launch(trial, seed=3, config={"lr": 0.1}, cores=(0, 1), layout=layout))
        assert end.outcome is Outcome.COMPLETED, end.detail
    one, two = ([p.metrics["loss"] for p in lab.of(ev.PointReported, f"{trial}-1")] for trial in (0, 1))
    assert two == pytest.approx(one, rel=1e-5)
    assert one[-1] < 0.9 * one[0]


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.skipif(len(usable_cores()) < 2, reason="the page's study wants two cores")
def test_the_study_of_the_page_runs_to_its_end(tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    (tmp_path / "page.py").write_text(code)
    here = {**os.environ, "PYTHONPATH": str(PAGE.parents[1] / "src")}
    ran = subprocess.run(
        [sys.executable, "page.py"], cwd=tmp_path, env=here, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    (storage,) = tmp_path.glob("*.db")
    with SqliteStore.open(storage, write=False) as store:
        view = fold(event for _, event in store.read())
    assert view.ended is not None
    assert [view.status(trial) for trial in view.trials] == [Status.COMPLETED] * 2
    assert [list(trial.steps) for trial in view.trials] == [[1, 2, 3, 4, 5]] * 2
    assert view.spec.resources.layout(2).ranks == 2
