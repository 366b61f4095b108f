"""What a training wants kept: objects with a state, and functions that save and load.

A state goes to `tracked/<name>.pt` by `torch.save` where torch is imported (read back with `weights_only=True`, which
runs no code), else to `tracked/<name>.json`. Functions get the folder `files/` to themselves.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from foresail.errors import TrainingError, nearest
from foresail.worker import randomness
from foresail.worker.ranks import Ranks

Ways = tuple[Callable[[], Any], Callable[[Any], object]]

_PAIRS: Final = (("state_dict", "load_state_dict"), ("get_state", "set_state"), ("getstate", "setstate"))
"""Ways to ask for a state and to give it back: torch's, torch.Generator's, random.Random's."""


class Kept:
    """The state of one training. `special`: knows the ways of objects that lie across ranks."""

    __slots__ = ("_checked", "_objects", "_savers", "special")

    def __init__(self) -> None:
        self.special: Callable[[Any], Ways | None] = lambda thing: None
        self._objects: dict[str, Any] = {}
        self._savers: list[Callable[[Path], object]] = []
        self._checked: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._objects or self._savers)

    def track(self, name: str, thing: Any, checkpoint: Path | None) -> None:
        """Keep `thing` from now on; restored at once where the checkpoint knows it."""
        if name in self._objects:
            raise TrainingError(f"track(): {name!r} is tracked already", do="give each object its own name")
        ways = self._ways(name, thing)
        self._objects[name] = thing
        if checkpoint is not None:
            _restore(name, ways[1], checkpoint / "tracked")

    def _ways(self, name: str, thing: Any) -> Ways:
        return self.special(thing) or _ways(name, thing)

    def on_save(self, function: Callable[[Path], object]) -> None:
        self._savers.append(function)

    def take(self, ranks: Ranks) -> Callable[[Path], None]:
        """Take all states, with the other ranks where there are any; what it gives writes them into a new folder."""
        states = {name: self._ways(name, thing)[0]() for name, thing in self._objects.items()}
        luck = ranks.gather(randomness.capture())
        return lambda folder: self._write(folder, states, luck)

    def _write(self, folder: Path, states: dict[str, Any], luck: list[Any]) -> None:
        tracked = folder / "tracked"
        tracked.mkdir()
        for name, state in states.items():
            write = _write_torch if "torch" in sys.modules else _write_json
            path = write(state, tracked / name)
            if name not in self._checked:
                _try_reading(name, path)
                self._checked.add(name)
        if self._savers:
            (folder / "files").mkdir()
            for save in self._savers:
                save(folder / "files")
        for rank, drawn in enumerate(luck):
            (folder / _random(rank)).write_text(json.dumps(drawn))
        (folder / "ranks.json").write_text(json.dumps(len(luck)))


def load_files(checkpoint: Path | None, function: Callable[[Path], object]) -> None:
    if checkpoint is not None and (checkpoint / "files").is_dir():
        function(checkpoint / "files")


def restore_randomness(checkpoint: Path | None, ranks: Ranks, seed: int) -> None:
    """Draw on where the rank stood; ranks of another number each begin a sequence of their own."""
    if checkpoint is None:
        return
    known = checkpoint / "ranks.json"
    before = json.loads(known.read_text()) if known.exists() else 1
    randomness.restore(json.loads((checkpoint / "random.json").read_text()))
    if before == ranks.size and ranks.rank:
        randomness.restore(json.loads((checkpoint / _random(ranks.rank)).read_text()))
    elif before != ranks.size and ranks.replica:
        randomness.seed_apart(seed, ranks.replica)


def _random(rank: int) -> str:
    return f"random-{rank}.json" if rank else "random.json"


