"""The searches by name."""

from __future__ import annotations

from foresail.errors import CallerError, nearest
from foresail.search import cmaes, grid, optuna, random, sobol
from foresail.search.proposal import Search

_SEARCHES = {
    search.name: search
    for search in (
        Search("random", random.candidates),
        Search("sobol", sobol.candidates),
        Search("grid", grid.candidates),
        Search("tpe", optuna.tpe),
        Search("gp", optuna.gp),
        Search("cmaes", cmaes.candidates),
    )
}
NAMES = tuple(_SEARCHES)


def get(name: str) -> Search:
    """The search of that name; whether its library is installed shows at its first proposal.

    Raises:
        CallerError: with the nearest name where there is no such search.
    """
    if name not in _SEARCHES:
        raise CallerError(f"no search is called {name!r}", do=nearest(name, NAMES))
    return _SEARCHES[name]
