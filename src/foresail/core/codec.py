"""Events to JSON and back. NaN and infinity are kept: JSON has none, so they travel as strings in `metrics`."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from foresail.core.events import Event, PointReported
from foresail.errors import CallerError

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class _WirePoint(msgspec.Struct, frozen=True, tag="PointReported", tag_field="event", kw_only=True):
    """A point with a value that JSON cannot write."""

    at_s: float
    attempt: str
    step: int
    metrics: dict[str, float | str]
    seconds: float = 0.0


_wire_decoder: msgspec.json.Decoder[_WirePoint] = msgspec.json.Decoder(_WirePoint)


def encode(event: Event) -> bytes:
    """One event as JSON in one line."""
    if isinstance(event, PointReported) and not all(map(math.isfinite, event.metrics.values())):
        metrics = {k: v if math.isfinite(v) else str(v) for k, v in event.metrics.items()}
        wire: Any = {"event": "PointReported", **{f: getattr(event, f) for f in event.__struct_fields__}}
        return _encoder.encode({**wire, "metrics": metrics})
    return _encoder.encode(event)


def decode(line: bytes | str) -> Event:
    """The event of one line.

    Raises:
        CallerError: the line is no event of a schema that this version reads.
    """
    try:
        return _decoder.decode(line)
    except msgspec.ValidationError as first:
        try:
            wire = _wire_decoder.decode(line)
            metrics = {k: _NOT_FINITE[v] if isinstance(v, str) else v for k, v in wire.metrics.items()}
        except (msgspec.DecodeError, KeyError):
            raise CallerError(f"not an event: {first}", do="the record may be of a newer version") from None
        return PointReported(
            at_s=wire.at_s,
            attempt=wire.attempt,  # type: ignore[arg-type]
            step=wire.step,
            metrics=metrics,
            seconds=wire.seconds,
        )
    except msgspec.DecodeError as error:
        raise CallerError(f"not an event: {error}", do="the record is damaged") from None
