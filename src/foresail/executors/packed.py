"""A training function that no other process could import: it is packed by value and handed to the template.

This is for notebooks, whose process has threads and cannot be forked, and for functions made in other functions there.
Only the template that we start reads it, from a file without a name that nobody else can open: what is unpacked is what
this process has packed. It is in no log; a study of such a function is continued by running the same code again.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from foresail.errors import CallerError
from foresail.worker.entry import Training


def pack(function: Training, refusal: CallerError, why: str) -> bytes:
    """The function by value, with what it uses.

    Raises:
        CallerError: `refusal`, which says why it cannot be imported, with `why` it is not forked, and what to do.
    """
    try:
        import cloudpickle
    except ImportError:
        what = f"{refusal.what}{why}, and cloudpickle, which could carry it over, is not installed"
        raise CallerError(
            what, allowed=refusal.allowed, do=f"pip install 'foresail[notebook]', or {refusal.do}"
        ) from None
    try:
        data: bytes = cloudpickle.dumps(function)
    except Exception as error:  # whatever the function holds may refuse in its own way
        what = f"{refusal.what}{why}, and it cannot be carried over: {error}"
        raise CallerError(what, allowed=refusal.allowed, do=refusal.do) from error
    return data


@contextmanager
def parcel(data: bytes) -> Iterator[int]:
    """A descriptor from which `unpack` reads; -1 where there is nothing to carry."""
    if not data:
        yield -1
        return
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        yield file.fileno()


def unpack(descriptor: int) -> Training:
    """The function of a parcel; may be called again."""
    import cloudpickle

    size = os.fstat(descriptor).st_size
    function: Training = cloudpickle.loads(os.pread(descriptor, size, 0))
    return function
