"""The policies by name, with their options."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature

from foresail.core.spec import Choice
from foresail.errors import CallerError, nearest
from foresail.policies.asha import Asha
from foresail.policies.fifo import Fifo
from foresail.policies.median import MedianStopping
from foresail.policies.policy import AnyPolicy
from foresail.policies.pop import Pop


def _asha_stop(eta: int = 3, first_rung: int = 1) -> Asha:
    return Asha(eta, first_rung, pause=False)


_POLICIES: dict[str, Callable[..., AnyPolicy]] = {
    "fifo": Fifo,
    "median": MedianStopping,
    "asha": Asha,
    "asha-stop": _asha_stop,
    "pop": Pop,
}
NAMES = tuple(_POLICIES)


def make(choice: Choice) -> AnyPolicy:
    """The policy of that name with its options.

    Raises:
        CallerError: no such policy, or no such option of it; with the nearest name.
    """
    if choice.name not in _POLICIES:
        raise CallerError(f"no policy is called {choice.name!r}", do=nearest(choice.name, NAMES))
    policy = _POLICIES[choice.name]
    options = tuple(signature(policy).parameters)
    for option in choice.options:
        if option not in options:
            raise CallerError(f"policy {choice.name!r} has no option {option!r}", do=nearest(option, options))
    return policy(**choice.options)
