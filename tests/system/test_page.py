"""The page in a real browser: every picture, the slider, the filter, the story, dark, narrow, hostile text.

Skipped where there is no Chromium: `apt-get install chromium`, or name it in CHROMIUM.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from foresail.core import events as ev
from foresail.stores.sqlite import SqliteStore
from foresail.testing.page import HOSTILE, hostile_study, one_study

sync_api = pytest.importorskip("playwright.sync_api", reason="needs Playwright's package: pip install playwright")
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium, or name it in CHROMIUM"),
]
PAINTED = ("curves", "map", "gantt", "bests", "coordinates", "importance", "speeds")
COMPUTED = ("map", "importance", "speeds", "calibration")
ALL = ("curves", "map", "gantt", "bests", "coordinates", "importance", "speeds", "calibration", "table")
WAIT_MS = 60_000
MOVE_SLIDER = """(n) => {
    const slider = document.getElementById("slider");
    slider.value = n;
    slider.dispatchEvent(new Event("input"));
}"""

Open = Callable[..., Any]


class Serving:
    """`foresail serve`, as a person starts it."""

    def __init__(self, storage: Path) -> None:
        command = [sys.executable, "-m", "foresail", "serve", str(storage), "--json"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.address = json.loads("".join(self.process.stdout.readline() for _ in range(3)))["address"]

    def close(self) -> tuple[int, str]:
        """As by Ctrl-C: the exit code, and what it said on stderr. Once is enough."""
        if self.process.returncode is not None:
            return self.process.returncode, ""
        self.process.send_signal(signal.SIGINT)
        _, said = self.process.communicate(timeout=60)
        return self.process.returncode, said


def stored(path: Path, events: list[ev.Event]) -> Path:
    with SqliteStore.open(path) as store:
        store.append(events)
    return path


@pytest.fixture(scope="module")
def log() -> list[ev.Event]:
    return one_study()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, log: list[ev.Event]) -> Iterator[str]:
    serving = Serving(stored(tmp_path_factory.mktemp("page") / "digits.db", log))
    yield serving.address
    code, said = serving.close()
    assert (code, said) == (0, "")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def serve() -> Iterator[Callable[[Path, list[ev.Event]], Serving]]:
    """Serves a log; ended after the pages are closed."""
    started: list[Serving] = []

    def start(path: Path, events: list[ev.Event]) -> Serving:
        started.append(Serving(stored(path, events)))
        return started[-1]

    yield start
    for serving in started:
        serving.close()


@pytest.fixture
def opened(browser: Any, serve: Any) -> Iterator[Open]:
    """Opens an address and waits for the first pictures; at the end nothing may have gone wrong on any page."""
    faults: list[str] = []
    contexts: list[Any] = []

    def open_page(address: str, *, width: int = 1440, height: int = 900, scheme: str = "light") -> Any:
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(WAIT_MS)
        page.on("console", lambda m: faults.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", lambda dialog: faults.append(dialog.message))
        page.on("request", lambda r: None if r.url.startswith("http://127.0.0.1:") else faults.append(r.url))
        page.goto(address)
        page.wait_for_selector("#curves[data-drawn]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert faults == []


def number_of_inked(page: Any, panel: str) -> int:
    count: int = page.evaluate(
        """(id) => {
            const canvas = document.querySelector(`#${id} canvas`);
            const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
            let n = 0;
            for (let i = 3; i < pixels.length; i += 4) n += pixels[i] > 0;
            return n;
        }""",
        panel,
    )
    return count


def text(page: Any, selector: str) -> str:
    found: str = page.locator(selector).inner_text()
    return found


def test_every_picture_is_drawn_and_nothing_is_asked_of_others(opened: Open, address: str, log: list[ev.Event]) -> None:
    page = opened(address, height=2600)
    assert "token" not in page.url
    for panel in ALL:
        page.wait_for_selector(f'#{panel}[data-drawn="{len(log)}"]')
    for panel in COMPUTED:
        page.wait_for_selector(f"#{panel}[data-computed]")
    page.wait_for_selector("#calibration[data-drawn] .note:not(:empty), #calibration .empty:not(:empty)")
    assert all(number_of_inked(page, panel) > 500 for panel in PAINTED)
    notes = {panel: text(page, f"#{panel} .note") for panel in ALL if panel != "table"}
    assert not any("cannot be computed" in note for note in notes.values())
    assert page.evaluate("() => foresail.pictures.importance.hits.length") == 5
    assert page.evaluate("() => foresail.pictures.bests.hits.length") > 2
    assert page.locator("#table tbody tr").count() == 20


def test_one_glance(opened: Open, address: str) -> None:
    page = opened(address)
    page.wait_for_selector("#map[data-computed]")
    study = page.evaluate("() => foresail.state.study")
    assert text(page, "#best") == f"{study['best'][2]:.5g}"
    assert "0.985" in text(page, "#best-of")
    assert text(page, "#state").startswith("ended")
    assert f"{study['trials']} of 20 trials" in text(page, "#trial-count")
    shown = [int(count) for count in page.locator(".class h3 b").all_inner_texts()]
    assert shown == study["labels"]
    assert page.locator("#goal-bar").get_attribute("aria-valuenow") is not None
    assert "left" in text(page, "#time-note") or text(page, "#time-note") == ""


def test_any_past_moment(opened: Open, address: str, log: list[ev.Event]) -> None:
    page = opened(address)
    for event in (200, 60, 140):
        page.evaluate(MOVE_SLIDER, event)
        page.wait_for_selector(f'html[data-drawn="{event}"]', state="attached")
        proposed = sum(isinstance(e, ev.TrialProposed) for e in log[:event])
        assert page.evaluate("() => foresail.state.trials.length") == proposed
        assert text(page, "#when").endswith(f"event {event} of {len(log)}")
        assert text(page, "#state") == "the past"
    page.wait_for_selector('#map[data-computed="140"]')
    page.keyboard.press("n")
    page.wait_for_selector(f'html[data-drawn="{len(log)}"]', state="attached")
    assert not page.locator("#now").is_visible()


def test_increments_make_what_a_fresh_page_has(opened: Open, serve: Any, tmp_path: Path, log: list[ev.Event]) -> None:
    dump = """() => {
        const { trials, lives, bests, study, event } = foresail.state;
        return JSON.stringify([trials, [...lives], bests, study, event]);
    }"""
    storage = tmp_path / "grows.db"
    page = opened(serve(storage, log[:100]).address)
    with SqliteStore.open(storage) as store:
        for start, end in ((100, 101), (101, 180), (180, 400), (400, len(log))):
            store.append(log[start:end])
            page.wait_for_selector(f'html[data-drawn="{end}"]', state="attached")
    grown = page.evaluate(dump)
    page.reload()
    page.wait_for_selector(f'html[data-drawn="{len(log)}"]', state="attached")
    assert page.evaluate(dump) == grown


def test_filters_by_class_by_text_and_by_range(opened: Open, address: str) -> None:
    page = opened(address, height=2600)
    page.wait_for_selector("#table[data-drawn]")
    page.fill("#words", "lr<0.01 adam")
    wanted = page.evaluate(
        "() => foresail.state.trials.filter((t) => t.config[0][1] < 0.01 && t.config[4][1] === 'adam').length"
    )
    assert 0 < wanted < 20
    page.wait_for_selector(f"#shown:text-is('{wanted} of 20 trials')")
    page.wait_for_selector(f"#table tbody tr:nth-child({wanted})")
    assert page.locator("#table tbody tr").count() == wanted
    page.fill("#words", "")
    page.click('#class-filter [data-class="poor"]')
    poor = page.evaluate("() => foresail.state.trials.filter((t) => foresail.classOf(t) === 'poor').length")
    page.wait_for_selector(f"#shown:text-is('{20 - poor} of 20 trials')")
    page.click('#class-filter [data-class="poor"]')
    page.fill("#words", "nothing-like-this")
    page.wait_for_selector("#curves .empty:text('no trial passes the filter')")
    page.fill("#words", "")
    _brush(page)
    page.wait_for_selector("#shown:text('ranges chosen')")
    shown = page.evaluate("() => foresail.ui.shown.every((t) => t.unit[0] >= 0.5) && foresail.ui.shown.length")
    assert 0 < shown < 20
    page.keyboard.press("Escape")
    page.wait_for_selector("#shown:empty", state="attached")


def _brush(page: Any) -> None:
    """The upper half of the first axis."""
    page.locator("#coordinates").scroll_into_view_if_needed()
    page.wait_for_selector("#coordinates[data-drawn]")
    box = page.locator("#coordinates canvas").bounding_box()
    at = page.evaluate("() => { const { x, y } = foresail.pictures.coordinates.places; return [x(0), y(1), y(0.5)]; }")
    page.mouse.move(box["x"] + at[0], box["y"] + at[1])
    page.mouse.down()
    page.mouse.move(box["x"] + at[0], box["y"] + at[2], steps=4)
    page.mouse.up()


def test_a_trial_tells_its_story(opened: Open, address: str) -> None:
    page = opened(address, height=2600)
    page.click('#table tbody tr[data-trial="0"]')
    page.wait_for_selector("#story .chapters li")
    assert text(page, "#story-title") == "trial 0"
    assert text(page, "#story .why")
    assert any("decision" in line for line in page.locator("#story .chapters li").all_inner_texts())
    page.keyboard.press("Escape")
    assert not page.locator("#story").is_visible()


@pytest.mark.parametrize("panel", ["curves", "map", "gantt"])
def test_a_trial_is_picked_from_a_picture(opened: Open, address: str, panel: str) -> None:
    page = opened(address, height=2600)
    page.wait_for_selector("#map[data-computed]")
    page.wait_for_selector(f"#{panel}[data-drawn]")
    box = page.locator(f"#{panel} .plot").bounding_box()
    trial, x, y = page.evaluate(
        """(id) => {
            const hit = foresail.pictures[id].hits.at(-1);
            return hit.box ? [hit.trial, (hit.box[0] + hit.box[2]) / 2, (hit.box[1] + hit.box[3]) / 2]
                : [hit.trial, hit.xs.at(-1), hit.ys.at(-1)];
        }""",
        panel,
    )
    page.mouse.move(box["x"] + x, box["y"] + y)
    page.wait_for_selector(f"#tip:has-text('trial {trial}')")
    page.mouse.click(box["x"] + x, box["y"] + y)
    page.wait_for_selector(f"#story-title:text-is('trial {trial}')")


def test_a_drag_zooms_and_a_double_click_goes_back(opened: Open, address: str) -> None:
    page = opened(address)
    box = page.locator("#curves .plot").bounding_box()
    ranges = "() => { const { xRange, yRange } = foresail.pictures.curves.scale; return [...xRange, ...yRange]; }"
    first = page.evaluate(ranges)
    page.mouse.move(box["x"] + 200, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 300, box["y"] + 220, steps=4)
    page.mouse.up()
    page.wait_for_function("() => foresail.pictures.curves.zoom !== null")
    page.wait_for_function("() => !foresail.pictures.curves.dirty")
    low, high, bottom, top = page.evaluate(ranges)
    assert first[0] < low < high < first[1]
    assert first[2] < bottom < top < first[3]
    assert not page.locator("#story").is_visible()
    page.mouse.dblclick(box["x"] + 250, box["y"] + 60)
    page.wait_for_function("() => foresail.pictures.curves.zoom === null && !foresail.pictures.curves.dirty")
    assert page.evaluate(ranges) == first


def test_dark_and_light(opened: Open, address: str) -> None:
    page = opened(address, scheme="dark")
    colour = "() => getComputedStyle(document.body).backgroundColor"
    assert page.locator("html").get_attribute("data-theme") == "dark"
    dark = page.evaluate(colour)
    page.keyboard.press("t")
    page.wait_for_selector('html[data-theme="light"]')
    assert page.evaluate(colour) != dark
    page.reload()
    page.wait_for_selector('html[data-theme="light"]')


@pytest.mark.parametrize("width", [360, 768, 1100])
def test_small_screens(opened: Open, address: str, width: int) -> None:
    page = opened(address, width=width, height=800)
    assert page.evaluate("() => document.scrollingElement.scrollWidth") <= width
    box = page.locator("#curves .plot").bounding_box()
    assert box["width"] > 0.8 * min(width, 700)
    page.click(".chip >> nth=0")
    page.wait_for_selector("#story .chapters li")
    assert page.locator("#story").bounding_box()["width"] <= width


def test_keys_do_all(opened: Open, address: str) -> None:
    page = opened(address, height=2600)
    page.wait_for_selector("#table[data-drawn]")
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    assert page.evaluate("() => document.activeElement.id") == "words"
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.wait_for_selector("#story .chapters li")
    first = text(page, "#story-title")
    page.keyboard.press("j")
    page.wait_for_selector(f"#story-title:not(:text-is('{first}'))")
    page.keyboard.press("Escape")
    page.keyboard.press("[")
    page.wait_for_selector("body.past")


def test_hostile_text_is_shown_as_text(opened: Open, serve: Any, tmp_path: Path) -> None:
    page = opened(serve(tmp_path / "hostile.db", hostile_study()).address, height=2600)
    page.wait_for_selector("#coordinates[data-drawn]")
    assert text(page, "#name") == HOSTILE
    page.click('#table tbody tr[data-trial="0"]')
    page.wait_for_selector("#story .chapters li")
    assert HOSTILE in text(page, "#story-body")
    page.keyboard.press("Escape")
    page.locator("#gantt .plot").hover()
    assert page.title() != "taken"
    assert page.locator("main script, main img, aside script, aside img").count() == 0


def test_a_server_that_is_gone_is_told(browser: Any, serve: Any, tmp_path: Path, log: list[ev.Event]) -> None:
    serving = serve(tmp_path / "gone.db", log[:50])
    page = browser.new_page()
    page.set_default_timeout(WAIT_MS)
    page.goto(serving.address)
    page.wait_for_selector("#curves[data-drawn]")
    assert serving.close()[0] == 0
    page.wait_for_selector("#trouble:text('foresail serve')")
    page.close()
