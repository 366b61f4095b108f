"""The global random states of a training process: seeded at its start, saved and restored with its checkpoints.

Of numpy and torch only where the training code has imported them. As JSON, so that nothing is unpickled.
"""

from __future__ import annotations

import random
import sys
from importlib import import_module
from typing import Any

_BITS_32 = 2**32


def seed_all(seed: int) -> None:
    """Seed `random`, numpy's global state and torch, those that are imported."""
    random.seed(seed)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(seed % _BITS_32)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(seed)


def seed_apart(seed: int, number: int) -> None:
    """Seed what one of several processes draws; the same for the same number."""
    seed_all(seed + 1_000_003 * number)


def capture() -> dict[str, Any]:
    version, words, gauss = random.getstate()
    states: dict[str, Any] = {"random": [version, list(words), gauss]}
    if numpy := sys.modules.get("numpy"):
        state = numpy.random.get_state(legacy=False)
        states["numpy"] = {**state, "state": {"key": state["state"]["key"].tolist(), "pos": state["state"]["pos"]}}
    if torch := sys.modules.get("torch"):
        states["torch"] = _hex(torch.get_rng_state())
        if torch.cuda.is_initialized():
            states["cuda"] = [_hex(state) for state in torch.cuda.get_rng_state_all()]
    return states


def restore(states: dict[str, Any]) -> None:
    version, words, gauss = states["random"]
    random.setstate((version, tuple(words), gauss))
    if "numpy" in states:
        numpy = import_module("numpy")
        state = states["numpy"]
        key = numpy.array(state["state"]["key"], dtype=numpy.uint32)
        numpy.random.set_state({**state, "state": {"key": key, "pos": state["state"]["pos"]}})
    if "torch" in states:
        torch = import_module("torch")
        torch.set_rng_state(_tensor(states["torch"]))
        if "cuda" in states and torch.cuda.is_available():
            torch.cuda.set_rng_state_all([_tensor(state) for state in states["cuda"]])


def _hex(state: Any) -> str:
    return bytes(state.tolist()).hex()


def _tensor(state: str) -> Any:
    torch = import_module("torch")
    return torch.tensor(list(bytes.fromhex(state)), dtype=torch.uint8)
