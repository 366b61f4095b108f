"""The policies by name, with their options."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature

from foresail.core.reason import Rule
from foresail.core.spec import Choice
from foresail.errors import CallerError, nearest
from foresail.policies.asha import Asha
from foresail.policies.bandit import Bandit
from foresail.policies.brackets import Halving
from foresail.policies.earlyterm import EarlyTerm
from foresail.policies.elastic import Elastic
from foresail.policies.fifo import Fifo
from foresail.policies.freezethaw import FreezeThaw
from foresail.policies.hybrid import Hybrid
from foresail.policies.hypersched import HyperSched
from foresail.policies.median import MedianStopping
from foresail.policies.pasha import Pasha
from foresail.policies.policy import AnyPolicy
from foresail.policies.pop import Pop


def _asha_stop(eta: int = 3, first_rung: int = 1) -> Asha:
    return Asha(eta, first_rung, pause=False)


def _hyperband(eta: int = 3, first_rung: int = 1) -> Halving:
    return Halving(eta, first_rung, cycle=True)


def _sha(eta: int = 3, first_rung: int = 1) -> Halving:
    return Halving(eta, first_rung)


def _grid() -> Fifo:
    return Fifo(Rule.GRID_ORDER)


_POLICIES: dict[str, Callable[..., AnyPolicy]] = {
    "hybrid": Hybrid,
    "fifo": Fifo,
    "random": Fifo,
    "grid": _grid,
    "median": MedianStopping,
    "sha": _sha,
    "asha": Asha,
    "asha-stop": _asha_stop,
    "hyperband": _hyperband,
    "bohb": _hyperband,
    "bandit": Bandit,
    "earlyterm": EarlyTerm,
    "pop": Pop,
    "hypersched": HyperSched,
    "pasha": Pasha,
    "freezethaw": FreezeThaw,
}
NAMES = tuple(_POLICIES)
SEARCHES = {"grid": "grid", "bohb": "tpe"}
"""The search that a policy's name implies, where that is not random: BOHB is Hyperband with TPE (Falkner et al., ICML
2018; theirs has a kernel density of its own)."""


def make(choice: Choice) -> AnyPolicy:
    """The policy of that name with its options; with `elastic`, which all have, in `Elastic`.

    Raises:
        CallerError: no such policy, or no such option of it; with the nearest name.
    """
    if choice.name not in _POLICIES:
        raise CallerError(f"no policy is called {choice.name!r}", do=nearest(choice.name, NAMES))
    policy = _POLICIES[choice.name]
    options = tuple(signature(policy).parameters)
    given = {name: value for name, value in choice.options.items() if name != "elastic"}
    for option in given:
        if option not in options:
            raise CallerError(f"policy {choice.name!r} has no option {option!r}", do=nearest(option, options))
    made = policy(**given)
    return Elastic(made) if choice.options.get("elastic") else made
