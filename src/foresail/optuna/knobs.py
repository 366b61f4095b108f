"""Optuna's distributions as knobs, and the values of the ones as values of the others.

Options that a knob cannot have are named (`space.options`); the place of the name is the place of the option.
"""

from __future__ import annotations

from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from foresail.core.words import Config
from foresail.errors import CallerError
from foresail.space import Choice, Flag, Float, Int, Knob
from foresail.space.checks import check_knob, check_name
from foresail.space.options import options_of


def knob_of(name: str, distribution: BaseDistribution) -> Knob | None:
    """The knob that draws what the distribution allows; None where there is none (a single value, an odd name)."""
    if distribution.single():
        return None
    match distribution:
        case FloatDistribution(low=low, high=high, log=log, step=step):
            knob: Knob = Float(low, high, log=log, step=step)
        case IntDistribution(low=low, high=high, log=log, step=step):
            knob = Int(low, high, log=log, step=None if log or step == 1 else step)
        case CategoricalDistribution(choices=choices):
            knob = Choice(options_of(choices))
        case _:
            return None
    try:
        check_name(name)
        check_knob(name, knob)
    except CallerError:
        return None
    return knob


def distribution_of(knob: Knob) -> BaseDistribution:
    """What Optuna draws a knob's values from."""
    match knob:
        case Float():
            return FloatDistribution(knob.low, knob.high, log=knob.log, step=knob.step)
        case Int():
            return IntDistribution(knob.low, knob.high, log=knob.log, step=knob.step or 1)
        case Choice():
            return CategoricalDistribution(knob.options)
        case Flag():
            return CategoricalDistribution((False, True))


def value_in(config: Config, name: str, distribution: BaseDistribution) -> Any:
    """What the configuration says of `name`, as the distribution writes it.

    Raises:
        KeyError: it says nothing, or nothing that the distribution allows.
    """
    value: Any = config[name]
    if isinstance(distribution, CategoricalDistribution):
        options = options_of(distribution.choices)
        if value not in options:
            raise KeyError(name)
        return distribution.choices[options.index(value)]
    if isinstance(value, str) or not distribution._contains(distribution.to_internal_repr(value)):
        raise KeyError(name)
    return value
