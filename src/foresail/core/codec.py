"""Events to JSON and back, one line each.

Whatever an event holds comes back: NaN and the infinities, which JSON does not have, travel as `{"$float": "nan"}`
wherever they stand (a metric, a number of a reason, a value of a configuration). Half of a surrogate pair, which
UTF-8 does not have, travels as its escape (`\\udc80`), for output of training code may hold it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from foresail.core.events import Event
from foresail.errors import CallerError

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)
_list_decoder: msgspec.json.Decoder[list[Event]] = msgspec.json.Decoder(list[Event])
_KEY = "$float"
_MARK, _MARK_TEXT = b'{"$float":', '{"$float":'
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def encode(event: Event) -> bytes:
    """One event as JSON in one line."""
    try:
        line = _encoder.encode(event)
    except UnicodeEncodeError:
        line = b"null"
    if b"null" in line:  # None, or a number that is not finite, which msgspec writes as null
        return _encoder.encode(_writable(msgspec.to_builtins(event)))
    return line


def decode(line: bytes | str) -> Event:
    """The event of one line.

    Raises:
        CallerError: the line is no event of a schema that this version reads.
    """
    try:
        marked = _MARK_TEXT in line if isinstance(line, str) else _MARK in line
        if not marked:
            return _decoder.decode(line)
        event: Event = msgspec.convert(_restored(msgspec.json.decode(line)), Event)
        return event
    except msgspec.ValidationError as error:
        raise CallerError(f"not an event: {error}", do="the record may be of a newer version") from None
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise CallerError(f"not an event: {error}", do="the record is damaged") from None


def decode_all(lines: Sequence[bytes]) -> list[Event]:
    """The events of many lines: as `decode` of each, in half the time.

    Raises:
        CallerError: as `decode`; nothing of the others is given.
    """
    joined = b"[" + b",".join(lines) + b"]"
    if _MARK not in joined:
        try:
            events = _list_decoder.decode(joined)
        except (msgspec.DecodeError, RecursionError):
            pass  # said better below
        else:
            if len(events) == len(lines):
                return events
    return [decode(line) for line in lines]


def _writable(value: Any) -> Any:
    """`value` with what JSON cannot write in the form that it can."""
    match value:
        case float() if not math.isfinite(value):
            return {_KEY: str(value)}
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case dict():
            return {_writable(key): _writable(part) for key, part in value.items()}
        case list() | tuple():
            return [_writable(part) for part in value]
        case _:
            return value


def _restored(value: Any) -> Any:
    match value:
        case {"$float": str(name)} if len(value) == 1 and name in _NOT_FINITE:
            return _NOT_FINITE[name]
        case dict():
            return {key: _restored(part) for key, part in value.items()}
        case list():
            return [_restored(part) for part in value]
        case _:
            return value
