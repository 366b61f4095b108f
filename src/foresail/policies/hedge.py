"""Two advisers, and how far to follow each: the index, which rests on forecasts, and ranks, which do not.

An adviser is right when a trial that it let run takes the lead of the study. With n changes of the lead, of which an
adviser brought c in its share of all training time s, its merit is (c + a) / (n s + a): one if it brings as many as
its time would let one expect. Shares are the prior ones times the merits (the multiplicative form of exponential
weights), so that they move to what has been right in this study, and not far on little evidence.
"""

from __future__ import annotations

from dataclasses import dataclass

PATIENCE = 2.0
"""a: changes of the lead that the prior counts as."""
LEAST, MOST = 0.1, 0.5
"""The share of ranks stays between these: neither adviser is ever without a word."""


@dataclass
class Hedge:
    """Changes of the lead, and seconds of training, by whether ranks let the trial run."""

    leads: int = 0
    leads_by_rank: int = 0
    total_s: float = 0.0
    by_rank_s: float = 0.0

    def trained(self, seconds: float, *, by_rank: bool, leads: bool) -> None:
        """A trial has reported. `leads`: it has taken the lead from another."""
        self.total_s, self.leads = self.total_s + seconds, self.leads + leads
        if by_rank:
            self.by_rank_s, self.leads_by_rank = self.by_rank_s + seconds, self.leads_by_rank + leads

    def share(self, prior: float) -> float:
        """Of ranks, between `LEAST` and `MOST`; `prior` if that is outside.

        >>> hedge = Hedge(leads=8, leads_by_rank=6, total_s=100.0, by_rank_s=25.0)
        >>> round(Hedge().share(0.25), 2), round(hedge.share(0.25), 2)
        (0.25, 0.5)
        """
        if self.total_s <= 0.0 or not LEAST <= prior <= MOST:
            return prior
        time = self.by_rank_s / self.total_s
        ranks = prior * (self.leads_by_rank + PATIENCE) / (self.leads * time + PATIENCE)
        index = (1.0 - prior) * (self.leads - self.leads_by_rank + PATIENCE) / (self.leads * (1.0 - time) + PATIENCE)
        return min(MOST, max(LEAST, ranks / (ranks + index)))
