"""A study from a TOML file: what `foresail run study.toml` reads.

    [study]
    command = ["python", "train.py"]      # or function = "train.py:train"
    storage = "digits.db"                 # relative paths are relative to this file
    policy = "hybrid"                      # or {name = "asha", eta = 4}

    [goal]
    maximize = "accuracy"
    target = 0.985
    within = "20 min"

    [space]
    lr = {type = "float", low = 1e-4, high = 1.0, log = true}

    [env]
    DATA = "/data/digits"

Nothing of the training code is imported: a function is looked for in the text of its file.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from foresail.api.study import Study, file_name
from foresail.core.goal import Goal, seconds
from foresail.errors import CallerError, nearest
from foresail.space import Space

TABLES = ("study", "goal", "space", "env")
_SIZE = re.compile(r"\s*(\d+(?:\.\d*)?)\s*([kmgt]?)b\s*", re.IGNORECASE)
_POWER = {"": 0, "k": 3, "m": 6, "g": 9, "t": 12}
_EXAMPLE = """start with
[study]
command = ["python", "train.py"]
[goal]
maximize = "accuracy"
target = 0.98
[space]
lr = {type = "float", low = 1e-4, high = 1.0, log = true}"""

Table = Mapping[str, Any]


def load_study(path: Path, *, study: Table | None = None, goal: Table | None = None) -> Study:
    """The study of the file at `path`.

    Args:
        path: the TOML file.
        study: keys that replace those of its [study], from a command line; relative paths in it are those of the
            current folder.
        goal: keys that replace those of its [goal].

    Raises:
        CallerError: with the TOML path of the first thing that is wrong; nothing was started.
    """
    document = _read(path)
    with _said_of(path):
        return _study_of(document, path.resolve(), study or {}, goal or {})


def storage_of(path: Path) -> Path:
    """The storage that the study of the file at `path` has; errors as `load_study`."""
    return load_study(path).storage


def _study_of(document: Table, path: Path, over: Table, over_goal: Table) -> Study:
    folder = path.parent
    _known("", document, TABLES)
    for name in ("study", "goal", "space"):
        if name not in document:
            raise CallerError(f"there is no [{name}]", do=_EXAMPLE)
        _table(name, document[name])
    settings = _settings(document["study"], folder)
    settings |= {key: _parsed(key, value, Path.cwd()) for key, value in over.items()}
    if not settings.get("storage"):
        settings["storage"] = folder / f"{file_name(settings.get('name') or path.stem)}.db"
    with _inside("goal"):
        goal = Goal.from_dict({**document["goal"], **over_goal})
    with _inside("space"):
        space = Space.from_dict(document["space"])
    env = _environment(document.get("env", {}))
    return Study(settings.pop("function", None), space=space, goal=goal, env=env, cwd=folder, **settings)


# --- the file ----------------------------------------------------------------------------------------------------


def _read(path: Path) -> Table:
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        found = [p.name for p in path.parent.glob("*.toml")] if path.parent.is_dir() else []
        raise CallerError(f"there is no file {path}", do=nearest(path.name, found) if found else _EXAMPLE) from None
    except OSError as error:
        raise CallerError(f"{path} cannot be read: {error.strerror}", do="name a study file") from None
    try:
        return tomllib.loads(text.decode())
    except UnicodeDecodeError:
        raise CallerError(f"{path} is no text in UTF-8", do="save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise CallerError(f"{path} is no TOML: {error}", do=_toml_hint(text.decode(), str(error))) from None


def _toml_hint(text: str, error: str) -> str:
    """The line that is meant, and the commonest slip in it."""
    match = re.search(r"line (\d+)", error)
    lines = text.splitlines()
    if match is None or int(match[1]) > len(lines):
        return "is a bracket or a quotation mark missing at its end?"
    line = lines[int(match[1]) - 1].strip()
    slip = "; text needs quotation marks, truth values are true and false" if re.search(r"=\s*[A-Za-z']", line) else ""
    return f"look at its line {match[1]}: {line}{slip}"


@contextmanager
def _said_of(path: Path) -> Iterator[None]:
    with _prefixed(f"{path}: "):
        yield


@contextmanager
def _inside(table: str) -> Iterator[None]:
    """Errors that do not name their table get its name."""
    with _prefixed(f"[{table}] ", unless=table):
        yield


@contextmanager
def _prefixed(prefix: str, unless: str = "\0") -> Iterator[None]:
    try:
        yield
    except CallerError as error:
        what = error.what if error.what.startswith(unless) else prefix + error.what
        raise CallerError(what, allowed=error.allowed, do=error.do) from error


# --- [study] -----------------------------------------------------------------------------------------------------


def _settings(table: Table, folder: Path) -> dict[str, Any]:
    _known("study", table, _PARSERS)
    if ("command" in table) == ("function" in table):
        both = "command" in table
        raise CallerError(
            "[study] has both command and function" if both else "[study] has neither command nor function",
            do='give one: command = ["python", "train.py"], or function = "train.py:train"',
        )
    return dict(_renamed(key, _parsed(key, value, folder)) for key, value in table.items())


def _renamed(key: str, value: object) -> tuple[str, object]:
    return {"grace": "grace_s", "silence": "silence_s", "keep": "keep_bytes"}.get(key, key), value


def _parsed(key: str, value: object, folder: Path) -> Any:
    return _PARSERS[key](f"study.{key}", value, folder)


def _text(path: str, value: object, folder: Path) -> str:
    if not isinstance(value, str) or not value.strip():
        raise CallerError(f"{path} = {value!r}", allowed="text that is not empty")
    return value


def _whole(least: int) -> Callable[[str, object, Path], int]:
    def parse(path: str, value: object, folder: Path) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise CallerError(f"{path} = {value!r}", allowed=f"a whole number from {least}")
        return value

    return parse


def _flag(path: str, value: object, folder: Path) -> bool:
    if not isinstance(value, bool):
        raise CallerError(f"{path} = {value!r}", allowed="true or false")
    return value


def _storage(path: str, value: object, folder: Path) -> Path:
    return folder / Path(_text(path, value, folder)).expanduser()


def _named(path: str, value: object, folder: Path) -> str | dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, str):
        return value
    raise CallerError(f"{path} = {value!r}", allowed="a name, or a table with a name and options")


def _parallel(path: str, value: object, folder: Path) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise CallerError(f"{path} = {value!r}", allowed="a table such as {tp = 2}")
    return dict(value)


def _duration(path: str, value: object, folder: Path) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise CallerError(f"{path} = {value!r}", allowed="seconds, or text such as '30 s'")
    with _prefixed(f"{path}: "):
        return seconds(value)


def _texts(path: str, value: object, folder: Path) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
        raise CallerError(f"{path} = {value!r}", allowed='a list of texts, ["tensorboard:runs"]')
    return value


def _bytes(path: str, value: object, folder: Path) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise CallerError(f"{path} = {value!r}", allowed="a number of bytes, or text such as '10 GB'")
    return int(float(match[1]) * 10.0 ** _POWER[match[2].lower()])


def _command(path: str, value: object, folder: Path) -> list[str]:
    if isinstance(value, str):
        parts = ", ".join(f'"{part}"' for part in value.split())
        raise CallerError(
            f"{path} is one string",
            allowed="a list: a string would have to be cut at its spaces, and a value may hold spaces itself",
            do=f"write command = [{parts}]",
        )
    if not isinstance(value, list) or not value or not all(isinstance(part, str) for part in value):
        raise CallerError(f"{path} = {value!r}", allowed='a list of texts, ["python", "train.py"]')
    if not value[0].strip():
        raise CallerError(f"{path} begins with an empty text", allowed="the program first")
    return value


# --- function = "train.py:train" ---------------------------------------------------------------------------------


def _function(path: str, value: object, folder: Path) -> str:
    place, _, name = _text(path, value, folder).rpartition(":")
    if not place or not name.replace(".", "_").isidentifier():
        raise CallerError(f"{path} = {value!r}", allowed='"train.py:train" or "package.module:train"')
    if not place.endswith(".py"):
        return _of_module(path, place, name)
    file = folder / place
    if not file.is_file():
        found = sorted(p.name for p in folder.glob("*.py"))
        raise CallerError(f"{path}: there is no file {file}", do=nearest(place, found))
    _look_for(path, file, name)
    return f"{file.resolve()}:{name}"


def _of_module(path: str, module: str, name: str) -> str:
    try:
        known = find_spec(module.partition(".")[0]) is not None
    except (ImportError, ValueError):
        known = False
    if not known:
        raise CallerError(f"{path}: there is no module {module!r}", do="install it, or write the path of its file")
    return f"{module}:{name}"


def _look_for(path: str, file: Path, name: str) -> None:
    """Refuse a name that the file does not bind at its top level; its code is not run."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError) as error:
        raise CallerError(f"{path}: {file} is no Python: {error}", do="mend it; nothing was started") from None
    names = set(_bound(tree.body))
    if name.partition(".")[0] not in names and "*" not in names:
        functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        raise CallerError(f"{path}: {file.name} has no function {name!r}", do=nearest(name, functions))


