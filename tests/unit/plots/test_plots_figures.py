"""Figures: each is drawn from its data, escapes what users name, and is saved without asking the network."""

from __future__ import annotations

import json
import re
import shutil
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from studies import EVIL

from foresail.core import events as ev
from foresail.errors import CallerError, HostError, MissingExtraError
from foresail.plots import (
    Chronicle,
    Foreseen,
    best_so_far,
    calibration,
    foresee,
    gantt,
    importance,
    learning_curves,
    parallel_coordinates,
    potential_map,
    step_speeds,
)
from foresail.plots.palette import LOOKS, look_of
from foresail.plots.picture import Picture, log_axis

pytest.importorskip("plotly")


@pytest.fixture(scope="module")
def pictures(chronicle: Chronicle, foreseen: Foreseen) -> dict[str, Picture]:
    return {
        "curves": learning_curves(chronicle, foreseen),
        "map": potential_map(chronicle, foreseen),
        "gantt": gantt(chronicle),
        "best": best_so_far(chronicle),
        "coordinates": parallel_coordinates(chronicle, foreseen),
        "importance": importance(chronicle, foreseen),
        "speeds": step_speeds(chronicle),
        "calibration": calibration(chronicle, foreseen),
    }


NAMES = ["curves", "map", "gantt", "best", "coordinates", "importance", "speeds", "calibration"]


@pytest.mark.parametrize("name", NAMES)
def test_each_is_drawn_and_names_nothing_that_could_run(name: str, pictures: dict[str, Picture]) -> None:
    figure = pictures[name].figure()
    assert len(figure.data) > 0
    assert figure.layout.title.text
    html = figure.to_html(full_html=False, include_plotlyjs=False)
    assert "<script>alert" not in html
    texts = json.dumps(json.loads(figure.to_json())["layout"])
    assert EVIL not in texts  # as markup of Plotly's own; it stands there escaped


def test_every_trial_is_somewhere_on_the_map(pictures: dict[str, Any]) -> None:
    figure = pictures["map"].figure()
    drawn = [row[0] for trace in figure.data if trace.customdata is not None for row in trace.customdata]
    assert sorted(drawn) == [spot.trial for spot in pictures["map"].spots]


def test_classes_are_told_by_colour_and_by_symbol() -> None:
    assert len({look.colour for look in LOOKS}) == len({look.symbol for look in LOOKS}) == len(LOOKS)
    assert len({look.pattern for look in LOOKS}) == len(LOOKS)
    assert look_of("promising").name == "promising"
    assert look_of(None).name == "not classified"


def test_what_has_no_knob_passes_below_its_axis(pictures: dict[str, Any]) -> None:
    data = pictures["coordinates"]
    lowest = min(y for trace in data.figure().data for y in trace.y if y is not None)
    assert (lowest < 0.0) == any(None in axis.at for axis in data.axes)


def test_pictures_of_a_study_that_has_just_begun_are_drawn(pop: Sequence[ev.Event]) -> None:
    first = next(at for at, event in enumerate(pop) if isinstance(event, ev.PointReported))
    chronicle = Chronicle.of(pop[: first + 1])
    foreseen = foresee(chronicle.view)
    assert foreseen is not None
    for picture in (
        learning_curves(chronicle, foreseen),
        potential_map(chronicle, foreseen),
        gantt(chronicle),
        best_so_far(chronicle),
        parallel_coordinates(chronicle, foreseen),
        importance(chronicle, foreseen),
        step_speeds(chronicle),
        calibration(chronicle, foreseen),
    ):
        picture.figure()
    nothing = Chronicle.of(pop[:2])
    for empty in (learning_curves(nothing), gantt(nothing), best_so_far(nothing), step_speeds(nothing)):
        empty.figure()


@pytest.mark.parametrize(
    ("values", "ticks"), [([0.5, 40.0], (0.5, 1.0, 2.0, 5.0, 10.0, 20.0)), ([1e-6, 1e6], (1e-6, 1.0, 1e6))]
)
def test_ticks_of_a_logarithmic_axis_are_round(values: list[float], ticks: tuple[float, ...]) -> None:
    axis = log_axis(values)
    assert axis["type"] == "log"
    assert set(ticks) <= set(axis["tickvals"])
    assert sum(values[0] <= tick <= values[-1] for tick in axis["tickvals"]) <= 14


def test_an_axis_of_nearly_one_value_is_linear() -> None:
    assert log_axis([1.0, 1.5])["type"] == "linear"
    assert log_axis([])["type"] == "log"


# --- files -------------------------------------------------------------------------------------------------------


def test_html_asks_nothing_of_the_network(tmp_path: Path, pictures: dict[str, Picture]) -> None:
    pictures["best"].save(tmp_path / "best.html")
    html = (tmp_path / "best.html").read_text(encoding="utf-8")
    assert "Plotly.newPlot" in html
    assert re.findall(r"""<(?:script|link|img|iframe)[^>]+(?:src|href)=["'][^"']*["']""", html) == []


def test_an_ending_that_tells_no_format(tmp_path: Path, pictures: dict[str, Picture]) -> None:
    with pytest.raises(CallerError, match=r"did you mean 'png'"):
        pictures["best"].save(tmp_path / "best.pgn")


def test_without_plotly_the_error_names_the_extra(
    tmp_path: Path, pictures: dict[str, Picture], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'foresail\[plotly\]'"):
        pictures["best"].save(tmp_path / "best.html")
    assert "BestSoFar" in pictures["best"]._repr_mimebundle_()["text/plain"]


def test_without_kaleido_the_error_names_the_extra(
    tmp_path: Path, pictures: dict[str, Picture], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "kaleido", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'foresail\[image\]'"):
        pictures["best"].save(tmp_path / "best.png")


@pytest.mark.slow
@pytest.mark.parametrize("form", ["png", "svg"])
def test_images(tmp_path: Path, form: str, pictures: dict[str, Picture]) -> None:
    pytest.importorskip("kaleido")
    if not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))):
        pytest.skip("no browser to draw with")
    file = tmp_path / f"map.{form}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Kaleido's own libraries
        pictures["map"].save(file, width=700)
    start = file.read_bytes()[:8]
    assert start == b"\x89PNG\r\n\x1a\n" if form == "png" else start.startswith(b"<svg")


def test_a_browser_that_fails_is_the_hosts_fault(
    tmp_path: Path, pictures: dict[str, Picture], monkeypatch: pytest.MonkeyPatch
) -> None:
    kaleido = pytest.importorskip("kaleido")

    def fail(*_: object, **__: object) -> bytes:
        raise RuntimeError("no browser")

    monkeypatch.setattr(kaleido, "calc_fig_sync", fail)
    with pytest.raises(HostError, match="install Chrome or Chromium"):
        pictures["best"].save(tmp_path / "best.png")
    assert not (tmp_path / "best.png").exists()
