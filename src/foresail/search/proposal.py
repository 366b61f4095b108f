"""Which configuration next: the contract of every search, and the one loop that all of them share.

A search names candidates in the order of its preference; the first one that is allowed and new is
proposed. Rules kept here:

* Proposal k depends on the space, the seed, k and the recorded history, and on nothing else: a study that
  was killed and read back from its log goes on exactly as it would have. A `Cache` may save time, never
  change a proposal.
* The user's default configuration, where all active knobs have a default, is proposal 0.
* No proposal equals a configuration that was seen, unless repeats are asked for.
* When nothing is left, the answer is `Exhausted`, and the study ends with that reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from itertools import chain, islice
from random import Random
from typing import Any, TypeAlias

from msgspec import Struct

from foresail.core.goal import Mode
from foresail.errors import CallerError
from foresail.space import Config, Space, Value

MOST_LISTED = 100_000
"""The systematic search looks at no more configurations than this before it gives up."""


class Observed(Struct, frozen=True):
    """One configuration of the history.

    Args:
        config: The configuration.
        value: The best value of the metric so far; None while there is none yet. NaN or an infinity means
            that the trial ended without a usable value; a model takes it for the worst value seen.
        step: The step up to which it was trained.
    """

    config: Mapping[str, Value]
    value: float | None
    step: int


class Exhausted(Struct, frozen=True, tag=True):
    """No new configuration can be proposed.

    Args:
        search: The name of the search.
        candidates: How many configurations were looked at for this proposal; each was seen or forbidden.
        size: How many configurations the space allows; None where that is not known.
    """

    search: str
    candidates: int
    size: int | None

    def __str__(self) -> str:
        space = "" if self.size is None else f" of a space of {self.size}"
        return f"{self.search}: all {self.candidates} candidates{space} were seen before or are forbidden"


Proposal: TypeAlias = Config | Exhausted


class Cache:
    """Keeps a model between proposals, for speed alone; one for each study, never stored."""

    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held: Any = None


class Ask(Struct, frozen=True):
    """Everything that a proposal may depend on, and a cache that it must not depend on."""

    space: Space
    seed: int
    k: int
    history: Sequence[Observed]
    mode: Mode
    cache: Cache

    def stream(self, *labels: object) -> Random:
        """Random numbers that belong to this proposal and these labels."""
        return Random(f"{self.seed}/{self.k}/{labels}")

    def stream_of_study(self, *labels: object) -> Random:
        """Random numbers that belong to the study and these labels, the same for every k."""
        return Random(f"{self.seed}/{labels}")


class Search(Struct, frozen=True):
    """A search by name. `candidates` yields configurations by preference, forbidden ones included."""

    name: str
    candidates: Callable[[Ask], Iterator[Config]]

    def propose(
        self,
        space: Space,
        *,
        seed: int,
        k: int,
        history: Sequence[Observed] = (),
        mode: Mode,
        seen: Set[str] | None = None,
        repeats: bool = False,
        cache: Cache | None = None,
    ) -> Proposal:
        """Proposal `k` of a study.

        Args:
            space: Where to search.
            seed: The study's seed.
            k: The number of the proposal, from 0.
            history: What was proposed before, in order, with what is known of it.
            mode: Which way of `Observed.value` is better.
            seen: `canonical` texts of what must not come again; None to make them from `history`.
                A caller that keeps the set pays no time for a long history.
            repeats: Allow configurations that were seen.
            cache: Made once for a study and handed in each time; it changes the speed alone.

        Returns:
            A configuration, or `Exhausted`.

        Raises:
            MissingExtraError: if the search needs a library that is not installed.
        """
        if not 0 <= k < 1 << 32:
            raise CallerError(f"proposal number k = {k!r}", allowed="0 to 2**32 - 1")
        ask = Ask(space, seed, k, history, mode, cache or Cache())
        if repeats:
            seen = frozenset()
        elif seen is None:
            seen = seen_in(space, history)
        looked = 0
        for looked, config in enumerate(chain(_default(ask), self.candidates(ask)), 1):  # noqa: B007
            if space.forbidding(config) is None and space.canonical(config) not in seen:
                return config
        return Exhausted(self.name, looked, space.size())


def seen_in(space: Space, history: Sequence[Observed]) -> set[str]:
    """The canonical texts of a history.

    A configuration that the space no longer allows cannot come again, and is left out.
    """
    seen = set()
    for observed in history:
        try:
            seen.add(space.canonical(observed.config))
        except CallerError:
            continue
    return seen


def systematic(ask: Ask) -> Iterator[Config]:
    """Every configuration of a countable space from a random one onwards; else ever finer grids."""
    space, size = ask.space, ask.space.size()
    if size is not None and size <= MOST_LISTED:
        start = ask.stream("systematic").randrange(size)
        yield from islice(space.grid(continuous=1), start, None)
        yield from islice(space.grid(continuous=1), start)
        return
    grids = (space.grid(continuous=c, counted=c) for c in (2, 3, 5, 9, 17, 33, 65))
    yield from islice(chain.from_iterable(grids), MOST_LISTED)


def learnable(ask: Ask) -> list[Observed]:
    """The history that a model can read: allowed configurations, worst values in place of unusable ones."""
    finite = [o.value for o in ask.history if o.value is not None and math.isfinite(o.value)]
    worst = (min(finite) if ask.mode == "max" else max(finite)) if finite else None
    kept = []
    for observed in ask.history:
        try:
            config = ask.space.check(observed.config)
        except CallerError:
            continue
        value = observed.value
        usable = value is None or math.isfinite(value)
        kept.append(Observed(config, value if usable else worst, observed.step))
    return kept


def finished(history: Collection[Observed]) -> list[Observed]:
    """Those with a value."""
    return [o for o in history if o.value is not None]


def _default(ask: Ask) -> Iterator[Config]:
    if ask.k == 0 and (default := ask.space.default()) is not None:
        yield default
