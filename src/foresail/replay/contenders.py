"""Policies as written on a command line: `asha`, or with options `asha:first_rung=3:eta=4`."""

from __future__ import annotations

import json
from collections.abc import Sequence

from foresail.core.spec import Choice
from foresail.errors import CallerError, nearest
from foresail.policies.registry import NAMES as POLICIES
from foresail.policies.registry import SEARCHES, make
from foresail.replay.session import ORACLE, Contender
from foresail.search import NAMES as SEARCH_NAMES

NAMES = (*POLICIES, ORACLE)


def contenders(text: str, *, searches: Sequence[str] = ("random",)) -> list[Contender]:
    """The contenders of a comma-separated list, each with each search.

    A policy that implies a search of its own (`grid`, `bohb`) keeps it where the only search is `random`.

    Raises:
        CallerError: an unknown policy, option or search, with the nearest name; a policy that comes twice.

    >>> [c.name for c in contenders("asha:eta=4,pop", searches=["random", "tpe"])]
    ['asha:eta=4', 'asha:eta=4+tpe', 'pop', 'pop+tpe']
    """
    for search in searches:
        if search not in SEARCH_NAMES:
            raise CallerError(f"no search is called {search!r}", do=nearest(search, SEARCH_NAMES))
    found = [_contender(part.strip(), search, tuple(searches)) for part in text.split(",") for search in searches]
    names = [contender.name for contender in found]
    for name in names:
        if names.count(name) > 1:
            raise CallerError(f"policy {name!r} comes twice", do="name it once")
    return found


def _contender(text: str, search: str, searches: tuple[str, ...]) -> Contender:
    name, *options = text.split(":")
    given = dict(_option(name, option) for option in options)
    if name not in NAMES:
        raise CallerError(f"no policy is called {name!r}", do=nearest(name, NAMES))
    if name == ORACLE:
        if given:
            raise CallerError(f"the oracle has no option {next(iter(given))!r}", do="leave it out")
    else:
        make(Choice(name, given))
    if searches == ("random",):
        return Contender(text, name, given, SEARCHES.get(name, "random"))
    return Contender(text if search == "random" else f"{text}+{search}", name, given, search)


def _option(policy: str, text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    if not equals:
        raise CallerError(f"option {text!r} of policy {policy!r} has no value", do=f"write {policy}:{name}=3")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value
