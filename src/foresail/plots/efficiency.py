"""The map of accuracy and efficiency: where each trial is expected to end against how fast it goes.

The two potentials that decisions rest on, in one picture: expected final value, steps a second, the chance of the
target as size, the class as colour and symbol.
"""

from __future__ import annotations

from msgspec import Struct

from foresail.core.view import Trial, View
from foresail.core.words import Label
from foresail.plots.chronicle import Chronicle
from foresail.plots.foreseen import Foreseen
from foresail.plots.trials import label_of
from foresail.policies.pop import Pop, threshold


class Spot(Struct, frozen=True):
    """One trial. `final`: median of the value at the end, `low` to `high` holds 90 %; `p`: chance of the target.

    `seen_frac`: share of its training that has been seen; `cores`: of its latest attempt, 0 where not known.
    """

    trial: int
    status: str
    label: str | None
    final: float
    low: float
    high: float
    steps_per_s: float
    p: float
    best: float | None
    seen_frac: float


class PotentialMap(Struct, frozen=True):
    """`classes_by`: "policy", or "forecasts" where the policy has no classes: POP's rule on these very chances."""

    events: int
    metric: str
    mode: str
    target: float
    has_target: bool
    classes_by: str
    spots: tuple[Spot, ...]


def potential_map(chronicle: Chronicle, foreseen: Foreseen) -> PotentialMap:
    """The map; trials without a measured speed are left out."""
    view = chronicle.view
    trials = [view.trials[int(number)] for number in foreseen.trials]
    shown = [t for t in trials if t.step_s]
    by_policy = any(label_of(t) for t in view.trials)
    labels = {t.id: label_of(t) for t in shown} if by_policy else _labels(view, shown, foreseen)
    goal = view.spec.goal
    return PotentialMap(
        events=view.events,
        metric=goal.metric,
        mode=goal.mode,
        target=foreseen.target,
        has_target=goal.target is not None,
        classes_by="policy" if by_policy else "forecasts",
        spots=tuple(_spot(view, t, foreseen, labels[t.id]) for t in shown),
    )


def _labels(view: View, trials: list[Trial], foreseen: Foreseen) -> dict[int, str | None]:
    """POP's classes from the chances alone."""
    chance = {t.id: float(foreseen.chance[foreseen.row[t.id]]) for t in trials}
    p_star, dedicated = threshold(list(chance.values()), max(1, view.slots))
    best = sorted(chance, key=lambda t: -chance[t])[:dedicated]
    promising = {t for t in best if chance[t] >= p_star}
    poor = {t for t in chance if chance[t] < Pop.poor} - promising
    return {
        t: (Label.PROMISING if t in promising else Label.POOR if t in poor else Label.OPPORTUNISTIC).value
        for t in chance
    }


def _spot(view: View, trial: Trial, foreseen: Foreseen, label: str | None) -> Spot:
    row = foreseen.row[trial.id]
    low, _, final, _, high = foreseen.final[:, row].tolist()
    assert trial.step_s is not None
    return Spot(
        trial=trial.id,
        status=view.status(trial).value,
        label=label,
        final=final,
        low=low,
        high=high,
        steps_per_s=1.0 / trial.step_s,
        p=float(foreseen.chance[row]),
        best=trial.best_value,
        seen_frac=min(1.0, trial.last_step / (trial.max_steps or foreseen.horizon[-1])),
    )
