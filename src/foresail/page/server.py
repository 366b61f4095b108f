"""The server of the page: what may be asked, and the answers.

    /                       the page; /page.css, /page.js, /plotly-VERSION.js
    /changes?since=n        what changed after event n; &until=m for a past moment, &every=k for thinned curves
    /trial/7?until=m        the story of a trial
    /panel/NAME?until=m     what has to be computed: forecasts, importance, speeds, calibration (`page.foresight`)

It runs in a process of its own and reads the log as any reader does, so the driver does not know of it. Nothing that is
asked is a path of the file system.
"""

from __future__ import annotations

import gzip
import re
import secrets
import socket
import threading
from collections.abc import Callable
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from foresail import __version__
from foresail.api import wording
from foresail.api.recorded import driver_of, folder_of
from foresail.api.story import happenings, story_of
from foresail.errors import CallerError, ForesailError, MissingExtraError
from foresail.page.foresight import PANELS, Foresight
from foresail.page.guard import Guard
from foresail.page.history import LABELS, STATUSES, History
from foresail.stores.sqlite import SqliteStore

PORT = 8321
"""Where the page is, unless that port is taken or another is asked for."""
MOST_POINTS = 40_000
"""Points that a page is sent at first; of longer studies, every n-th step is."""
_PACK_BYTES = 1400
_STYLES = re.compile(rb'getElementById\("([0-9a-f]{64})"\)')
"""Plotly brings the styles of a map library with it, unless an element of this name is there; no map is drawn here."""
_FOREVER = {"Cache-Control": "private, max-age=31536000, immutable"}


class Served:
    """A study that is shown: its history as far as the log goes when somebody asks."""

    def __init__(self, storage: Path) -> None:
        self.storage = storage
        self.history = History()
        self.foresight = Foresight(storage)
        self._store = SqliteStore.open(storage, write=False)
        self._lock = threading.Lock()

    def catch_up(self) -> None:
        """Read what was appended."""
        with self._lock:
            self._catch_up()

    def _catch_up(self) -> None:
        for _, event in self._store.read(self.history.last):
            self.history.note(event)

    def changes(self, since: int, until: int | None, every: int | None) -> dict[str, Any]:
        """What the page asks for all the time. `every` None: as many points as the page can bear."""
        driver = driver_of(self.storage)  # asked before the look: who has left by then, has recorded the end
        with self._lock:
            self._catch_up()
            history = self.history
            if history.last == 0:
                return {"since": 0, "event": 0, "last": 0, "about": None}
            every = every or history.stride(MOST_POINTS)
            changes = history.changes(since, until, every)
            about = self._about(every) if changes.since == 0 else None
        return msgspec.structs.asdict(changes) | {"driver": driver, "about": about}

    def _about(self, every: int) -> dict[str, Any]:
        """What never changes."""
        spec = self.history.view.spec
        return {
            "name": spec.name,
            "storage": self.storage.name,
            "goal": {name: getattr(spec.goal, name) for name in spec.goal.__struct_fields__},
            "goal_text": wording.goal(spec.goal),
            "policy": spec.policy.name,
            "search": spec.search.name,
            "max_steps": spec.max_steps,
            "axes": self.foresight.axes(),
            "statuses": STATUSES,
            "labels": LABELS,
            "every": every,
            "version": __version__,
        }

    def story(self, trial: int, until: int | None) -> dict[str, Any]:
        """A trial in full, from a reading of the log of its own."""
        store = SqliteStore.open(self.storage, write=False)
        try:
            events = [event for number, event in store.read() if until is None or number <= until]
        finally:
            store.close()
        story = story_of(events, trial, self.storage, folder_of(self.storage))
        files = [*story.tracebacks, *story.outputs]
        return {
            "trial": trial,
            "why": story.why,
            "chapters": list(happenings(story)),
            "files": list(dict.fromkeys(files)),
        }

    def close(self) -> None:
        self._store.close()
        self.foresight.close()


