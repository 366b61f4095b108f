"""The engine's side of a search: which configurations are known, and what has become of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set
from hashlib import blake2b
from typing import overload

from foresail.core import events as ev
from foresail.core.spec import StudySpec
from foresail.core.view import Trial, View
from foresail.core.words import Config, Status, TrialId
from foresail.search.proposal import Cache, Exhausted, Observed, Search
from foresail.space import Space


class Known(Set[str]):
    """Texts that were added, as digests: ten thousand configurations take half a megabyte."""

    def __init__(self) -> None:
        self._digests: set[bytes] = set()
        self._asked = b""

    def add(self, text: str) -> None:
        self._digests.add(_digest(text))

    def add_asked(self) -> None:
        """Add what was asked for last."""
        self._digests.add(self._asked)

    def __contains__(self, text: object) -> bool:
        self._asked = _digest(str(text))
        return self._asked in self._digests

    def __len__(self) -> int:
        return len(self._digests)

    def __iter__(self) -> Iterator[str]:
        raise TypeError("the texts themselves are not kept")


def _digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=12).digest()


class History(Sequence[Observed]):
    """The trials of a view as a search sees them; made when it is looked at."""

    def __init__(self, view: View) -> None:
        self._trials = view.trials

    def __len__(self) -> int:
        return len(self._trials)

    @overload
    def __getitem__(self, at: int) -> Observed: ...
    @overload
    def __getitem__(self, at: slice) -> list[Observed]: ...
    def __getitem__(self, at: int | slice) -> Observed | list[Observed]:
        found = self._trials[at]
        return [_observed(t) for t in found] if isinstance(found, list) else _observed(found)


def _observed(trial: Trial) -> Observed:
    unusable = trial.ended in (Status.DIVERGED, Status.FAILED)
    return Observed(trial.config, math.nan if unusable else trial.best_value, trial.last_step)


class Proposals:
    """Proposes trials for a study, each new. Like a policy's index it is a function of the log and nothing else.

    `begin` comes first, with the study's first event.
    """

    _spec: StudySpec
    space: Space

    def __init__(self, search: Search) -> None:
        self._search = search
        self._known = Known()
        self._cache = Cache()
        self._fresh: Config | None = None

    def begin(self, spec: StudySpec) -> None:
        self._spec = spec
        self.space = Space.from_dict(spec.space)

    def observe(self, event: ev.Event) -> None:
        if isinstance(event, ev.TrialProposed):
            if event.config is self._fresh:  # the search has just asked whether it is known
                self._known.add_asked()
            else:
                self._known.add(self.space.canonical(event.config))

    def propose(self, view: View, count: int) -> Iterator[ev.TrialProposed | ev.SearchExhausted]:
        """Up to `count` new trials. Apply each before taking the next."""
        for _ in range(count):
            if not view.can_open:
                return
            yield self._next(view)

    def _next(self, view: View) -> ev.TrialProposed | ev.SearchExhausted:
        k = len(view.trials)
        proposal = self._search.propose(
            self.space,
            seed=self._spec.seed,
            k=k,
            history=History(view),
            mode=self._spec.goal.mode,
            seen=self._known,
            repeats=self._spec.repeats,
            cache=self._cache,
        )
        if isinstance(proposal, Exhausted):
            return ev.SearchExhausted(at_s=view.now_s, why=str(proposal))
        self._fresh = None if self._spec.repeats else proposal
        origin = "default" if k == 0 and proposal == self.space.default() else self._search.name
        return ev.TrialProposed(at_s=view.now_s, trial=TrialId(k), config=proposal, origin=origin)
