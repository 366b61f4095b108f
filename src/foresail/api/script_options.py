"""The options of a script, read from its text: argparse, click, dataclasses, Hydra. The script is never imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from foresail.errors import CallerError, MissingExtraError

Plain = str | int | float | bool | None
_DATACLASS_PARSERS = (
    "HfArgumentParser",
    "simple_parsing",
    "tyro",
    "pyrallis",
    "draccus",
    "jsonargparse",
    "dataclass_wizard",
)


@dataclass(frozen=True)
class Option:
    """`name`: of the knob. `argument`: how the command line gets it, where that is not `--name value`. `kind`: "float",
    "int", "str", "flag" (takes no value), "place" (a value without a name), or "" where it is not told. `required`: the
    script does not run without it."""

    name: str
    kind: str
    default: Plain = None
    choices: tuple[Plain, ...] = ()
    low: float | None = None
    high: float | None = None
    argument: tuple[str, ...] = ()
    required: bool = False


@dataclass(frozen=True)
class Script:
    """What a script's text tells. `style`: how it takes options; `metrics`: names that it reports to Foresail."""

    path: Path
    style: str
    options: tuple[Option, ...]
    metrics: tuple[str, ...]
    names: frozenset[str]


def read_script(path: Path) -> Script:
    """The options of the script at `path`.

    Raises:
        CallerError: there is no such file, it is no Python, or no options are found in it.
        MissingExtraError: it uses Hydra, and PyYAML is not installed.
    """
    try:
        tree = ast.parse(path.read_bytes())
    except OSError as error:
        raise CallerError(f"{path} cannot be read: {error.strerror}", do="name a Python script") from None
    except (SyntaxError, ValueError) as error:
        raise CallerError(f"{path} is no Python: {error}", do="name a Python script") from None
    ways: dict[str, Iterator[Option]] = {
        "argparse": _argparse(tree),
        "click": _click(tree),
        "hydra": _hydra(tree, path.parent),
        "dataclass": _dataclasses(tree),
    }
    for style, found in ways.items():
        if options := tuple({option.name: option for option in found}.values()):
            return Script(path, style, options, tuple(_metrics(tree)), _names(tree))
    raise CallerError(
        f"{path} has no options that are seen from outside",
        allowed="argparse, click, Hydra, or a dataclass that is parsed",
        do="let it take its hyperparameters as options, or write [space] by hand (see docs/cli.md)",
    )


# --- argparse and click ------------------------------------------------------------------------------------------


def _argparse(tree: ast.AST) -> Iterator[Option]:
    for call in _calls(tree, "add_argument"):
        names = [plain for arg in call.args if isinstance(plain := _plain(arg), str)]
        given = {word.arg: word.value for word in call.keywords if word.arg}
        if names and names[0].startswith("-"):
            yield _of_argparse(names, given)
        elif names and _plain(given.get("nargs")) not in ("?", "*"):
            yield Option(names[0], "place", required=True)


def _of_argparse(names: list[str], given: Mapping[str, ast.expr]) -> Option:
    long = [name for name in names if name.startswith("--")]
    name = (long or names)[0].lstrip("-")
    default, choices = _plain(given.get("default")), _plain_list(given.get("choices"))
    action = given.get("action")
    takes_none = action is not None and _plain(action) not in ("store", None)
    takes_none = takes_none or (action is not None and _plain(action) is None)  # BooleanOptionalAction
    kind = "flag" if takes_none else _kind(given.get("type"), default, choices)
    argument = () if long else (names[0], f"{{{_word(name)}}}")
    return Option(name, kind, default, choices, argument=argument, required=_plain(given.get("required")) is True)


def _click(tree: ast.AST) -> Iterator[Option]:
    for call in _calls(tree, "option"):
        names = [plain for arg in call.args if isinstance(plain := _plain(arg), str)]
        long = [name for name in names if name.startswith("--")]
        if long:
            given = {word.arg: word.value for word in call.keywords if word.arg}
            found = _of_click(long[0].lstrip("-"), given)
            yield replace(found, required=_plain(given.get("required")) is True)
    for call in _calls(tree, "argument"):
        told = {word.arg: _plain(word.value) for word in call.keywords if word.arg}
        name = _plain(call.args[0]) if call.args else None
        if isinstance(name, str) and told.get("required") is not False and "default" not in told:
            yield Option(name, "place", required=True)


def _of_click(name: str, given: Mapping[str, ast.expr]) -> Option:
    default, kind = _plain(given.get("default")), given.get("type")
    if "/" in name or _plain(given.get("is_flag")) is True or isinstance(default, bool):
        return Option(name.partition("/")[0], "flag", default)
    if isinstance(kind, ast.Call):
        return _of_click_type(name, kind, default)
    return Option(name, _kind(kind, default, ()), default)