def application(served: Served, token: str) -> ASGIApp:
    """The page of a study, for whoever has the token."""
    plotly = f"/plotly-{_plotly_version()}.js"
    names = "".join(
        f'<template id="{name.decode()}"></template>' for name in _STYLES.findall(_plotly_script().read_bytes())
    )
    page = _text("page.html").replace("PLOTLY_SCRIPT", plotly).replace("NO_STYLES", names).encode()

    def changes(request: Request) -> Response:
        asked = (_whole(request, "since", 0), _whole(request, "until"), _whole(request, "every"))
        return _json(request, served.changes(asked[0] or 0, asked[1], asked[2]))

    def story(request: Request) -> Response:
        return _json(request, served.story(request.path_params["trial"], _whole(request, "until")))

    def panel(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in PANELS:
            raise CallerError(f"there is no panel {name!r}", allowed=", ".join(PANELS))
        asked = (_whole(request, "until"), _whole(request, "trial"))
        return _json(request, served.foresight.panel(name, *asked))

    def plotly_script(request: Request) -> Response:
        return FileResponse(_plotly_script(), media_type="text/javascript", headers=_FOREVER)

    routes = [
        Route("/", _fixed(page, "text/html")),
        Route("/page.css", _fixed(_text("page.css").encode(), "text/css")),
        Route("/page.js", _fixed(_text("page.js").encode(), "text/javascript")),
        Route("/icon.svg", _fixed(_text("icon.svg").encode(), "image/svg+xml")),
        Route(plotly, plotly_script),
        Route("/changes", changes),
        Route("/trial/{trial:int}", story),
        Route("/panel/{name}", panel),
    ]
    return Guard(Starlette(routes=routes, exception_handlers={ForesailError: _failed}), token)


def serve(storage: Path, *, port: int | None = None, ready: Callable[[str], object] = print) -> None:
    """Show the study in `storage` until Ctrl-C.

    Args:
        port: where; if not given, `PORT` or, where that is taken, any other.
        ready: called with the address, token included, when it can be opened.

    Raises:
        CallerError: there is no such study, or the port is taken.
        MissingExtraError: plotly is not installed.
    """
    _plotly_script()
    served = Served(storage)
    try:
        served.catch_up()
        token = secrets.token_urlsafe(24)
        with _listening(port) as listening:
            config = uvicorn.Config(
                application(served, token),
                log_level="critical",
                access_log=False,
                server_header=False,
                lifespan="off",
                ws="none",
                timeout_graceful_shutdown=1,
            )
            ready(f"http://127.0.0.1:{listening.getsockname()[1]}/?token={token}")
            uvicorn.Server(config).run(sockets=[listening])
    finally:
        served.close()


def _listening(port: int | None) -> socket.socket:
    for number in (PORT, 0) if port is None else (port,):
        try:
            return socket.create_server(("127.0.0.1", number))
        except OSError as error:
            problem = error
    raise CallerError(f"port {port}: {problem.strerror}", do="leave --port out: any free one is taken then")


def _fixed(body: bytes, kind: str) -> Callable[[Request], Response]:
    return lambda request: Response(body, media_type=kind, headers={"Cache-Control": "no-cache"})


def _json(request: Request, data: object, status: int = 200) -> Response:
    body = msgspec.json.encode(data, enc_hook=str)
    headers = {"Vary": "Accept-Encoding"}
    if len(body) > _PACK_BYTES and "gzip" in request.headers.get("accept-encoding", ""):
        body, headers = gzip.compress(body, 1), headers | {"Content-Encoding": "gzip"}
    return Response(body, status, headers, "application/json")


def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, ForesailError)
    status = 404 if isinstance(error, CallerError) else 503
    return _json(request, {"error": {"what": error.what, "allowed": error.allowed, "do": error.do}}, status)


def _whole(request: Request, name: str, default: int | None = None) -> int | None:
    """A whole number from 0 in the query.

    Raises:
        CallerError: it is none.
    """
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise CallerError(f"{name}={text!r}", allowed="a whole number from 0")
    return int(text)


def _text(name: str) -> str:
    return files("foresail.page").joinpath(name).read_text(encoding="utf-8")


def _plotly_version() -> str:
    return version("plotly")


def _plotly_script() -> Path:
    """Where plotly's Python package keeps its script; the package itself is not imported."""
    found = find_spec("plotly")
    if found is None or found.origin is None:
        raise MissingExtraError("plotly", "page")
    return Path(found.origin).parent / "package_data" / "plotly.min.js"
