"""The server of the page: what may be asked, and the answers.

    /                       the page; /static-DIGEST/NAME: its scripts and style sheets, which a browser may keep
    /changes?since=n        what changed after event n; &until=m for a past moment, &every=k for thinned curves
    /trial/7?until=m        the story of a trial
    /panel/NAME?until=m     what has to be computed: forecasts, importance, speeds, calibration (`page.foresight`)

It runs in a process of its own and reads the log as any reader does, so the driver does not know of it. Nothing that is
asked is a path of the file system.
"""

from __future__ import annotations

import gzip
import secrets
import socket
import threading
from collections.abc import Callable, Mapping
from hashlib import sha256
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from foresail import __version__
from foresail.api import wording
from foresail.api.recorded import driver_of, folder_of
from foresail.api.story import Chapter, chapters_of, happenings, outputs_of, points_of
from foresail.api.summary import traces
from foresail.core import events as ev
from foresail.core.words import Outcome, TrialId
from foresail.errors import CallerError, ForesailError
from foresail.page import looks
from foresail.page.foresight import PANELS, Foresight
from foresail.page.guard import Guard
from foresail.page.history import LABELS, STATUSES, History
from foresail.stores.sqlite import SqliteStore

PORT = 8321
"""Where the page is, unless that port is taken or another is asked for."""
MOST_POINTS = 40_000
"""Points that a page is sent at first; of longer studies, every n-th step is."""
PATIENCE_S = 1.0
"""While a long log is read for the first time, who asks waits so long, and is then told how far it is."""
_READ_AT_ONCE = 5_000
_PACK_BYTES = 1400
_FOREVER = {"Cache-Control": "private, max-age=31536000, immutable"}
_KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


class Served:
    """A study that is shown: its history as far as the log goes when somebody asks."""

    def __init__(self, storage: Path) -> None:
        self.storage = storage
        self.history = History()
        self.foresight = Foresight(storage)
        self._store = SqliteStore.open(storage, write=False)
        self._length = self._store.last
        self._lock = threading.Lock()
        self._caught_up, self._closing = threading.Event(), threading.Event()
        self._problem: ForesailError | None = None
        self._reader = threading.Thread(target=self._read_first, name="reads the log", daemon=True)
        self._reader.start()

    def _read_first(self) -> None:
        """All that the log holds, in portions, so that a page is answered meanwhile."""
        try:
            more = True
            while more and not self._closing.is_set():
                with self._lock:
                    more = self._take(_READ_AT_ONCE) == _READ_AT_ONCE
        except ForesailError as error:
            self._problem = error
        self._caught_up.set()

    def _take(self, most: int | None = None) -> int:
        """Read what was appended, `most` events at a time; how many there were."""
        before = self.history.last
        for _, event in islice(self._store.read(before), most):
            self.history.note(event)
        return self.history.last - before

    def changes(self, since: int, until: int | None, every: int | None) -> dict[str, Any]:
        """What the page asks for all the time. `every` None: as many points as the page can bear."""
        if not self._caught_up.wait(PATIENCE_S):
            read_frac = min(1.0, self.history.last / max(1, self._length))
            return {"since": 0, "event": 0, "last": 0, "about": None, "read_frac": read_frac}
        if self._problem is not None:
            raise self._problem
        driver = driver_of(self.storage)  # asked before the look: who has left by then, has recorded the end
        with self._lock:
            self._take()
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
        """A trial in full, from the events that tell of it alone."""
        with self._lock:
            events = self._store.read_some(self.history.of_trial(trial, until))
            spec = self.history.view.spec
        number = TrialId(trial)
        chapters = chapters_of(events, number, is_script=bool(spec.entry.command))
        attempts = sum(isinstance(event, ev.AttemptGranted) for event in events)
        folder = folder_of(self.storage)
        told = [*map(str, traces(number, attempts, folder)), *outputs_of(number, attempts, folder)]
        return {
            "trial": trial,
            "why": _why(chapters),
            "chapters": list(happenings(chapters, points_of(events, number), spec.goal.metric)),
            "files": list(dict.fromkeys(told)),
        }

    def close(self) -> None:
        self._closing.set()
        self._reader.join()
        self._store.close()
        self.foresight.close()


def _why(chapters: list[Chapter]) -> str:
    """What ended or failed it, else what was decided last."""
    faults = (Outcome.FAILED, Outcome.OUT_OF_MEMORY, Outcome.LOST)
    ends = [c for c in chapters if c.event == "TrialEnded" or c.data.get("outcome") in faults]
    details = [str(c.data["detail"]) for c in ends if c.data["detail"]]
    decisions = [c.text for c in chapters if c.event == "Planned"]
    return (details or decisions or [""])[-1]


def application(served: Served, token: str) -> ASGIApp:
    """The page of a study, for whoever has the token."""
    static = _static()
    digest = sha256(b"".join(static.values())).hexdigest()[:16]
    page = _page(f"/static-{digest}", static).encode()

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

    def part(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in static:
            return Response(status_code=404)
        return Response(static[name], headers=_FOREVER, media_type=_KINDS[Path(name).suffix])

    routes = [
        Route("/", lambda request: Response(page, headers={"Cache-Control": "no-cache"}, media_type="text/html")),
        Route(f"/static-{digest}/{{name}}", part),
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
    """
    served = Served(storage)
    try:
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


def _static() -> Mapping[str, bytes]:
    """The parts of the page by their names, all of them from this package."""
    found = {"looks.js": looks.script().encode(), "looks.css": looks.style().encode()}
    package = files("foresail.page")
    for part in (*package.joinpath("js").iterdir(), package.joinpath("page.css"), package.joinpath("icon.svg")):
        if Path(part.name).suffix in _KINDS:
            found[part.name] = part.read_bytes()
    return found


def _page(folder: str, static: Mapping[str, bytes]) -> str:
    """The page itself; it names all its scripts, so that a browser asks for all of them at once."""
    scripts = sorted(name for name in static if name.endswith(".js"))
    preloads = "\n".join(f'<link rel="modulepreload" href="{folder}/{name}">' for name in scripts)
    html = files("foresail.page").joinpath("page.html").read_text(encoding="utf-8")
    return html.replace("PRELOADS", preloads).replace("STATIC", folder)