def _bound(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                yield from ((alias.asname or alias.name).partition(".")[0] for alias in aliases)
            case ast.Assign() | ast.AnnAssign():
                yield from (part.id for part in ast.walk(node) if isinstance(part, ast.Name))
            case ast.If(body=inner, orelse=other) | ast.Try(body=inner, orelse=other):
                yield from _bound([*inner, *other])


def _cores(name: str, value: object, folder: Path) -> Any:
    return value if value == "auto" else _whole(1)(name, value, folder)


_PARSERS: Mapping[str, Callable[[str, object, Path], Any]] = {
    "name": _text,
    "storage": _storage,
    "command": _command,
    "function": _function,
    "policy": _named,
    "search": _named,
    "workers": _whole(1),
    "cores_per_trial": _cores,
    "parallel": _parallel,
    "seed": _whole(0),
    "max_steps": _whole(1),
    "retries": _whole(0),
    "grace": _duration,
    "silence": _duration,
    "keep": _bytes,
    "repeats": _flag,
    "track": _texts,
}


# --- common ------------------------------------------------------------------------------------------------------


def _environment(table: object) -> dict[str, str]:
    for name, value in _table("env", table).items():
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise CallerError(f"env.{name} = {value!r}", allowed="text or a number")
    return {name: str(value) for name, value in _table("env", table).items()}


def _table(name: str, value: object) -> Table:
    if not isinstance(value, Mapping):
        raise CallerError(f"{name} = {value!r}", allowed=f"a table, [{name}]")
    return value


def _known(table: str, given: Table, allowed: Mapping[str, Any] | tuple[str, ...]) -> None:
    for key in given:
        if key in allowed:
            continue
        if not table and key in _PARSERS:
            raise CallerError(f"{key} stands outside of every table", do=f"put it under [study], as {key} = ...")
        raise CallerError(f"{table}.{key} is unknown" if table else f"[{key}] is unknown", do=nearest(key, allowed))
