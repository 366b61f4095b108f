"""Every error that Foresail raises on purpose.

An error says what happened with the value, what is allowed, and what to do. It carries its parts as
fields, so that `--json` and tests need not parse a sentence. Its class says whose fault it is:

* `CallerError`: the call, the space, the goal or the file is wrong; nothing was started.
* `TrainingError`: the training code misbehaved.
* `HostError`: the machine did (disk full, storage unreadable, no free cores).
* `InternalError`: a rule of our own was broken; please report it with the story that it carries.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ForesailError(Exception):
    """Base of all. `what` happened, what is `allowed`, and what to `do`."""

    def __init__(self, what: str, *, allowed: str = "", do: str = "") -> None:
        self.what, self.allowed, self.do = what, allowed, do
        super().__init__("; ".join(part for part in (what, allowed, do) if part))


class CallerError(ForesailError, ValueError):
    """The caller asked for something that cannot be done."""


class TrainingError(ForesailError, RuntimeError):
    """The training job did something that it must not do."""


class HostError(ForesailError, RuntimeError):
    """The machine could not do what was asked."""


class InternalError(ForesailError, AssertionError):
    """A rule of Foresail itself was broken."""


class MissingExtraError(ForesailError, ImportError):
    """An optional library is needed here and not installed."""

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(f"this needs {library}, which is not installed", do=f"pip install 'foresail[{extra}]'")


def nearest(name: str, allowed: Iterable[str]) -> str:
    """A sentence that names what is allowed and, where one is close, what was probably meant.

    >>> nearest("momentun", ["lr", "momentum"])
    "did you mean 'momentum'? allowed: lr, momentum"
    """
    names = sorted(str(a) for a in allowed)
    close = difflib.get_close_matches(str(name), names, n=1, cutoff=0.6)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}allowed: {', '.join(names) if names else 'none'}"
