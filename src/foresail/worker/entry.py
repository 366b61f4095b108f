"""From a function to a reference that another process can follow, and back."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from foresail.errors import CallerError, nearest

Training = Callable[[Any], object]
"""A training function: gets a `Run`."""


def refer(function: Training) -> str:
    """The reference "module:name" or "path.py:name" of a function.

    Raises:
        CallerError: another process could not find it: it is a lambda, was made inside another function, or was
            typed at a prompt. The error names the variables that it captured.
    """
    if not isinstance(function, FunctionType):
        raise CallerError(
            f"the training function is a {type(function).__name__}", allowed="a function", do="wrap it in one"
        )
    name = function.__qualname__
    reachable = _reach(sys.modules.get(function.__module__), name) is function
    if not reachable and (captured := function.__code__.co_freevars):
        raise CallerError(
            f"the training function {function.__name__} uses {', '.join(captured)} of the function around it",
            allowed="a function at the top level of a file",
            do="move it there, and what it needs with it",
        )
    if not reachable:
        raise CallerError(
            f"the training function {name} was made where no other process finds it",
            allowed="a function at the top level of a file",
            do="move it there",
        )
    if function.__module__ != "__main__":
        return f"{function.__module__}:{name}"
    main = sys.modules["__main__"]
    if main.__spec__ is not None:  # python -m package.module
        return f"{main.__spec__.name}:{name}"
    file = getattr(main, "__file__", None)
    if file is None:
        raise CallerError(
            f"the training function {name} was typed at a prompt", do="put it in a file and import it from there"
        )
    return f"{os.path.abspath(file)}:{name}"


def _reach(module: ModuleType | None, name: str) -> object:
    """What a dotted name leads to, or None."""
    try:
        return reduce(getattr, name.split("."), module)
    except AttributeError:
        return None


def load(reference: str) -> Training:
    """The function of a reference.

    Raises:
        CallerError: there is no such file, module or function. What the import itself raises comes through.
    """
    place, _, name = reference.rpartition(":")
    if not place or not name:
        raise CallerError(f"{reference!r} is no reference", allowed="'module:name' or 'path/to/file.py:name'")
    module = _load_file(Path(place)) if place.endswith(".py") else _load_module(place)
    function = _reach(module, name)
    if function is None:
        known = (n for n, v in vars(module).items() if callable(v) and not n.startswith("_"))
        raise CallerError(f"{place} has no function {name!r}", do=nearest(name, known))
    if not callable(function):
        raise CallerError(f"{reference} is a {type(function).__name__}", allowed="a function")
    return function


def _load_file(path: Path) -> ModuleType:
    """Import a file under a private name, with its folder first on the path as when it is run."""
    path = path.resolve()
    if not path.is_file():
        raise CallerError(f"there is no file {path}")
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = f"_foresail_entry_{path.stem}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _load_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise CallerError(f"there is no module {name!r}", do="check its name and PYTHONPATH") from None
        raise
