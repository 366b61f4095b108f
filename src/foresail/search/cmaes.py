"""CMA-ES, through the `cmaes` library that Optuna uses too, replayed from the history.

Optuna's own sampler keeps the state of the algorithm in attributes of its storage, so that a study which
is read back from our log would start over. Here the state is a function of the history: values in the
order of their proposals, one generation after the other. Knobs are quantiles in the unit cube; a Choice is
a stretch of it, an inactive knob stands still at its default or in the middle.

Theory: N. Hansen, The CMA evolution strategy: a tutorial (2016); initial step 0.3 of the range from there.
Restarts with a doubled population: A. Auger and N. Hansen, A restart CMA evolution strategy with
increasing population size (2005).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from foresail.errors import MissingExtraError
from foresail.search import random
from foresail.search.proposal import Ask, Observed, finished, learnable, systematic
from foresail.space import Config

TRIES = 16
"""Draws from the model's distribution before random ones: a narrow distribution over few levels repeats."""

_STEP = 0.3


class _State(Struct):
    """The algorithm after `told`; changed in place, and only ever forwards."""

    strategy: Any
    told: list[Observed]
    restarts: int = 0


def candidates(ask: Ask) -> Iterator[Config]:
    """Draws from the distribution that the history leads to, then random ones, then whatever is left."""
    strategy = _replayed(ask).strategy
    strategy.reseed_rng(ask.stream("cmaes").getrandbits(32))
    points = [strategy.ask().tolist() for _ in range(TRIES)]
    yield from map(ask.space.point, points)
    yield from random.draws(ask)
    yield from systematic(ask)


def _replayed(ask: Ask) -> _State:
    done = finished(learnable(ask))
    state: _State | None = ask.cache.held
    if state is None or done[: len(state.told)] != state.told:
        state = _State(_strategy(ask, restarts=0), [])
    while len(done) >= len(state.told) + state.strategy.population_size:
        _tell(ask, state, done[len(state.told) :][: state.strategy.population_size])
    ask.cache.held = state
    return state


def _tell(ask: Ask, state: _State, generation: Sequence[Observed]) -> None:
    import numpy as np

    sign = -1.0 if ask.mode == "max" else 1.0
    state.strategy.tell([(np.array(ask.space.quantiles(o.config)), sign * (o.value or 0.0)) for o in generation])
    state.told.extend(generation)
    if state.strategy.should_stop():
        state.restarts += 1
        state.strategy = _strategy(ask, restarts=state.restarts)


def _strategy(ask: Ask, *, restarts: int) -> Any:
    try:
        from cmaes import CMA
    except ImportError:
        raise MissingExtraError("cmaes", "optuna") from None
    import numpy as np

    K = len(ask.space.knobs)
    stream = ask.stream_of_study("cmaes", restarts)
    mean = [stream.random() for _ in range(K)] if restarts else ask.space.quantiles(ask.space.default() or {})
    strategy = CMA(np.array(mean), _STEP, bounds=np.array([[0.0, 1.0]] * K), seed=0)
    if not restarts:
        return strategy
    size = strategy.population_size * 2**restarts
    return CMA(np.array(mean), _STEP, bounds=np.array([[0.0, 1.0]] * K), seed=0, population_size=size)
