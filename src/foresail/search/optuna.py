"""TPE and GP, through Optuna's ask-and-tell in memory.

Optuna sees a study that we build from the recorded history, and a sampler that is new for each proposal and
seeded by (seed, k); it stores nothing. Its history is capped: the cost of a proposal stays bounded, and
the best and the latest carry what a model needs. Both start with Sobol points.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from msgspec import Struct

from foresail.errors import MissingExtraError
from foresail.search import random, sobol
from foresail.search.proposal import Ask, Observed, finished, learnable, systematic
from foresail.space import Choice, Config, Flag, Float, Int, Knob, Value

STARTUP = 10
"""Values before a model is asked, as in Optuna's samplers."""
TRIES = 4
"""Times the model is asked again, with another seed, for something new."""
TPE_MOST, GP_MOST = 1000, 200
"""Observations handed over. A fresh GP costs 2 s at 100 and 9 s at 1000 observations of 8 knobs."""


class _Mirror(Struct):
    """An Optuna study that has been told `told`."""

    study: Any
    told: list[Observed]


def tpe(ask: Ask) -> Iterator[Config]:
    """The multivariate tree-structured Parzen estimator, conditions respected (Bergstra et al. 2011)."""
    return _candidates(ask, _tpe_sampler, _ask_by_condition, TPE_MOST)


def gp(ask: Ask) -> Iterator[Config]:
    """A Gaussian process with expected improvement; an inactive knob stands at its default or middle."""
    if find_spec("torch") is None:
        raise MissingExtraError("PyTorch", "torch")
    return _candidates(ask, _gp_sampler, _ask_at_once, GP_MOST)


def _candidates(
    ask: Ask, sampler: Callable[[int], Any], draw: Callable[[Ask, Any], Config], most: int
) -> Iterator[Config]:
    optuna = _optuna()
    history = learnable(ask)
    if len(finished(history)) < STARTUP:
        yield from sobol.candidates(ask)
        return
    full = draw is _ask_at_once
    kept = _capped(history, ask, most)
    for attempt in range(TRIES):
        with _quiet(optuna):
            config = _asked(ask, kept, sampler(ask.stream("optuna", attempt).getrandbits(32)), draw, full)
        yield config
    yield from random.draws(ask)
    yield from systematic(ask)


def _asked(
    ask: Ask, history: Sequence[Observed], sampler: Any, draw: Callable[[Ask, Any], Config], full: bool
) -> Config:
    """One question to the study, which afterwards has forgotten it and all that was pending."""
    study = _mirrored(ask, history, full)
    study.sampler = sampler
    pending = [_trial(ask, o, full) for o in history if o.value is None]
    first = len(study.get_trials(deepcopy=False))
    study.add_trials(pending)
    config = draw(ask, study)
    for trial in study.get_trials(deepcopy=False)[first:]:
        study.tell(trial.number, state=_optuna().trial.TrialState.FAIL)
    return config


def _mirrored(ask: Ask, history: Sequence[Observed], full: bool) -> Any:
    done = finished(history)
    mirror = ask.cache.held
    if mirror is None or done[: len(mirror.told)] != mirror.told:
        mirror = _Mirror(_optuna().create_study(direction=f"{ask.mode}imize"), [])
    for observed in done[len(mirror.told) :]:
        mirror.study.add_trial(_trial(ask, observed, full))
    mirror.told = done
    ask.cache.held = mirror
    return mirror.study


def _trial(ask: Ask, observed: Observed, full: bool) -> Any:
    optuna = _optuna()
    state = optuna.trial.TrialState
    params = _imputed(ask, observed.config) if full else dict(observed.config)
    return optuna.trial.create_trial(
        state=state.RUNNING if observed.value is None else state.COMPLETE,
        value=observed.value,
        params=params,
        distributions={name: _distribution(ask.space.knobs[name]) for name in params},
    )


def _ask_by_condition(ask: Ask, study: Any) -> Config:
    trial = study.ask()
    return ask.space.build(lambda name, knob: knob.parse(_suggested(trial, name, knob)))


def _suggested(trial: Any, name: str, knob: Knob) -> object:
    match knob:
        case Float():
            return trial.suggest_float(name, knob.low, knob.high, log=knob.log, step=knob.step)
        case Int():
            return trial.suggest_int(name, knob.low, knob.high, log=knob.log, step=knob.step or 1)
        case Choice():
            return trial.suggest_categorical(name, knob.options)
        case Flag():
            return trial.suggest_categorical(name, (False, True))


def _ask_at_once(ask: Ask, study: Any) -> Config:
    trial = study.ask({name: _distribution(knob) for name, knob in ask.space.knobs.items()})
    return ask.space.build(lambda name, knob: knob.parse(trial.params[name]))


def _imputed(ask: Ask, config: Any) -> dict[str, Value]:
    at = dict(zip(ask.space.knobs, ask.space.quantiles(config), strict=True))
    return {name: config.get(name, knob.at(at[name])) for name, knob in ask.space.knobs.items()}


def _distribution(knob: Knob) -> Any:
    distributions = _optuna().distributions
    if isinstance(knob, Choice):
        return distributions.CategoricalDistribution(knob.options)
    if isinstance(knob, Flag):
        return distributions.CategoricalDistribution((False, True))
    if isinstance(knob, Float):
        return distributions.FloatDistribution(knob.low, knob.high, log=knob.log, step=knob.step)
    return distributions.IntDistribution(knob.low, knob.high, log=knob.log, step=knob.step or 1)


def _capped(history: list[Observed], ask: Ask, most: int) -> list[Observed]:
    """The better half of `most` and the latest half, in the order of the history."""
    if len(history) <= most:
        return history
    latest = set(range(len(history) - most // 2, len(history)))
    sign = -1.0 if ask.mode == "max" else 1.0
    values = [(sign * o.value, i) for i, o in enumerate(history) if o.value is not None and i not in latest]
    best = {i for _, i in sorted(values)[: most - len(latest)]}
    return [o for i, o in enumerate(history) if i in latest or i in best]


def _tpe_sampler(seed: int) -> Any:
    return _optuna().samplers.TPESampler(
        seed=seed,
        multivariate=True,
        group=True,
        constant_liar=True,
        n_startup_trials=1,
        warn_independent_sampling=False,
    )


def _gp_sampler(seed: int) -> Any:
    return _optuna().samplers.GPSampler(seed=seed, n_startup_trials=1, warn_independent_sampling=False)


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise MissingExtraError("Optuna", "optuna") from None
    return optuna


@contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """No log lines about studies in memory, no warnings that an option is experimental; then as before."""
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(level)
