"""Who is refused, and what every answer forbids the browser."""

from __future__ import annotations

from http.cookies import SimpleCookie

import pytest
from starlette.testclient import TestClient
from visitor import HERE, TOKEN

PATHS = ("/", "/static-0/page.js", "/changes?since=0", "/trial/0", "/panel/forecasts", "/nowhere")


@pytest.mark.parametrize("path", PATHS)
def test_without_the_token_nothing_is_shown(stranger: TestClient, path: str) -> None:
    answer = stranger.get(path)
    assert answer.status_code == 401
    assert "digits" not in answer.text


@pytest.mark.parametrize("token", ["wrong", "", TOKEN[:-1], TOKEN + "x", "tökén", "a-token%00"])
def test_a_wrong_token_opens_nothing(stranger: TestClient, token: str) -> None:
    answer = stranger.get("/", params={"token": token})
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


def test_a_wrong_token_is_refused_even_with_the_cookie(client: TestClient) -> None:
    assert client.get("/?token=wrong").status_code == 401


def test_the_token_is_traded_for_a_cookie_that_no_script_and_no_other_site_can_use(stranger: TestClient) -> None:
    answer = stranger.get(f"/?token={TOKEN}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = next(iter(SimpleCookie(answer.headers["set-cookie"]).values()))
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "strict", "/")
    assert stranger.get("/").status_code == 200


def test_a_wrong_cookie_opens_nothing(stranger: TestClient) -> None:
    stranger.cookies.set("foresail-8321", "wrong")
    assert stranger.get("/changes").status_code == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:8321", "localhost@evil.example", "", "0.0.0.0"]
)
def test_another_name_for_this_machine_is_refused(client: TestClient, host: str) -> None:
    assert client.get("/changes", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost:8321", "127.0.0.1:8321", "[::1]:8321", "LOCALHOST:8321"])
def test_this_machine_has_several_names(client: TestClient, host: str) -> None:
    cookie = {"cookie": f"foresail-8321={TOKEN}"}
    assert client.get("/changes", headers={"host": host} | cookie).status_code == 200


def test_two_hosts_are_one_too_many(client: TestClient) -> None:
    headers = [("host", "localhost:8321"), ("host", "evil.example")]
    assert client.get("/changes", headers=headers).status_code in (400, 421)


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
def test_what_another_site_asks_for_is_refused_in_spite_of_the_cookie(client: TestClient, site: str) -> None:
    assert client.get("/changes", headers={"sec-fetch-site": site}).status_code == 403
    assert client.get(f"/?token={TOKEN}", headers={"sec-fetch-site": site}).status_code == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:8321", "http://127.0.0.1:1"])
def test_another_origin_is_refused(client: TestClient, origin: str) -> None:
    assert client.get("/changes", headers={"origin": origin}).status_code == 403


def test_a_page_of_our_own_may_ask(client: TestClient) -> None:
    headers = {"origin": HERE, "sec-fetch-site": "same-origin"}
    assert client.get("/changes", headers=headers).status_code == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"])
def test_there_is_nothing_to_change(client: TestClient, method: str) -> None:
    assert client.request(method, "/changes").status_code == 405


def test_head_is_get_without_a_body(client: TestClient) -> None:
    answer = client.head("/changes")
    assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/../server.py",
        "/%2e%2e/server.py",
        "/..%2fserver.py",
        "/page.js/../server.py",
        "/page/server.py",
        "/etc/passwd",
        "//etc/passwd",
        "/trial/..%2f..%2fetc%2fpasswd",
        "/trial/-1",
        "/trial/1e9",
        "/trial/99999",
        "/panel/../server.py",
        "/panel/__class__",
        "/static-0/page.js",
    ],
)
def test_no_path_leads_to_a_file(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert "root:" not in answer.text
    assert "import " not in answer.text


@pytest.mark.parametrize("path", ["/", "/changes", "/nowhere", "/trial/0"])
def test_every_answer_forbids_what_the_page_does_not_need(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    rules = dict(rule.strip().split(" ", 1) for rule in headers["content-security-policy"].split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == rules["connect-src"] == "'self'"
    assert rules["frame-ancestors"] == "'none'"
    assert not any("http" in rule or "*" in rule or "unsafe" in rule for rule in rules.values())
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "access-control-allow-origin" not in headers


def test_a_refusal_forbids_it_too(stranger: TestClient) -> None:
    assert "default-src 'none'" in stranger.get("/").headers["content-security-policy"]
