"""Who may ask. Only a browser on this machine that was given the token, and only by pages of our own.

Rules, each refused with its reason before anything of the study is read:
* only GET and HEAD: there is nothing that a request could change;
* the Host header names this machine: another name that was made to point here (DNS rebinding) is refused;
* what another site's page asks for is refused, whatever cookie comes with it;
* the token of the printed address, once; then the cookie that it was traded for, which no script can read and which the
  browser sends with requests of our own page alone.
"""

from __future__ import annotations

import secrets
from http import HTTPStatus

from starlette.datastructures import URL, Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOSTS = frozenset(("localhost", "127.0.0.1", "[::1]"))
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Guard:
    """Lets a request through to `app`, or refuses it."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope)
        response: ASGIApp = refusal(request) or self._entrance(request) or self._app
        await response(scope, receive, _with_headers(send))

    def _entrance(self, request: Request) -> Response | None:
        """Trade the token for the cookie; None for a request that comes with the cookie."""
        name = f"foresail-{request.url.port or 80}"
        given = request.query_params.get("token")
        if given is not None and self._is_token(given):
            response = RedirectResponse(URL(request.url.path).path, HTTPStatus.SEE_OTHER)
            response.set_cookie(name, self._token, httponly=True, samesite="strict", path="/")
            return response
        if given is None and self._is_token(request.cookies.get(name, "")):
            return None
        return _refuse(HTTPStatus.UNAUTHORIZED, "open the address that `foresail serve` printed, with its token")

    def _is_token(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self._token.encode())


def refusal(request: Request) -> Response | None:
    """What speaks against a request, whoever makes it."""
    headers = request.headers
    if request.method not in ("GET", "HEAD"):
        return _refuse(HTTPStatus.METHOD_NOT_ALLOWED, "the page only shows", {"Allow": "GET, HEAD"})
    if host_of(headers) not in HOSTS:
        return _refuse(HTTPStatus.MISDIRECTED_REQUEST, "this server answers to localhost alone")
    origin = headers.get("origin")
    if origin is not None and origin != f"http://{headers['host']}":
        return _refuse(HTTPStatus.FORBIDDEN, "another site's page may not ask")
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        return _refuse(HTTPStatus.FORBIDDEN, "another site's page may not ask; copy the address into the address bar")
    return None


def host_of(headers: Headers) -> str:
    """The Host header without its port, which a tunnel may change; empty where it is not a single name."""
    hosts = headers.getlist("host")
    if len(hosts) != 1:
        return ""
    name, colon, port = hosts[0].lower().rpartition(":")
    if colon and not port.isdigit():
        return hosts[0].lower() if hosts[0].endswith("]") else ""
    return name if colon else hosts[0].lower()


def _refuse(status: HTTPStatus, why: str, headers: dict[str, str] | None = None) -> Response:
    return PlainTextResponse(f"refused: {why}\n", status, headers)


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.update(HEADERS)
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return sent
