"""The rank rule of asynchronous successive halving (Li et al., MLSys 2020) over values that are kept by looks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from foresail.core.words import TrialId

ETA = 3


def rungs(steps: Sequence[int]) -> list[int]:
    """Places of the looks that are rungs: the first, each at least three times as long as the rung before, the last.

    >>> rungs([1, 2, 3, 4, 6, 8, 11])
    [0, 2, 6]
    """
    places = [0]
    for place, step in enumerate(steps):
        if step >= ETA * steps[places[-1]]:
            places.append(place)
    return places if places[-1] == len(steps) - 1 else [*places, len(steps) - 1]


def promoted(
    seen: Mapping[TrialId, Sequence[float]],
    steps: Sequence[int],
    able: Sequence[TrialId],
    sign: float,
    *,
    everyone: bool = False,
) -> TrialId | None:
    """Who goes on: of the highest rung where there is one, the best of those that stand among the
    best third of all that came to it; with `everyone`, whatever its rank.

    Args:
        seen: Of each trial its values at the looks that it has come to.
        steps: Of the looks.
        able: Trials that could go on.
        sign: +1 if more is better, -1 if less.
    """
    places = rungs(steps)
    for this, after in zip(places[-2::-1], places[:0:-1], strict=True):
        came = sorted(-sign * values[this] for values in seen.values() if len(values) > this)
        if len(came) < ETA and not everyone:
            continue
        worst = math.inf if everyone else came[len(came) // ETA - 1]
        here = [n for n in able if this < len(seen.get(n, ())) <= after and -sign * seen[n][this] <= worst]
        if here:
            return min(here, key=lambda n: (-sign * seen[n][this], n))
    return None
