"""Ray Tune's search spaces: a dict, nested as you like, of values that stay and of what is drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foresail.errors import CallerError
from foresail.space import Choice, Float, Int, Knob, Space
from foresail.space.options import options_of


@dataclass(frozen=True)
class Drawn:
    """A place in a parameter space that is searched. `options`: those of a choice, as they were given."""

    knob: Knob
    options: tuple[Any, ...] = ()


def uniform(lower: float, upper: float) -> Drawn:
    """A number from `lower` to `upper`."""
    return Drawn(Float(lower, upper))


def loguniform(lower: float, upper: float, base: float = 10) -> Drawn:
    """A number on a logarithmic scale; the base makes no difference."""
    return Drawn(Float(lower, upper, log=True))


def quniform(lower: float, upper: float, q: float) -> Drawn:
    """A number on the grid of `q`."""
    return Drawn(Float(lower, upper, step=q))


def randint(lower: int, upper: int) -> Drawn:
    """A whole number from `lower` up to, but not including, `upper`, as Ray's."""
    return Drawn(Int(lower, upper - 1))


def lograndint(lower: int, upper: int, base: float = 10) -> Drawn:
    """The same on a logarithmic scale."""
    return Drawn(Int(lower, upper - 1, log=True))


def qrandint(lower: int, upper: int, q: int = 1) -> Drawn:
    """A whole number on the grid of `q`, both ends included, as Ray's."""
    return Drawn(Int(lower, upper, step=None if q == 1 else q))


def choice(categories: Sequence[Any]) -> Drawn:
    """One of these, of any kind."""
    return Drawn(Choice(options_of(list(categories))), tuple(categories))


def grid_search(values: Sequence[Any]) -> dict[str, Any]:
    """One of these. Where nothing else is drawn, each combination is tried; beside others it is a choice."""
    return {"grid_search": list(values)}


@dataclass(frozen=True)
class ParamSpace:
    """A parameter space, taken apart. Places have dotted names: "model.lr" for {"model": {"lr": ...}}."""

    given: Mapping[str, Any]

    @property
    def drawn(self) -> dict[str, Drawn]:
        """What is searched, by name. A choice of one thing is no search."""
        found = dict(_walk(self.given, ()))
        return {name: drawn for name, drawn in found.items() if len(drawn.options) != 1}

    @property
    def is_grid(self) -> bool:
        """Whether all that is searched was written as `grid_search`."""
        return bool(self.drawn) and all(isinstance(_at(self.given, name), dict) for name in self.drawn)

    def space(self) -> Space:
        """As Foresail searches it.

        Raises:
            CallerError: nothing is searched, or a knob is wrong.
        """
        if not self.drawn:
            raise CallerError("param_space holds nothing to search", do='write {"lr": tune.loguniform(1e-4, 1.0)}')
        return Space.of({name: drawn.knob for name, drawn in self.drawn.items()})

    def filled(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The dict that the training function gets."""
        return {key: self._fill(value, (key,), config) for key, value in self.given.items()}

    def _fill(self, value: Any, path: tuple[str, ...], config: Mapping[str, Any]) -> Any:
        drawn = _as_drawn(value)
        if drawn is not None:
            if len(drawn.options) == 1:
                return drawn.options[0]
            found = config[".".join(path)]
            return drawn.options[drawn.knob.index(found)] if drawn.options else found
        if isinstance(value, dict):
            return {key: self._fill(inner, (*path, str(key)), config) for key, inner in value.items()}
        return value


def _as_drawn(value: Any) -> Drawn | None:
    if isinstance(value, Drawn):
        return value
    if isinstance(value, dict) and set(value) == {"grid_search"}:
        return choice(value["grid_search"])
    return None


def _walk(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, Drawn]]:
    for key, value in table.items():
        place = (*path, str(key))
        drawn = _as_drawn(value)
        if drawn is not None:
            yield ".".join(place), drawn
        elif isinstance(value, dict):
            yield from _walk(value, place)


def _at(table: Any, name: str) -> Any:
    for key in name.split("."):
        table = table[key]
    return table
