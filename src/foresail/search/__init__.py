"""Which configuration next: `get(name).propose(space, seed=..., k=..., history=..., mode=...)`."""

from foresail.search.proposal import Cache, Exhausted, Observed, Proposal, Search, seen_in
from foresail.search.registry import NAMES, get

__all__ = ["NAMES", "Cache", "Exhausted", "Observed", "Proposal", "Search", "get", "seen_in"]
