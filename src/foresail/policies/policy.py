"""What a policy is: a pure function of the view, with an index that is folded from the same log.

`decide(index, view, rng) -> Plan` states the whole wanted allocation. An index is there for speed alone: it is made by
`begin` and changed by `observe` and nothing else, event by event, so it is as much a function of the log as the view
is, and a resumed study has the same one. `decide` changes neither.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np

from foresail.core.events import Event
from foresail.core.plan import Plan
from foresail.core.spec import StudySpec
from foresail.core.view import View

Rng = Callable[[], np.random.Generator]
"""Makes the generator of this decision, seeded by (study, decision); made only where it is used."""

Index = TypeVar("Index")


class Policy(Protocol[Index]):
    """Who gets which cores, and who ends."""

    def begin(self, spec: StudySpec) -> Index:
        """An empty index."""
        ...

    def observe(self, index: Index, view: View, event: Event) -> bool:
        """Carry the index over one event, which `view` already holds. True: a decision is due because of it.

        The engine decides without being asked when an attempt ends, at the start, and when time runs out.
        """
        ...

    def decide(self, index: Index, view: View, rng: Rng) -> Plan:
        """The whole wanted allocation. Every trial that holds cores has a verdict in it."""
        ...


AnyPolicy = Policy[Any]
