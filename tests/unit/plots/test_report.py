"""The report and the notebook's view: what they say is so, and nothing of a study is read as markup."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

import pytest
from studies import EVIL, SPACE

import foresail as fs
from foresail.api.notebook import result_html, study_html
from foresail.api.report import Report, noise_of, report_of
from foresail.api.report_html import html_of
from foresail.api.report_markdown import markdown_of
from foresail.api.result import result_of
from foresail.core import events as ev
from foresail.core.view import fold
from foresail.errors import CallerError

STORAGE = Path("made.db")


class Page(HTMLParser):
    """Tags, and the text outside scripts and styles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self._inside = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside not in ("script", "style"):
            self.text += data


@pytest.fixture(scope="module")
def report(pop: Sequence[ev.Event]) -> Report:
    return report_of(pop, STORAGE)


@pytest.fixture(scope="module")
def html(report: Report) -> str:
    pytest.importorskip("plotly")
    return html_of(report)


def test_it_tells_the_best_the_cost_and_what_was_saved(report: Report, pop: Sequence[ev.Event]) -> None:
    view = fold(pop)
    assert view.best is not None
    trial, step, value = view.best
    assert report.best[0] == f"accuracy = {value:.6g} by trial {trial} at step {step} of 20."
    assert report.outcome.startswith("target: ")
    assert {what: number for number, what in report.facts}["of the core time of training everything saved"]
    assert any(text.startswith("Basis: replay of its own curves, ") for text in report.costs)
    assert any("upper bound" in text for text in report.costs)
    assert report.configuration is not None
    assert [row[0] for row in report.configuration.rows] == list(view.trials[trial].config)


def test_every_class_is_shown_with_its_reasons(report: Report, pop: Sequence[ev.Event]) -> None:
    labels = {row[0] for row in report.classes.rows}
    assert {"promising", "poor"} <= labels
    assert all(row[-1] for row in report.classes.rows)
    shown = [row for row in report.classes.rows if row[1]]
    more = sum(int(row[-1].split()[1]) for row in report.classes.rows if not row[1])
    assert len(shown) + more == sum(bool(trial.values) for trial in fold(pop).trials)


def test_the_page_is_whole_and_asks_nothing_of_the_network(html: str) -> None:
    page = Page(html)
    assert not [value for name, value in page.attributes if name in ("src", "href", "action", "data")]
    assert page.tags.count("figure") >= 7
    assert "default-src 'none'" in html
    assert html.count("Plotly.newPlot(") >= 7


def test_names_of_a_study_are_text_on_the_page(html: str) -> None:
    page = Page(html)
    assert f"made up & {EVIL}" in page.text
    assert f"plain, {EVIL}" in page.text
    assert EVIL not in html
    assert "<script>alert" not in html


def test_names_of_a_study_are_text_in_markdown(report: Report) -> None:
    text = markdown_of(report)
    assert "<script>" not in re.sub(r"\\<", "", text)
    assert "made up \\& \\<script\\>alert('x')\\</script\\>" in text
    for line in text.splitlines():  # every table is a table: the same number of cells in its rows
        if line.startswith("|"):
            assert line.endswith(" |")


def test_tables_of_markdown_have_rows_of_one_width(report: Report) -> None:
    for block in markdown_of(report).split("\n\n"):
        if block.startswith("|"):
            widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
            assert len(widths) == 1


def test_images_of_markdown_are_those_that_are_there(report: Report) -> None:
    text = markdown_of(report, {"map": "r.plots/map.png"})
    assert "![map](r.plots/map.png)" in text
    assert text.count("](") == 1
    assert "![" not in markdown_of(report)


@pytest.mark.parametrize("share", [0.02, 0.2, 0.7])
def test_a_report_can_be_made_at_any_moment(pop: Sequence[ev.Event], share: float) -> None:
    report = report_of(pop[: max(2, int(share * len(pop)))], STORAGE)
    assert report.outcome == "running: the study has not ended"
    assert markdown_of(report).startswith("# made up")


def test_a_study_without_a_report_of_its_own_metric(pop: Sequence[ev.Event]) -> None:
    report = report_of(pop[:2], STORAGE)
    assert report.best == ("No trial has reported a finite value of accuracy.",)
    assert (report.configuration, report.plots) == (None, ())


def test_no_study_no_report() -> None:
    with pytest.raises(CallerError, match="holds no study"):
        report_of([], STORAGE)


def test_noise_is_measured_about_the_trend() -> None:
    assert noise_of([0.1 * step for step in range(20)]) == pytest.approx(0.0, abs=1e-9)
    zigzag = [0.5 + 0.01 * (-1) ** step for step in range(40)]
    assert noise_of(zigzag) == pytest.approx(0.01 * (16 / 6) ** 0.5)
    assert noise_of([0.1, 0.2, 0.3]) is None


# --- notebooks ---------------------------------------------------------------------------------------------------


def test_a_result_shows_itself_in_a_notebook(pop: Sequence[ev.Event]) -> None:
    result = result_of(fold(pop), STORAGE, STORAGE.with_suffix(".runs"))
    page = Page(result._repr_html_())
    assert f"made up & {EVIL}" in page.text
    assert "script" not in page.tags
    assert page.tags.count("svg") == 1
    assert page.tags.count("tr") == 11
    assert "and 30 more" in page.text
    assert len(result_html(result)) < 60_000


def test_a_result_without_points_shows_itself(pop: Sequence[ev.Event]) -> None:
    page = Page(result_html(result_of(fold(pop[:2]), STORAGE, STORAGE)))
    assert "no result yet" in page.text
    assert "svg" not in page.tags


def test_a_study_shows_what_it_will_search(tmp_path: Path) -> None:
    storage = tmp_path / "new.db"
    study = fs.Study("train.py:train", space=SPACE, goal=fs.maximize("accuracy", trials=3), storage=storage)
    page = Page(study._repr_html_())
    assert "not started" in page.text
    assert "0.0001 to 1" in page.text
    assert EVIL in page.text
    assert study_html(study.spec, storage) == study._repr_html_()


def test_a_notebook_needs_no_plotly() -> None:
    code = (
        "import sys; sys.modules['plotly'] = None\n"
        "import foresail as fs\n"
        "from foresail.api import notebook\n"
        "s = fs.Study('a.py:f', space=fs.Space(x=fs.Float(0, 1)), goal=fs.maximize('a', trials=1), storage='no.db')\n"
        "print(s._repr_html_())"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "maximize a" in ran.stdout
