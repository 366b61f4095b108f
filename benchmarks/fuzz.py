"""Fuzzing of everything that is read: garbled input gives a value or a clear error, never a crash and never a hang.

    PYTHONPATH=src python benchmarks/fuzz.py [--executions 10000000] [--seed 0] [--reader NAME]

Each reader has samples of what it reads. An execution takes one, garbles it (bytes flipped, cut, doubled, moved; parts
of another sample put in; words that parsers stumble over; in JSON also values swapped for others of any kind) and reads
it. Whatever is raised must be an error of Foresail with a sentence. The executions are shared out by speed: each
reader gets the same time. The seed, the reader and the number of the execution give the input again.
"""

from __future__ import annotations

import argparse
import asyncio
import atexit
import gzip
import json
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import unquote

import h11
import msgspec

from foresail.api.study_file import load_study
from foresail.core.codec import decode, encode
from foresail.core.goal import Goal
from foresail.errors import CallerError, ForesailError, TrainingError
from foresail.executors.listening import Listener
from foresail.page.server import Served, application
from foresail.perf.keeping import load_measurements
from foresail.replay.folder import read_folder
from foresail.space import Space
from foresail.stores.export import read_jsonl
from foresail.stores.sqlite import SqliteStore
from foresail.testing.page import one_study
from foresail.worker import checkpoint
from foresail.worker.folder import AttemptFolder
from foresail.worker.spool import decode_line

HANG_S = 5.0
"""Longest that one input may take."""
WORDS = (
    b"null",
    b"NaN",
    b"-1",
    b"1e999",
    b"9" * 40,
    b"\x00",
    b"\xff\xfe",
    b"[" * 200,
    b'"',
    b"\\ud800",
    b"true",
    b"{}",
)
VALUES: tuple[Any, ...] = (None, True, -1, 0, 10**30, 1e308, "", "x", "nan", [], [1], {}, {"type": "int"}, "\ud7ff")


class Hang(BaseException):
    """An input takes for ever."""


@dataclass(frozen=True)
class Reader:
    """`read` raises one of `allowed`, or gives something."""

    samples: tuple[bytes, ...]
    read: Callable[[bytes], object]
    allowed: tuple[type[BaseException], ...] = (ForesailError,)


# --- readers -----------------------------------------------------------------------------------------------------

