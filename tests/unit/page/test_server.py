"""What is asked of the server, and what it answers."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient
from visitor import HERE, TOKEN

from foresail.api.story import happenings, story_of
from foresail.cli.main import main
from foresail.core import events as ev
from foresail.core.view import fold
from foresail.errors import CallerError
from foresail.page import server
from foresail.page.server import Served, application
from foresail.plots.palette import LOOKS
from foresail.stores.sqlite import SqliteStore
from foresail.testing.page import HOSTILE, hostile_study


def rows(answer: Any) -> list[list[Any]]:
    found: list[list[Any]] = answer.json()["trials"]
    return found


def test_the_first_answer_is_everything(client: TestClient, log: list[ev.Event]) -> None:
    first = client.get("/changes?since=0").json()
    assert (first["since"], first["event"], first["last"]) == (0, len(log), len(log))
    assert first["about"]["name"] == "digits"
    assert [axis["name"] for axis in first["about"]["axes"]] == ["lr", "momentum", "width", "dropout", "optimizer"]
    assert len(first["trials"]) == first["study"]["trials"] == len(first["configs"])
    assert first["study"]["best"] == list(fold(log).best or ())
    assert sum(first["study"]["labels"]) > 0


def test_what_is_new_is_all_that_comes_after(client: TestClient, served: Served, log: list[ev.Event]) -> None:
    assert rows(client.get(f"/changes?since={len(log)}")) == []
    since = len(log) - 40
    later = client.get(f"/changes?since={since}")
    touched = {e.attempt.split("-")[0] for e in log[since:] if isinstance(e, ev.PointReported)}
    assert touched <= {str(row[0]) for row in rows(later)}
    assert len(later.content) < len(client.get("/changes").content) / 3
    assert later.json()["about"] is None


def test_a_log_that_grows_is_followed(tmp_path: Path, log: list[ev.Event]) -> None:
    path = tmp_path / "grows.db"
    with SqliteStore.open(path) as store:
        store.append(log[:200])
        served = Served(path)
        client = TestClient(application(served, TOKEN), base_url=HERE)
        client.get(f"/?token={TOKEN}")
        assert client.get("/changes").json()["last"] == 200
        store.append(log[200:210])
        assert client.get("/changes?since=200").json()["event"] == 210
        served.close()


def test_a_past_moment_knows_nothing_of_what_came_after(client: TestClient, log: list[ev.Event]) -> None:
    then = client.get("/changes?since=0&until=50").json()
    assert (then["event"], then["last"]) == (50, len(log))
    assert then["study"]["trials"] == sum(isinstance(e, ev.TrialProposed) for e in log[:50])
    assert not then["study"]["is_over"]


@pytest.mark.parametrize(
    "query", ["since=-1", "since=x", "since=1.5", "since=", "until=9" * 1 + "9" * 40, "since=%C2%B2"]
)
def test_what_is_no_number_is_refused_with_a_reason(client: TestClient, query: str) -> None:
    answer = client.get(f"/changes?{query}")
    assert answer.status_code == 404
    assert "whole number" in answer.json()["error"]["allowed"]


def test_a_story_has_its_reasons(client: TestClient) -> None:
    story = client.get("/trial/0").json()
    texts = [text for _, _, text in story["chapters"]]
    assert texts[0].startswith("proposed by")
    assert any(text.startswith("decision ") for text in texts)
    assert any(text.startswith("steps ") for text in texts)
    assert story["why"]


def test_a_story_is_that_of_the_whole_log_and_reads_little_of_it(
    client: TestClient, served: Served, storage: Path, log: list[ev.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    client.get("/changes")
    read: list[int] = []
    read_some = served._store.read_some
    monkeypatch.setattr(served._store, "read_some", lambda numbers: read.extend(numbers) or read_some(numbers))
    for number in range(len(fold(log).trials)):
        whole = story_of(log, number, storage, storage.parent)
        told = happenings(whole.chapters, whole.points, whole.metric)
        assert client.get(f"/trial/{number}").json()["chapters"] == [list(chapter) for chapter in told]
    assert len(read) < 2 * len(log)


def test_a_long_log_is_read_while_the_page_is_told_how_far_it_is(
    storage: Path, log: list[ev.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    read = SqliteStore.read

    def slowly(store: SqliteStore, after: int = 0) -> Iterator[tuple[int, ev.Event]]:
        yield from islice(read(store, after), 100)
        go_on.wait(60)

    monkeypatch.setattr(server, "PATIENCE_S", 0.0)
    monkeypatch.setattr(SqliteStore, "read", slowly)
    served = Served(storage)
    try:
        client = TestClient(application(served, TOKEN), base_url=HERE)
        client.get(f"/?token={TOKEN}")
        assert 0.0 <= client.get("/changes?since=0").json()["read_frac"] < 1.0
        monkeypatch.setattr(SqliteStore, "read", read)
        go_on.set()
        served._reader.join()
        assert client.get("/changes?since=0").json()["event"] == len(log)
    finally:
        go_on.set()
        served.close()


def test_a_log_that_is_damaged_further_on_is_told_to_the_page(tmp_path: Path, log: list[ev.Event]) -> None:
    path = tmp_path / "damaged.db"
    with SqliteStore.open(path) as store:
        store.append(log[:50])
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE event SET body = 'x' WHERE seq = 40")
    connection.close()
    served = Served(path)
    client = TestClient(application(served, TOKEN), base_url=HERE)
    client.get(f"/?token={TOKEN}")
    answer = client.get("/changes")
    assert answer.status_code == 503
    assert "row 40" in answer.json()["error"]["what"]
    served.close()


def test_a_story_ends_at_the_moment_that_is_looked_at(client: TestClient) -> None:
    assert len(client.get("/trial/0?until=30").json()["chapters"]) < len(client.get("/trial/0").json()["chapters"])


def test_the_panels_are_computed_for_now_and_for_the_past(client: TestClient, log: list[ev.Event]) -> None:
    now, then = (client.get(f"/panel/forecasts{query}").json() for query in ("", "?until=150"))
    assert (now["events"], then["events"]) == (len(log), 150)
    assert len(now["spots"]) > len(then["spots"]) > 0
    assert len(then["bands"]) > 0
    steps, low, *_, high = then["bands"][0][1:]
    assert len(steps) == len(low) == len(high)
    assert all(a <= b for a, b in zip(low, high, strict=True))
    importance = client.get("/panel/importance").json()
    assert {knob["name"] for knob in importance["value"]["knobs"]} == {
        "lr",
        "momentum",
        "width",
        "dropout",
        "optimizer",
    }
    assert len(client.get("/panel/speeds").json()["speeds"]) > 10
    assert "coverage" in client.get("/panel/calibration").json()


def test_a_panel_that_is_not_there_is_named(client: TestClient) -> None:
    answer = client.get("/panel/nothing")
    assert answer.status_code == 404
    assert "forecasts" in answer.json()["error"]["allowed"]


def test_a_log_without_a_study_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    SqliteStore.open(path).close()
    served = Served(path)
    client = TestClient(application(served, TOKEN), base_url=HERE)
    client.get(f"/?token={TOKEN}")
    assert client.get("/changes").json()["about"] is None
    assert client.get("/panel/forecasts").status_code == 404
    served.close()


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    path = tmp_path / "hostile.db"
    with SqliteStore.open(path) as store:
        store.append(hostile_study())
    served = Served(path)
    client = TestClient(application(served, TOKEN), base_url=HERE)
    assert HOSTILE not in client.get(f"/?token={TOKEN}").text
    answer = client.get("/changes")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["about"]["name"] == HOSTILE
    assert answer.json()["points"] == [[0, 1, 0.5, 2, None]]
    served.close()


def test_the_page_never_makes_html_of_text() -> None:
    scripts = {name: body.decode() for name, body in server._static().items() if name.endswith(".js")}
    assert "page.js" in scripts
    for name, script in scripts.items():
        for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "http"):
            assert way not in script, name


def test_the_parts_of_the_page_stay_in_the_cache_under_a_name_of_their_content(client: TestClient) -> None:
    names = re.findall(r'"(/static-[0-9a-f]{16}/[a-z]+\.[a-z]+)"', client.get("/").text)
    assert len(names) > 20
    for name in names:
        answer = client.get(name)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
    folder = names[0].rsplit("/", 1)[0]
    scripts = [name for name in names if name.endswith(".js")]
    for name in scripts:
        for wanted in re.findall(r'from "\./([a-z]+\.js)"', client.get(name).text):
            assert f"{folder}/{wanted}" in scripts
    for other in (f"{folder}/nothing.js", f"{folder}/__init__.py", "/static-0123456789abcdef/page.js"):
        assert client.get(other).status_code == 404
    assert client.get("/changes").headers["cache-control"] == "no-store"


def test_the_page_has_the_colours_and_symbols_of_the_plots() -> None:
    parts = server._static()
    for look in LOOKS:
        assert look.colour.encode() in parts["looks.css"]
        assert look.glyph.encode() in parts["looks.js"]
    assert not re.search(rb"--(promising|opportunistic|poor|none|accent|bad):", parts["page.css"])
    known = set(re.findall(rb'"?([a-z-]+)"?: \(x, y, r\)', parts["pen.js"])) | {b"circle"}
    assert {look.symbol.encode() for look in LOOKS} <= known


def test_it_listens_on_loopback_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with server._listening(None) as listening:
        assert listening.getsockname()[0] == "127.0.0.1"
        taken = listening.getsockname()[1]
        with server._listening(None) as other:
            assert other.getsockname()[1] != taken
        with pytest.raises(CallerError, match=f"port {taken}"):
            server._listening(taken)


def test_a_study_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CallerError, match="there is no study"):
        server.serve(tmp_path / "none.db", ready=lambda address: None)


def test_the_command_teaches_and_names_what_is_not_there(tmp_path: Path) -> None:
    shown = CliRunner().invoke(main, ["serve", "--help"])
    assert shown.exit_code == 0
    assert "ssh -L" in shown.stdout
    missing = CliRunner().invoke(main, ["serve", str(tmp_path / "none.db")])
    assert missing.exit_code == 2
    assert "there is no study at" in missing.stderr
