"""Writes the golden logs: `python tests/golden/make.py`. They change only where decisions are meant to change.

Each is the log of a study in a bad world (`foresail.testing.history`): the facts are what goes in, the decisions what
must come out. `pop` is decided with plain forecasts, the same on every machine; `pop-learnt` with the real ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from foresail.core import codec
from foresail.core.spec import Choice
from foresail.policies.potential import Potential
from foresail.testing.foresight import plain
from foresail.testing.history import Case, play

FOLDER = Path(__file__).parent
LOGS = {"fifo": 261, "median": 382, "asha": 382, "asha-stop": 143, "pop": 382, "pop-learnt": 382}
"""The seed of the history of each log."""
PLAIN = [name for name in LOGS if name != "pop-learnt"]


def played(name: str) -> list[bytes]:
    """The log, one line an event."""
    case = Case.drawn(LOGS[name], Choice(name.removesuffix("-learnt")))
    if name not in PLAIN:
        return [codec.encode(event) for event in play(case).log]
    with plain_forecasts():
        return [codec.encode(event) for event in play(case).log]


@contextmanager
def plain_forecasts() -> Iterator[None]:
    with (
        mock.patch.object(Potential, "observe", return_value=None),
        mock.patch.object(Potential, "foresee", plain),
    ):
        yield


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.jsonl"


if __name__ == "__main__":
    for name in LOGS:
        path_of(name).write_bytes(b"".join(line + b"\n" for line in played(name)))
