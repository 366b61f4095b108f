"""The training that docs/wide.md shows, run as it stands: as one process, and as two ranks, with the same curve."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from foresail.core import events as ev
from foresail.core.goal import Goal
from foresail.core.layout import Layout
from foresail.core.spec import Entry
from foresail.core.words import Outcome

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
