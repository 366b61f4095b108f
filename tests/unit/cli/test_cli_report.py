"""`foresail report`, and the plots of `foresail replay`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from foresail.core import events as ev

Foresail = Callable[..., Any]


def test_html_is_written_beside_the_storage_by_default(foresail: Foresail, storage: Path) -> None:
    pytest.importorskip("plotly")
    called = foresail("report", storage)
    assert (called.code, called.out) == (0, "")
    text = storage.with_suffix(".html").read_text(encoding="utf-8")
    assert "accuracy = 0.96 by trial 0 at step 4 of 10." in text
    assert "ValueError: no such file" in text
    assert not list(storage.parent.glob("*.part*"))


def test_markdown_needs_no_plotly(
    foresail: Foresail, storage: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    called = foresail("report", storage, "-o", tmp_path / "r.md", "--json")
    assert called.json == {"storage": str(storage), "to": str(tmp_path / "r.md")}
    assert "## What it cost, and what it saved" in (tmp_path / "r.md").read_text(encoding="utf-8")
    called = foresail("report", storage, "-o", tmp_path / "r.html")
    assert called.code == 2
    assert "pip install 'foresail[plotly]'" in called.err
    assert not (tmp_path / "r.html").exists()


def test_what_is_there_is_not_replaced(foresail: Foresail, storage: Path, tmp_path: Path) -> None:
    there = tmp_path / "r.md"
    there.write_text("mine")
    called = foresail("report", storage, "-o", there)
    assert called.code == 2
    assert "is there already" in called.err
    assert there.read_text() == "mine"
    assert foresail("report", storage, "-o", there, "--force").code == 0
    assert there.read_text().startswith("# digits")


def test_endings_and_images_that_cannot_be(foresail: Foresail, storage: Path) -> None:
    assert "allowed: .html, .md" in " ".join(foresail("report", storage, "-o", "r.pdf").err.split())
    assert "--images goes with Markdown" in foresail("report", storage, "--images").err


def test_images_lie_beside_the_markdown(
    foresail: Foresail, storage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("plotly")
    monkeypatch.setattr("foresail.plots.picture._image", lambda *_: b"image")
    assert foresail("report", storage, "-o", tmp_path / "a b.md", "--images").code == 0
    text = (tmp_path / "a b.md").read_text(encoding="utf-8")
    assert "![map](a%20b.plots/map.png)" in text
    assert (tmp_path / "a b.plots" / "map.png").read_bytes() == b"image"


def test_a_comparison_is_drawn(foresail: Foresail, storage: Path, tmp_path: Path, events: list[ev.Event]) -> None:
    pytest.importorskip("plotly")
    page = tmp_path / "compared.html"
    arguments = ("--policy", "random,median", "--seeds", 2, "--workers", 1, "--budget", 1, "--processes", 1)
    called = foresail("replay", storage, *arguments, "--plot", page)
    assert called.code == 0
    text = page.read_text(encoding="utf-8")
    assert "4 replays of 1 trace with 2 seeds, on 1 workers." in text
    assert text.count("Plotly.newPlot(") >= 6


def test_a_comparison_is_refused_before_it_takes_time(foresail: Foresail, storage: Path) -> None:
    called = foresail("replay", storage, "--plot", "compared.png")
    assert called.code == 2
    assert "replays" not in called.err