def _of_click_type(name: str, kind: ast.Call, default: Plain) -> Option:
    called = _last(kind.func)
    if called == "Choice":
        choices = _plain_list(kind.args[0] if kind.args else None)
        return Option(name, _kind(None, default, choices), default, choices)
    if called in ("FloatRange", "IntRange"):
        bounds = dict(zip(("min", "max"), map(_plain, kind.args), strict=False))
        bounds |= {word.arg: _plain(word.value) for word in kind.keywords if word.arg}
        low, high = (float(b) if isinstance(b := bounds.get(key), int | float) else None for key in ("min", "max"))
        return Option(name, called.removesuffix("Range").lower(), default, low=low, high=high)
    return Option(name, _kind(None, default, ()), default)


# --- dataclasses -------------------------------------------------------------------------------------------------


def _dataclasses(tree: ast.AST) -> Iterator[Option]:
    """Fields of dataclasses, in a script that uses a library which makes options of them."""
    if not _names(tree) & set(_DATACLASS_PARSERS):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and any(_last(d) == "dataclass" for d in node.decorator_list):
            yield from _fields(node)


def _fields(node: ast.ClassDef) -> Iterator[Option]:
    for field in node.body:
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        value = field.value
        if isinstance(value, ast.Call):  # field(default=0.1)
            value = next((word.value for word in value.keywords if word.arg == "default"), None)
        default, choices = _plain(value), _plain_list(None)
        if isinstance(field.annotation, ast.Subscript) and _last(field.annotation.value) == "Literal":
            choices = _plain_list(field.annotation.slice)
        kind = "flag" if _last(field.annotation) == "bool" else _kind(field.annotation, default, choices)
        yield Option(field.target.id, kind, default, choices)


# --- Hydra -------------------------------------------------------------------------------------------------------


def _hydra(tree: ast.AST, folder: Path) -> Iterator[Option]:
    for call in _calls(tree, "main"):
        given = {word.arg: _plain(word.value) for word in call.keywords if word.arg}
        if not isinstance(name := given.get("config_name"), str):
            continue
        place = folder / str(given.get("config_path") or ".") / name
        file = place if place.suffix in (".yaml", ".yml") else place.with_name(place.name + ".yaml")
        if not file.is_file():
            raise CallerError(f"there is no file {file}, which the script names as its configuration")
        yield from _of_mapping(_yaml(file), ())


def _yaml(file: Path) -> Any:
    try:
        import yaml
    except ImportError:
        raise MissingExtraError("PyYAML", "hydra") from None
    try:
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise CallerError(f"{file} is no YAML: {error}") from None


def _of_mapping(table: Any, path: tuple[str, ...]) -> Iterator[Option]:
    for key, value in table.items() if isinstance(table, dict) else ():
        place = (*path, str(key))
        if isinstance(value, dict) and key not in ("hydra", "defaults"):
            yield from _of_mapping(value, place)
        elif isinstance(value, str | int | float | bool) and not str(value).startswith("${"):
            name, default = "_".join(place), _number(value)
            yield Option(name, _kind(None, default, ()), default, argument=(f"{'.'.join(place)}={{{_word(name)}}}",))


def _number(value: str | int | float | bool) -> str | int | float | bool:
    """YAML 1.1 takes 1e-3 for text."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


# --- what the text tells -----------------------------------------------------------------------------------------


def _word(name: str) -> str:
    """A name as a placeholder of a command."""
    return "".join(c if c.isalnum() else "_" for c in name)


def _calls(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call) and _last(node.func) == name)


def _last(node: ast.expr) -> str:
    """The last part of a dotted name, or of what is called or subscripted by it."""
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case ast.Call(func=inner) | ast.Subscript(value=inner):
            return _last(inner)
        case ast.Constant(value=str(name)):
            return name
    return ""


def _plain(node: ast.expr | None) -> Plain:
    try:
        value = ast.literal_eval(node) if node is not None else None
    except (ValueError, TypeError, SyntaxError):
        return None
    return value if isinstance(value, str | int | float | bool) else None


def _plain_list(node: ast.expr | None) -> tuple[Plain, ...]:
    try:
        values = ast.literal_eval(node) if node is not None else ()
    except (ValueError, TypeError, SyntaxError):
        return ()
    return tuple(values) if isinstance(values, list | tuple | set) else ()


def _kind(declared: ast.expr | None, default: Plain, choices: tuple[Plain, ...]) -> str:
    if declared is not None and (name := _last(declared).lower()) in ("float", "int", "str", "bool"):
        return name
    value = default if default is not None else next(iter(choices), None)
    return {bool: "bool", int: "int", float: "float", str: "str"}.get(type(value), "")


def _names(tree: ast.AST) -> frozenset[str]:
    """Every name in the text, imported modules included."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                found.add(name)
            case ast.ImportFrom(module=str(name)):
                found |= {name.partition(".")[0], *(alias.name for alias in node.names)}
            case ast.Import(names=aliases):
                found |= {alias.name.partition(".")[0] for alias in aliases}
    return frozenset(found)


def _metrics(tree: ast.AST) -> list[str]:
    """Names that `foresail.report(...)`, `fs.report(...)` or `run.report(...)` is given."""
    calls = (call for call in _calls(tree, "report") if isinstance(call.func, ast.Attribute))
    words = (word.arg for call in calls for word in call.keywords)
    return list(dict.fromkeys(word for word in words if word and word != "step"))
