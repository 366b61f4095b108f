"""What is asked of the server, and what it answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient
from visitor import HERE, TOKEN

from foresail.cli.main import main
from foresail.core import events as ev
from foresail.core.view import fold
from foresail.errors import CallerError
from foresail.page import server
from foresail.page.server import Served, application
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
    script = server._text("page.js")
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
        assert way not in script
    assert "http" not in script.replace("https://", "").replace("http://", "")


def test_plotly_comes_from_its_package_and_stays_in_the_cache(client: TestClient) -> None:
    page = client.get("/").text
    name = page.split('href="/plotly-')[1].split('"')[0]
    answer = client.get(f"/plotly-{name}")
    assert answer.status_code == 200
    assert "plotly.js" in answer.text[:200]
    assert "immutable" in answer.headers["cache-control"]
    assert client.get("/changes").headers["cache-control"] == "no-store"


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
