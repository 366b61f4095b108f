"""Searches over a trace's own configurations.

Rows in one random order that depends on the seed alone, so every policy meets the same ones in the same order; in the
order of the table, or of a grid; or the unused row that is nearest to what another search proposes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import numpy as np

from foresail.core.words import Config
from foresail.errors import CallerError, nearest
from foresail.replay.trace import Trace
from foresail.search import NAMES as SEARCHES
from foresail.search import Search
from foresail.search import get as search_by_name
from foresail.search.proposal import Ask

RECORDED = "recorded"
"""Name of the search that takes the rows as they stand."""


def search_of(trace: Trace, name: str, seed: int) -> Search:
    """The search of that name over the rows of `trace`.

    Raises:
        CallerError: there is no such search.
    """
    match name:
        case "random":
            return _in_order(trace, name, random_order(trace, seed))
        case _ if name == RECORDED:
            return _in_order(trace, name, range(len(trace.configs)))
        case "grid":
            return _in_order(trace, name, grid_order(trace))
        case _ if name in SEARCHES:
            return nearest_to(trace, search_by_name(name))
    raise CallerError(f"no search is called {name!r}", do=nearest(name, (*SEARCHES, RECORDED)))


def random_order(trace: Trace, seed: int) -> list[int]:
    """All rows, shuffled by the seed."""
    rows = list(range(len(trace.configs)))
    random.Random(f"rows/{seed}").shuffle(rows)
    return rows


def grid_order(trace: Trace) -> list[int]:
    """All rows, first knob slowest."""
    place = lambda row: tuple(trace.space.quantiles(trace.configs[row]))
    return sorted(range(len(trace.configs)), key=place)


def _in_order(trace: Trace, name: str, order: Sequence[int]) -> Search:
    def candidates(ask: Ask) -> Iterator[Config]:
        for at in range(ask.k, len(order)):
            yield dict(trace.configs[order[at]])

    return Search(name, candidates)  # type: ignore[arg-type]


def nearest_to(trace: Trace, inner: Search) -> Search:
    unit_CK = np.array([trace.space.to_unit(config) for config in trace.configs])

    def candidates(ask: Ask) -> Iterator[Config]:
        wanted = next(iter(inner.candidates(ask)), None)
        if wanted is None:
            return
        used = {trace.row_of[tuple(seen.config.items())] for seen in ask.history}
        distance_C = ((unit_CK - np.array(trace.space.to_unit(wanted))) ** 2).sum(axis=1)
        for row in np.argsort(distance_C, kind="stable").tolist():
            if row not in used:
                yield dict(trace.configs[row])
                return

    return Search(inner.name, candidates)  # type: ignore[arg-type]
