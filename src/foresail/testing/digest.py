"""A view as plain data, so that two views can be compared."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any

import msgspec

from foresail.core.view import Attempt, Checkpoint, Trial, View


def view_digest(view: View) -> dict[str, Any]:
    """Everything that `view` holds, as nested dictionaries, lists and words; equal for equal views, NaN included."""
    return {name: _plain(value) for name, value in vars(view).items()}


def _plain(value: Any) -> Any:
    match value:
        case Trial() | Attempt() | Checkpoint():
            return {name: _plain(getattr(value, name)) for name in value.__slots__}
        case msgspec.Struct():
            return _plain(msgspec.to_builtins(value))
        case Mapping():
            return {str(key): _plain(part) for key, part in value.items()}
        case list() | tuple() | range() | array():
            return [_plain(part) for part in value]
        case float():
            return repr(value)
        case _:
            return value
