"""The process that is measured: builds the user's job under one system configuration and times its steps.

Started by `measuring.py` as `python -m foresail.api.step_process`, with one JSON request on its standard
input. It answers on standard output, one JSON object a line: `{"ready": seconds, "job": features}` after warm-up, and
after the line `go STEPS` the times of that many steps. What the user's code prints goes to standard error.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from foresail.errors import CallerError, nearest
from foresail.perf.observed import Waited, features
from foresail.perf.words import Job, SystemConfiguration

_WARM_UP_STEPS = 3


def load(target: str) -> Callable[[SystemConfiguration], Callable[[], object]]:
    """The function that `FILE.py:NAME` or `PACKAGE.MODULE:NAME` names.

    Raises:
        CallerError: the text has no colon, the module cannot be found, or it has no such function.
    """
    made: Callable[[SystemConfiguration], Callable[[], object]] = _named(target)
    return made


def model_of(target: str) -> tuple[Any, tuple[Any, ...]]:
    """What the function named so builds: a model, and one batch as its positional arguments.

    Raises:
        CallerError: see `load`, or the function returns something else.
    """
    found = _named(target)()
    if not (isinstance(found, tuple) and len(found) == 2):
        raise CallerError(f"{target} returned {type(found).__name__}", allowed="a model and one batch: (model, inputs)")
    model, inputs = found
    return model, tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)


def _named(target: str) -> Callable[..., Any]:
    place, _, name = target.rpartition(":")
    if not place or not name:
        raise CallerError(f"{target!r} names no function", allowed="FILE.py:FUNCTION or PACKAGE.MODULE:FUNCTION")
    if place.endswith(".py"):
        path = Path(place).resolve()
        if not path.exists():
            raise CallerError(f"no file {place}", do="give the path of the script from here")
        sys.path.insert(0, str(path.parent))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if spec is None or spec.loader is None:
            raise CallerError(f"{place} is not a Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
    else:
        sys.path.insert(0, os.getcwd())
        try:
            module = importlib.import_module(place)
        except ModuleNotFoundError as error:
            raise CallerError(f"{target!r}: {error}", do="run from the folder where it can be imported") from error
    found = getattr(module, name, None)
    if not callable(found):
        functions = [key for key, value in vars(module).items() if inspect.isfunction(value)]
        raise CallerError(f"{place} has no function {name!r}", do=nearest(name, functions))
    function: Callable[..., Any] = found
    return function


def main() -> None:
    """Build, warm up, report, wait for `go`, time the steps."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    request: dict[str, Any] = json.loads(sys.stdin.readline())
    system = msgspec.convert(request["system"], SystemConfiguration)
    try:
        step = load(request["target"])(system)
        if not callable(step):
            raise CallerError(
                f"{request['target']} returned {type(step).__name__}",
                allowed="a function that runs one optimizer step",
                do="return the function itself, without calling it",
            )
        _limit_threads(system.threads)
        waited = Waited()
        warm = [_timed(step) for _ in range(_WARM_UP_STEPS)]
        job = _features(step, system, waited)
    except CallerError as error:
        print(json.dumps({"wrong": [error.what, error.allowed, error.do]}), file=answers)
        return
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and type(error).__name__ != "OutOfMemoryError":  # PyTorch's own
            raise
        print(json.dumps({"out_of_memory": True}), file=answers)
        return
    print(json.dumps({"ready": min(warm), "job": msgspec.to_builtins(job)}), file=answers)
    order = sys.stdin.readline().split()
    if len(order) != 2 or order[0] != "go":
        return
    waited.seconds = 0.0
    times = [_timed(step) for _ in range(int(order[1]))]
    waited_s = waited.seconds / len(times)
    print(json.dumps({"step_s": times, "waited_s": waited_s, "memory_bytes": _peak_bytes()}), file=answers)
    answers.flush()
    os._exit(0)  # loader workers and process groups may take seconds to say goodbye


def _features(step: Callable[[], object], system: SystemConfiguration, waited: Waited) -> Job | None:
    """What a step shows of the job, where a single process does all of it on cores, loading too."""
    if system.devices > 1 or system.loader_workers or _gpu() is not None:
        return None
    try:
        return features(step, system, waited)
    except (RuntimeError, NotImplementedError, TypeError, AttributeError, AssertionError) as error:
        print(f"this job's operations cannot be counted ({error}); it is learned from its steps", file=sys.stderr)
        return None


def _limit_threads(threads: int) -> None:
    """PyTorch reads the environment when it is imported, but a container may tell it otherwise."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(threads)


def _gpu() -> Any:
    """PyTorch's CUDA, if the job uses it: what it launches is not done when the step returns."""
    torch = sys.modules.get("torch")
    return torch.cuda if torch is not None and torch.cuda.is_initialized() else None


def _peak_bytes() -> int:
    """Of the device that the job uses, or else of this process."""
    gpu = _gpu()
    if gpu is not None:
        return int(gpu.max_memory_reserved())
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _timed(step: Callable[[], object]) -> float:
    start = time.perf_counter()
    step()
    gpu = _gpu()
    if gpu is not None:
        gpu.synchronize()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
