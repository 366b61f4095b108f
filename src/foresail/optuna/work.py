"""In the training process: an Optuna objective as a training function.

The objective gets a real `optuna.Trial` of a study in memory, whose sampler reads the configuration that the trial was
granted and whose pruner asks whether the trial must leave. A parameter that the configuration does not have, since it
was not met when the space was discovered, is drawn here, from the trial's seed and its name: the same in each of its
lives. What was asked for and what was returned goes into the log as a note.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, distribution_to_json
from optuna.samplers import BaseSampler, RandomSampler

from foresail.core.words import Config
from foresail.errors import CallerError, TrainingError
from foresail.integrations.loop import Length
from foresail.optuna.knobs import value_in
from foresail.space.options import options_of
from foresail.worker.entry import load
from foresail.worker.run import Run

Objective = Callable[[Any], Any]
SETTINGS = "FORESAIL_OPTUNA"
"""Names the objective and the directions, as JSON, to processes that were not forked from the caller's."""
NOTE = "optuna"


class Trial(optuna.trial.Trial):
    """An Optuna trial whose reports go to Foresail. `run` is Foresail's handle of the same trial."""

    run: Run
    shown_number: int
    noted: int

    @property
    def number(self) -> int:
        """The trial's number in the whole study."""
        return self.shown_number

    def report(self, value: float, step: int) -> None:
        """As Optuna's. Foresail counts completed steps from 1, so its step is one higher."""
        known = len(self._cached_frozen_trial.intermediate_values)
        super().report(value, step)
        reported = self._cached_frozen_trial.intermediate_values
        if len(reported) == known or int(step) < max(reported):
            return  # Optuna has warned, or a step came late: curves only grow
        self.tell_params()
        self.run.report(step=int(step) + 1, **{metric_names(1)[0]: reported[int(step)]})

    def should_prune(self) -> bool:
        """Whether the trial must leave now. A trial that Foresail ends for good is ended without being asked."""
        return self.run.should_stop

    def tell_params(self) -> None:
        """Note the parameters that were asked for since the last time."""
        frozen = self._cached_frozen_trial
        if len(frozen.distributions) > self.noted:
            self.noted = len(frozen.distributions)
            asked = {name: _written(d, frozen.params[name]) for name, d in frozen.distributions.items()}
            self.run.note(**{NOTE: {"params": asked}})


def ways(directions: Sequence[str]) -> list[Any]:
    """Directions as Optuna's types want them."""
    return list(directions)


def metric_names(objectives: int) -> list[str]:
    """Under which names the values of an objective are reported."""
    return ["value"] if objectives == 1 else [f"value_{k}" for k in range(objectives)]


def training(objective: Objective, directions: Sequence[str], first: int = 0) -> Callable[[Run], None]:
    """The training function that runs `objective`; trial 0 is number `first` of the Optuna study."""

    def train(run: Run) -> None:
        trial, length = _trial(run, directions, first), Length(run)
        try:
            returned = objective(trial)
        except optuna.TrialPruned:
            _leave(trial, {"state": "PRUNED"})
            return
        run.heeded = False  # it was asked to leave and is done all the same
        values = _checked(returned, len(directions))
        if not trial._cached_frozen_trial.intermediate_values:
            trial.tell_params()
            run.report(step=run.resume_step + 1, **dict(zip(metric_names(len(directions)), values, strict=True)))
        else:
            length.keep(max(trial._cached_frozen_trial.intermediate_values) + 1)
        _leave(trial, {"values": values})

    return train


def train(run: Run) -> None:
    """The same for a process that finds the objective by its name."""
    settings = json.loads(os.environ[SETTINGS])
    if not settings["objective"]:
        raise CallerError("the objective exists only in the script that began this study", do="run that script again")
    training(load(settings["objective"]), settings["directions"], settings["first"])(run)


def _trial(run: Run, directions: Sequence[str], first: int) -> Trial:
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(directions=ways(directions), sampler=Granted(run.config, run.seed))
    optuna.logging.set_verbosity(level)
    trial = Trial(study, study._storage.create_new_trial(study._study_id))
    trial.run, trial.noted, trial.shown_number = run, 0, run.trial + first
    return trial


def _leave(trial: Trial, how: dict[str, Any]) -> None:
    trial.tell_params()
    attrs = {**trial.user_attrs}
    try:
        trial.run.note(**{NOTE: {**how, "user_attrs": attrs}})
    except TrainingError:
        trial.run.note(**{NOTE: {**how, "user_attrs": {name: repr(value) for name, value in attrs.items()}}})


def _checked(returned: Any, objectives: int) -> list[float]:
    """What the objective returned, as floats."""
    values = returned if isinstance(returned, Sequence) else [returned]
    try:
        numbers = [float(value) for value in values]
    except (TypeError, ValueError):
        numbers = []
    if len(numbers) != objectives:
        raise TrainingError(f"the objective returned {returned!r}", allowed=f"{objectives} number(s), one a direction")
    return numbers


def _written(distribution: BaseDistribution, value: Any) -> list[Any]:
    """A parameter as Optuna's storages write it: its number and its distribution."""
    number = distribution.to_internal_repr(value)
    try:
        return [number, distribution_to_json(distribution)]
    except TypeError:  # choices that JSON does not have
        assert isinstance(distribution, CategoricalDistribution)
        return [number, distribution_to_json(CategoricalDistribution(options_of(distribution.choices)))]


class Granted(BaseSampler):
    """Gives what the configuration says, and draws what it does not say."""

    def __init__(self, config: Config, seed: int) -> None:
        self._config, self._seed = config, seed

    def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, BaseDistribution]:
        return {}

    def sample_relative(self, study: Any, trial: Any, search_space: Any) -> dict[str, Any]:
        return {}

    def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: BaseDistribution) -> Any:
        try:
            return value_in(self._config, param_name, param_distribution)
        except KeyError:
            seed = int.from_bytes(blake2b(f"{self._seed}/{param_name}".encode(), digest_size=4).digest())
            return RandomSampler(seed).sample_independent(study, trial, param_name, param_distribution)