EVENTS = tuple(
    line.encode()
    for line in (
        '{"event":"PointReported","at_s":1.5,"attempt":"0-1","step":3,"metrics":{"a":{"$float":"nan"}},"seconds":0.1}',
        '{"event":"AttemptGranted","at_s":1,"attempt":"0-1","trial":0,"number":1,"cores":[0,1]}',
        '{"event":"TrialProposed","at_s":1,"trial":0,"config":{"lr":0.1,"opt":"adam w"},"origin":"random"}',
        '{"event":"AttemptEnded","at_s":1,"attempt":"0-1","outcome":"failed","detail":"x"}',
        '{"event":"StudyEnded","at_s":1,"end":"trials","why":"all","summary":{"a":1}}',
    )
)
STUDY = b"""[study]
command = ["python", "train.py"]
policy = {name = "asha", eta = 4}
workers = 2
grace = "30 s"
keep = "10 GB"
[goal]
maximize = "accuracy"
target = 0.98
within = "20 min"
[space]
lr = {type = "float", low = 1e-4, high = 1.0, log = true}
layers = {type = "int", low = 1, high = 4}
opt = {type = "choice", options = ["sgd", "adam"]}
[env]
DATA = "/data"
"""
SPACE = json.dumps(
    {
        "knobs": {
            "lr": {"type": "float", "low": 1e-4, "high": 1.0, "log": True},
            "layers": {"type": "int", "low": 1, "high": 4},
            "opt": {"type": "choice", "options": ["sgd", "adam"]},
            "nesterov": {"type": "flag", "when": {"opt": "sgd"}},
        }
    }
).encode()
GOAL = b'{"maximize":"accuracy","target":0.985,"within":"20 min","trials":3}'
MANIFEST = b'{"trial":0,"step":3,"metrics":{"a":0.5},"files":{"n.txt":{"bytes":1,"sha256":"ab"}},"schema":1}'
SPOOL = (
    b'{"is":"Point","step":3,"metrics":{"accuracy":"nan","loss":1.5},"seconds":0.1}',
    b'{"is":"Saved","step":3,"path":"checkpoints/0/step-3","bytes":10,"digest":"ab","seconds":0.1}',
    b'{"is":"Farewell","outcome":"completed","detail":""}',
    b'{"is":"Horizon","max_steps":5}',
)
REPORTS = (
    b'{"step":1,"accuracy":0.5}\n{"accuracy":"nan"}\n',
    b'{"max_steps":5}\n{"step":2,"accuracy":1}\n{"yielded":true}',
)
TRACE = json.dumps(
    {
        "name": "tiny",
        "metric": "accuracy (fraction)",
        "mode": "max",
        "step_unit": "epoch",
        "max_step": 2,
        "seconds": "measured",
        "hyperparameters": {"lr": {"type": "float", "low": 0.001, "high": 1.0, "log": True}},
        "system": {},
        "targets": {"top10pct": 0.5, "top1pct": 0.5, "best": 0.5},
    }
).encode()
TOKEN = "t" * 32
REQUESTS = tuple(
    f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:8321\r\nCookie: foresail-8321={TOKEN}\r\nAccept: */*\r\n\r\n".encode()
    for target in (
        "/changes?since=0&every=2",
        "/changes?since=7&until=20",
        "/trial/1?until=30",
        "/",
        f"/?token={TOKEN}",
    )
)
CONFIGS = b"config,lr\n0,0.01\n1,0.1\n"
CURVES = b"config,step,value,seconds\n0,1,0.1,1.0\n0,2,0.5,2.0\n1,1,0.2,2.0\n1,2,nan,4.0\n"


def readers(folder: Path) -> Mapping[str, Reader]:
    """All of them; those that read files have them in `folder`."""

    def study(data: bytes) -> object:
        (folder / "study.toml").write_bytes(data)
        return load_study(folder / "study.toml")

    def log(data: bytes) -> object:
        (folder / "log.jsonl").write_bytes(data)
        return list(read_jsonl(folder / "log.jsonl"))

    def manifest(data: bytes) -> object:
        (folder / "n.txt").write_bytes(b"1")
        (folder / checkpoint.MANIFEST).write_bytes(data)
        return checkpoint.verify(folder, digests=True)

    def script(data: bytes) -> object:
        attempt = AttemptFolder(folder)
        attempt.reports.write_bytes(data)
        listener = Listener("0-1", attempt, metric="accuracy", now_s=0.0)  # type: ignore[arg-type]
        facts = listener.last_facts(1.0)
        listener.close()
        if listener.refusal:
            raise TrainingError(listener.refusal)
        return [encode(fact) for fact in facts]

    def trace(part: str) -> Callable[[bytes], object]:
        def read(data: bytes) -> object:
            parts = {"trace.json": TRACE, "configs.csv.gz": CONFIGS, "curves.csv.gz": CURVES, part: data}
            for name, text in parts.items():
                (folder / name).write_bytes(gzip.compress(text, 1) if name.endswith(".gz") else text)
            return read_folder(folder)

        return read

    def packed(data: bytes) -> object:
        for name, text in {"trace.json": TRACE, "configs.csv.gz": data, "curves.csv.gz": gzip.compress(CURVES)}.items():
            (folder / name).write_bytes(text)
        return read_folder(folder)

    page = cache(lambda: _page(folder))
    return {
        "request of the page": Reader(REQUESTS, lambda data: page()(data)),  # noqa: PLW0108  # made when it is asked for
        "event": Reader(EVENTS, lambda data: encode(decode(data))),
        "spool": Reader(SPOOL, decode_line, (msgspec.DecodeError,)),
        "reports of a script": Reader(REPORTS, script),
        "space": Reader((SPACE,), lambda data: Space.from_dict(_table(data))),
        "goal": Reader((GOAL,), lambda data: Goal.from_dict(_table(data))),
        "study file": Reader((STUDY,), study),
        "log as lines": Reader((b"\n".join(EVENTS) + b"\n",), log),
        "manifest": Reader((MANIFEST,), manifest),
        "trace": Reader((TRACE,), trace("trace.json")),
        "configurations of a trace": Reader((CONFIGS,), trace("configs.csv.gz")),
        "curves of a trace": Reader((CURVES,), trace("curves.csv.gz")),
        "packed table": Reader((gzip.compress(CONFIGS, 1),), packed),
        "measurements": Reader((b'{"schema":1,"rows":{},"values":[]}',), load_measurements),
    }


def _page(folder: Path) -> Callable[[bytes], object]:
    """Answers a request as the server does, without a socket: parsed by h11, which is what uvicorn has."""
    with SqliteStore.open(folder / "page.db") as store:
        store.append(one_study())
    served = Served(folder / "page.db")
    atexit.register(served.close)
    app = application(served, TOKEN)

    async def answer(request: h11.Request) -> int:
        path, _, query = request.target.partition(b"?")
        told: list[Any] = []
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": request.method.decode("ascii"),
            "scheme": "http",
            "server": ("127.0.0.1", 8321),
            "client": ("127.0.0.1", 50_000),
            "root_path": "",
            "path": unquote(path.decode("ascii")),
            "raw_path": path,
            "query_string": query,
            "headers": list(request.headers),
        }

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            told.append(message)

        await app(scope, receive, send)
        return int(told[0]["status"])

    def read(data: bytes) -> object:
        connection = h11.Connection(h11.SERVER)
        try:
            connection.receive_data(data)
            request = connection.next_event()
        except h11.RemoteProtocolError as error:
            raise CallerError(f"no request: {error}") from error
        if not isinstance(request, h11.Request):
            raise CallerError("no whole request")
        status = asyncio.run(answer(request))
        assert status < 500, f"answered with {status}"
        if status >= 400:
            raise CallerError(f"refused with {status}")
        return status

    return read


def _table(data: bytes) -> dict[str, Any]:
    """What a TOML table or a log holds: anything that is a dictionary."""
    try:
        table = json.loads(data)
    except (ValueError, RecursionError):
        table = {}
    return table if isinstance(table, dict) else {}


# --- garbling ----------------------------------------------------------------------------------------------------


def garbled(rng: random.Random, samples: tuple[bytes, ...]) -> bytes:
    """A sample, changed in one to four ways."""
    data = rng.choice(samples)
    if rng.random() < 0.5 and data[:1] == b"{":
        data = _swapped(rng, data)
    for _ in range(rng.randint(0, 3)):
        at = rng.randint(0, len(data))
        upto = min(len(data), at + rng.choice((1, 1, 2, 8, 60)))
        way = rng.randrange(6)
        if way == 0:
            data = data[:at] + rng.randbytes(upto - at) + data[upto:]
        elif way == 1:
            data = data[:at] + data[upto:]
        elif way == 2:
            data = data[:upto] + data[at:]
        elif way == 3:
            data = data[:at] + rng.choice(WORDS) + data[upto:]
        elif way == 4:
            other = rng.choice(samples)
            cut = rng.randint(0, len(other))
            data = data[:at] + other[cut : cut + 30] + data[at:]
        else:
            data = data[:at]
    return data


def _swapped(rng: random.Random, data: bytes) -> bytes:
    """JSON with one value, or one name, that is another."""
    try:
        document = json.loads(data)
    except ValueError:
        return data
    place: Any = document
    while isinstance(place, dict | list) and place:
        key: Any = rng.choice(list(place)) if isinstance(place, dict) else rng.randrange(len(place))
        if not isinstance(place[key], dict | list) or not place[key] or rng.random() < 0.3:
            if isinstance(place, dict) and rng.random() < 0.2:
                place[key + rng.choice(("", "x", "$", "\x00"))] = place.pop(key)
            else:
                place[key] = rng.choice(VALUES)
            break
        place = place[key]
    return json.dumps(document).encode()


# --- the run -----------------------------------------------------------------------------------------------------


class Unclear(AssertionError):
    """An input brought a reader down."""


def try_one(name: str, reader: Reader, seed: int, number: int) -> bool:
    """Whether the input was read; an error that is allowed is False.

    Raises:
        Unclear: another error, or a sentence that says nothing.
    """
    data = garbled(random.Random(f"{seed} {name} {number}"), reader.samples)
    try:
        reader.read(data)
    except reader.allowed as error:
        if not str(error).strip():
            raise Unclear(f"{name} {number}: an error without words for {data!r}") from error
        return False
    except (Exception, Hang) as error:
        raise Unclear(f"{name} {number}: {type(error).__name__}: {error} for {data!r}") from error
    return True


def _hung(number: int, frame: FrameType | None) -> None:
    raise Hang


def fuzz(executions: int, seed: int, only: str = "", *, slice_s: float = 1.0) -> dict[str, tuple[int, int]]:
    """Executions of each reader, and how many were read."""
    counts: dict[str, tuple[int, int]] = {}
    with tempfile.TemporaryDirectory() as place:
        chosen = {name: reader for name, reader in readers(Path(place)).items() if only in ("", name)}
        before = signal.signal(signal.SIGALRM, _hung)
        try:
            while sum(done for done, _ in counts.values()) < executions:
                for name, reader in chosen.items():
                    done, read = counts.get(name, (0, 0))
                    end_s = time.monotonic() + slice_s
                    while time.monotonic() < end_s:
                        signal.setitimer(signal.ITIMER_REAL, HANG_S + 30.0 * slice_s)
                        for _ in range(20):
                            read += try_one(name, reader, seed, done)
                            done += 1
                    signal.setitimer(signal.ITIMER_REAL, 0.0)
                    counts[name] = (done, read)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, before)
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executions", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reader", default="")
    given = parser.parse_args()
    began = time.monotonic()
    counts = fuzz(given.executions, given.seed, given.reader)
    for name, (done, read) in counts.items():
        print(f"{done:12,}  {name}: {read / max(1, done):.0%} read, the rest refused with a sentence")
    total, took_s = sum(done for done, _ in counts.values()), time.monotonic() - began
    print(f"{total:12,}  in all, {took_s:.0f} s, {total / took_s:,.0f} a second", file=sys.stdout)


if __name__ == "__main__":
    main()
