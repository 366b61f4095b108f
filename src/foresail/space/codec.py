"""A space as plain data and back, for the study's log (JSON) and for `study.toml`.

The long form, which `to_dict` writes, keeps the knobs apart from the rest, so that a knob may have any
name. The short form is for people: knobs beside `forbid`, as in

    [space]
    lr = {type = "float", low = 1e-4, high = 1.0, log = true}
    optimizer = {type = "choice", options = ["sgd", "adam"]}
    momentum = {type = "float", low = 0.0, high = 0.99, when = {optimizer = "sgd"}}

    [[space.forbid]]
    optimizer = "adam"
    lr = {at_least = 0.1}

An array called `forbid` holds the combinations; a table of that name is a knob.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import NODEFAULT
from msgspec.structs import fields

from foresail.errors import CallerError, nearest
from foresail.space.knobs import Choice, Flag, Float, Int, Knob, When

_KINDS: Mapping[str, type[Knob]] = {"float": Float, "int": Int, "choice": Choice, "flag": Flag}
_WORDS = {kind: word for word, kind in _KINDS.items()}


def to_dict(knobs: Mapping[str, Knob], forbid: Sequence[When]) -> dict[str, object]:
    """The long form; what stands at its default is left out."""
    data: dict[str, object] = {"knobs": {name: _knob_dict(knob) for name, knob in knobs.items()}}
    if forbid:
        data["forbid"] = [_plain(spec) for spec in forbid]
    return data


def from_dict(data: Mapping[str, object]) -> tuple[dict[str, Knob], Sequence[When]]:
    """Knobs and forbidden combinations from either form; `Space.of` checks their contents.

    Raises:
        CallerError: with the path of the first wrong key.
    """
    if not isinstance(data, Mapping):
        raise CallerError(f"space is {data!r}", allowed="a table of knobs")
    knobs = data.get("knobs")
    if isinstance(knobs, Mapping) and not isinstance(knobs.get("type"), str):
        _refuse_unknown("space", data, ("knobs", "forbid"))
    else:
        knobs = {key: value for key, value in data.items() if not _is_forbid(key, value)}
    forbid = data.get("forbid", ())
    listed = forbid if _is_forbid("forbid", forbid) or "knobs" in data else ()
    return {name: _knob(f"space.{name}", value) for name, value in knobs.items()}, listed  # type: ignore[return-value]


def _is_forbid(key: str, value: object) -> bool:
    return key == "forbid" and isinstance(value, Sequence) and not isinstance(value, str)


def _knob_dict(knob: Knob) -> dict[str, object]:
    data: dict[str, object] = {"type": _WORDS[type(knob)]}
    for field in fields(knob):
        value = getattr(knob, field.name)
        if field.default is NODEFAULT or value != field.default:
            data[field.name] = _plain(value)
    return data


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def _knob(path: str, data: object) -> Knob:
    if not isinstance(data, Mapping):
        raise CallerError(
            f"{path} is {data!r}",
            allowed="a table with a type",
            do='write {type = "float", low = 0.0, high = 1.0}; set a fixed value in your code',
        )
    if "type" not in data:
        raise CallerError(f"{path}.type is missing", allowed=", ".join(_KINDS))
    word = data["type"]
    if not isinstance(word, str) or word not in _KINDS:
        raise CallerError(f"{path}.type is {word!r}", do=nearest(str(word), _KINDS))
    kind = _KINDS[word]
    allowed = {field.name: field for field in fields(kind)}
    _refuse_unknown(path, data, ("type", *allowed))
    for name, field in allowed.items():
        if field.default is NODEFAULT and name not in data:
            raise CallerError(f"{path}.{name} is missing", do=f"a {word} needs it")
    return kind(**{key: value for key, value in data.items() if key != "type"})


def _refuse_unknown(path: str, data: Mapping[str, object], allowed: Sequence[str]) -> None:
    for key in data:
        if key not in allowed:
            raise CallerError(f"{path}.{key} is unknown", do=nearest(str(key), allowed))
