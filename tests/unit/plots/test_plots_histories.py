"""Pictures and reports of studies that were through crashes, cuts and failures: each is made, whatever happened."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from foresail.api.notebook import result_html
from foresail.api.report import report_of
from foresail.api.report_markdown import markdown_of
from foresail.api.result import result_of
from foresail.core.spec import Choice
from foresail.plots import Chronicle, gantt
from foresail.testing.history import Case, play

STORAGE = Path("history.db")


@pytest.mark.parametrize("policy", ["pop", "asha", "median"])
@pytest.mark.parametrize("seed", [0, 1, 2, 17])  # in 17 a trial never reports the goal's metric
def test_every_history_can_be_reported(policy: str, seed: int) -> None:
    events = play(Case.drawn(seed, Choice(policy))).log
    for upto in (len(events) // 2, len(events)):
        chronicle = Chronicle.of(events[:upto])
        report = report_of(events[:upto], STORAGE)
        assert markdown_of(report)
        for plot in report.plots:
            assert msgspec.json.encode(plot.picture)
        assert result_html(result_of(chronicle.view, STORAGE, STORAGE))
        data = gantt(chronicle)
        held = [((data.now_s if b.end_s is None else b.end_s) - b.start_s) * len(b.cores) for b in data.bars]
        assert sum(held) == pytest.approx(chronicle.view.device_s_used)