def _ways(name: str, thing: Any) -> Ways:
    """How to take the state of `thing`, and how to give it back."""
    for take, give in _PAIRS:
        if callable(getattr(thing, take, None)) and callable(getattr(thing, give, None)):
            return getattr(thing, take), getattr(thing, give)
    if hasattr(thing, "bit_generator"):  # numpy.random.Generator
        bits = thing.bit_generator
        return lambda: bits.state, lambda state: setattr(bits, "state", state)
    raise TrainingError(
        f"track(): {name} is a {type(thing).__name__}, which has no state_dict and load_state_dict",
        do="give it both, or save it yourself with run.on_save and run.on_load",
    )


def _restore(name: str, give: Callable[[Any], object], tracked: Path) -> None:
    if (tracked / f"{name}.pt").exists():
        give(_read_torch(tracked / f"{name}.pt"))
    elif (tracked / f"{name}.json").exists():
        give(_read_json(tracked / f"{name}.json"))
    else:
        known = nearest(name, (p.stem for p in tracked.iterdir()))
        raise TrainingError(f"track(): the checkpoint has no state of {name!r}", do=known)


def _try_reading(name: str, path: Path) -> None:
    """A state that cannot be read back is found at its first save, not when it is needed."""
    try:
        _read_torch(path) if path.suffix == ".pt" else _read_json(path)
    except Exception as error:
        raise TrainingError(
            f"track(): the state of {name!r} holds something that is not plain data: {str(error).splitlines()[0]}",
            allowed="tensors, arrays, numbers, strings, and lists and dicts of them",
            do="save it yourself with run.on_save and run.on_load",
        ) from error


# --- torch -----------------------------------------------------------------------------------------------------


def _write_torch(state: Any, base: Path) -> Path:
    path = base.with_name(base.name + ".pt")
    sys.modules["torch"].save(state, path)
    return path


def _read_torch(path: Path) -> Any:
    torch = import_module("torch")
    with torch.serialization.safe_globals(_plain_numpy()) if "numpy" in sys.modules else nullcontext():
        return torch.load(path, map_location="cpu", weights_only=True)


def _plain_numpy() -> list[Any]:
    """What numpy's arrays and scalars are rebuilt by: schedulers keep a best value of numpy's kind."""
    numpy = sys.modules["numpy"]
    core = import_module("numpy._core.multiarray" if hasattr(numpy, "_core") else "numpy.core.multiarray")
    kinds = [type(numpy.dtype(kind)) for kind in "efdbhilqBHILQ?"]
    return [core._reconstruct, core.scalar, numpy.ndarray, numpy.dtype, *kinds]


# --- JSON ------------------------------------------------------------------------------------------------------


def _write_json(state: Any, base: Path) -> Path:
    path = base.with_name(base.name + ".json")
    path.write_text(json.dumps(_fold(state), default=_unfit))
    return path


def _unfit(value: Any) -> Any:
    raise TrainingError(
        f"track(): a state holds a {type(value).__name__}, which JSON cannot keep",
        do="save it yourself with run.on_save and run.on_load",
    )


def _read_json(path: Path) -> Any:
    return _unfold(json.loads(path.read_text()))


def _fold(value: Any) -> Any:
    """A value in JSON's terms; what JSON lacks becomes a dict with one key that starts with `$`."""
    if isinstance(value, dict):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: _fold(item) for key, item in value.items()}
        return {"$items": [[_fold(key), _fold(item)] for key, item in value.items()]}
    if isinstance(value, tuple):
        return {"$tuple": [_fold(item) for item in value]}
    if isinstance(value, list):
        return [_fold(item) for item in value]
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)) and not value.dtype.hasobject:
        return {"$array": [value.dtype.str, list(value.shape), value.tobytes().hex()]}
    return value


def _unfold(value: Any) -> Any:
    if isinstance(value, list):
        return [_unfold(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$items" in value:
        return {_unfold(key): _unfold(item) for key, item in value["$items"]}
    if "$tuple" in value:
        return tuple(_unfold(item) for item in value["$tuple"])
    if "$array" in value:
        numpy = import_module("numpy")
        kind, shape, data = value["$array"]
        return numpy.frombuffer(bytearray.fromhex(data), dtype=kind).reshape(shape)[()]
    return {key: _unfold(item) for key, item in value.items()}
