"""Foresail's policies as a scheduler of Ray Tune's trials.

    from foresail.tune.scheduler import Scheduler

    tune.TuneConfig(metric="accuracy", mode="max", num_samples=50, scheduler=Scheduler("pop", max_t=30))

Ray owns the trials, their processes and their checkpoints; results become events, the policy decides on the view that
they fold to, and what it wants is answered in Ray's words: CONTINUE, PAUSE, STOP, and which trial is to run next. A
trial that is to pause does so at a result that came with a checkpoint, so that nothing is trained twice; one that
brings none is trained until it is done or stopped.

Ray starts whatever is PENDING by itself, so a trial that has no slot is held as PAUSED from its first moment on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foresail.core import events as ev
from foresail.core.goal import maximize, minimize
from foresail.core.spec import Choice, StudySpec
from foresail.core.view import Trial
from foresail.core.words import Outcome, Status, TrialId
from foresail.errors import CallerError, MissingExtraError
from foresail.policies.registry import make
from foresail.space import Choice as Options
from foresail.space import Float, Int, Knob, Space
from foresail.space.options import options_of
from foresail.stores.sqlite import SqliteStore
from foresail.tune.ledger import Ledger

try:
    import ray
    from ray.tune.experiment import Trial as RayTrial
    from ray.tune.schedulers import TrialScheduler
    from ray.tune.search import sample
    from ray.tune.trainable import FunctionTrainable
    from ray.tune.utils import flatten_dict
except ImportError:
    raise MissingExtraError("Ray Tune", "ray") from None

_CHECKPOINT, _STEP, _STEP_S = "checkpoint_dir_name", "training_iteration", "time_this_iter_s"
"""In a result: where a function's checkpoint was put, None without one; the step; its seconds."""

_UNBOUNDED = 10**6
"""Trials, where Ray is to make them until it is stopped."""


class Scheduler(TrialScheduler):  # type: ignore[misc]  # Ray has no types
    """A policy that decides which of Ray Tune's trials run, wait and end.

    Args:
        policy: "hybrid", "pop" or another of Foresail's; `options` are those of the policy.
        metric, mode: if not given, those of `TuneConfig`.
        target: the study ends when a trial reaches it; what the policy aims at until then.
        within: the study ends after so long: seconds, or "20 min".
        max_t: steps (`training_iteration`) at which a trial is done. If not given, forecasts have to learn from the
            first trial that ends how long a training is.
        param_space: what `Tuner` got, so that forecasts know the hyperparameters; without it they see curves alone.
        slots: trials at a time. If not given, as many as the cluster has room for when the first trial comes.
        log: a file that does not exist yet, for all that happens: `foresail explain`, `serve` and `report` read it.

    Raises:
        CallerError: there is no such policy or option.
    """

    _supports_buffered_results = False

    def __init__(
        self,
        policy: str = "hybrid",
        *,
        metric: str | None = None,
        mode: str | None = None,
        target: float | None = None,
        within: float | str | None = None,
        max_t: int | None = None,
        param_space: Mapping[str, Any] | None = None,
        slots: int | None = None,
        log: Path | str | None = None,
        seed: int = 0,
        **options: Any,
    ) -> None:
        super().__init__()
        self._policy = Choice(policy, options)
        make(self._policy)
        self._metric, self._mode = metric, mode
        self._target, self._within = target, within
        self._max_t, self._seed, self._slots = max_t, seed, slots
        self._searched = dict(_searched(param_space or {}))
        self._log, self._written = log, 0
        self._store: SqliteStore | None = None
        self._ledger: Ledger | None = None
        self._number: dict[str, TrialId] = {}
        self._began_s, self._samples = 0.0, _UNBOUNDED

    def set_search_properties(self, metric: str | None, mode: str | None, **spec: Any) -> bool:
        """Ray tells the metric of `TuneConfig`; False where it was given to both."""
        if (self._metric and metric) or (self._mode and mode):
            return False
        self._metric, self._mode = metric or self._metric, mode or self._mode
        if not self._metric or self._mode not in ("min", "max"):
            raise CallerError("a scheduler that foresees needs a metric", do="TuneConfig(metric='loss', mode='min')")
        samples = spec.get("num_samples", 1)
        self._samples = samples if samples > 0 else _UNBOUNDED
        return True

    # --- what Ray tells ---------------------------------------------------------------------------------------

    def on_trial_add(self, tune_controller: Any, trial: RayTrial) -> None:
        """A trial was proposed."""
        if trial.is_finished():
            return  # of an experiment that is restored
        ledger = self._ledger or self._begin(trial)
        given = flatten_dict(trial.config, delimiter=".")
        config = {name: found.value(given[name]) for name, found in self._searched.items() if name in given}
        self._number[trial.trial_id] = ledger.propose(self._now_s(), config, "ray")

    def on_trial_result(self, tune_controller: Any, trial: RayTrial, result: dict[str, Any]) -> str:
        """A step is done: what the trial is to do now."""
        ledger, own = self._own(trial)
        if own.attempt is None:
            return str(self.CONTINUE)  # Ray runs it without our leave, after a restart of its own
        self._report(own, result)
        if self._max_t is not None and result[_STEP] >= self._max_t:
            self._leave(own, Outcome.COMPLETED)
        ledger.decide()
        answer = self._answer(trial, own, result)
        ledger.decide()
        if answer == self.PAUSE and own.attempt is not None:
            answer = str(self.CONTINUE)  # what is free now is its own again
        self._stop_ended(tune_controller)
        self._write()
        return answer

    def on_trial_complete(self, tune_controller: Any, trial: RayTrial, result: dict[str, Any]) -> None:
        """It has come to its end, or has been stopped."""
        ledger, own = self._own(trial)
        if own.attempt is not None:
            self._report(own, result)
            self._leave(own, Outcome.COMPLETED)
        ledger.decide()
        self._stop_ended(tune_controller)
        self._write()

    def on_trial_error(self, tune_controller: Any, trial: RayTrial) -> None:
        """It has failed, Ray's own retries included."""
        ledger, own = self._own(trial)
        if own.attempt is not None:
            self._leave(own, Outcome.FAILED, str(trial.get_error() or "").strip().rpartition("\n")[2])
        ledger.decide()
        self._write()

    def on_trial_remove(self, tune_controller: Any, trial: RayTrial) -> None:
        """It is stopped while it waits."""
        ledger, own = self._own(trial)
        if own.attempt is not None:
            self._leave(own, Outcome.KILLED)
        if own.ended is None:
            ledger.record(ev.TrialEnded(at_s=self._now_s(), trial=own.id, status=Status.ENDED, detail="stopped by Ray"))
        self._write()

    def choose_trial_to_run(self, tune_controller: Any) -> RayTrial | None:
        """The next that has a slot and does not run yet. Who has none is held."""
        if self._ledger is None:
            return None
        self._live.pass_time(self._now_s())
        self._live.decide()
        self._stop_ended(tune_controller)
        self._write()
        granted = None
        for trial in tune_controller.get_trials():
            if trial.status not in (RayTrial.PENDING, RayTrial.PAUSED) or trial.trial_id not in self._number:
                continue
            if self._own(trial)[1].attempt is not None:
                granted = granted or (trial if trial.status == RayTrial.PAUSED else None)
            elif trial.status == RayTrial.PENDING:
                tune_controller._set_trial_status(trial, RayTrial.PAUSED)  # as Ray's HyperBand does
        return granted

    def debug_string(self) -> str:
        """A line for Ray's display."""
        if self._ledger is None:
            return f"Foresail, {self._policy.name}"
        view = self._ledger.view
        best = "no value yet" if view.best is None else f"best {self._metric} {view.best[2]:.6g}"
        waits = f"{len(view.attempts)} run, {len(view.suspended)} are suspended, {len(view.waiting)} wait"
        return f"Foresail, {self._policy.name}: {best}; {waits}"

    # --- what follows -----------------------------------------------------------------------------------------

    def _begin(self, first: RayTrial) -> Ledger:
        made = maximize if self._mode == "max" else minimize
        goal = made(str(self._metric), target=self._target, within=self._within, trials=self._samples)
        space = {name: found.knob for name, found in self._searched.items()}
        spec = StudySpec(
            name=first.experiment_tag or "ray",
            space=Space.of(space).to_dict() if space else {},
            goal=goal,
            seed=self._seed,
            policy=self._policy,
            max_steps=self._max_t,
            retries=0,
        )
        self._began_s = time.monotonic()
        self._ledger = Ledger(spec, self._slots or _room(first))
        return self._ledger

    @property
    def _live(self) -> Ledger:
        """The ledger, which is there from the first trial on."""
        assert self._ledger is not None
        return self._ledger

    def _own(self, trial: RayTrial) -> tuple[Ledger, Trial]:
        """The trial in the view."""
        return self._live, self._live.view.trials[self._number[trial.trial_id]]

    def _now_s(self) -> float:
        before = self._ledger.view.now_s if self._ledger else 0.0
        return max(before, time.monotonic() - self._began_s)

    def _report(self, own: Trial, result: Mapping[str, Any]) -> None:
        """The point of a result and the checkpoint that came with it; what has been seen is refused."""
        assert own.attempt is not None
        value, step, now_s = result.get(str(self._metric)), int(result[_STEP]), self._now_s()
        if value is None:
            return
        point = {str(self._metric): float(value)}
        seconds = float(result.get(_STEP_S) or 0.0)
        self._live.record(ev.PointReported(at_s=now_s, attempt=own.attempt, step=step, metrics=point, seconds=seconds))
        if result.get(_CHECKPOINT) and own.attempt is not None:
            self._save(own, step)

    def _save(self, own: Trial, step: int) -> None:
        assert own.attempt is not None
        path = f"ray/{own.id}/{own.attempts}-{step}"
        self._live.record(ev.CheckpointSaved(at_s=self._now_s(), attempt=own.attempt, step=step, path=path))

    def _leave(self, own: Trial, outcome: Outcome, detail: str = "") -> None:
        assert own.attempt is not None
        self._live.record(ev.AttemptEnded(at_s=self._now_s(), attempt=own.attempt, outcome=outcome, detail=detail))

    def _answer(self, trial: RayTrial, own: Trial, result: Mapping[str, Any]) -> str:
        """In Ray's words, what the ledger says of a trial that has just reported."""
        view = self._live.view
        if own.ended is not None or view.ending is not None:
            if own.attempt is not None:
                self._leave(own, Outcome.KILLED if own.ended is not None else Outcome.YIELDED)
            return str(self.STOP)
        assert own.attempt is not None
        saves_itself = not issubclass(trial.get_trainable_cls(), FunctionTrainable)
        if not view.attempts[own.attempt].ending or not (saves_itself or result.get(_CHECKPOINT)):
            return str(self.CONTINUE)
        if saves_itself:
            self._save(own, int(result[_STEP]))
        self._leave(own, Outcome.YIELDED)
        return str(self.PAUSE)

    def _stop_ended(self, tune_controller: Any) -> None:
        """What waits and is wanted no more."""
        view = self._live.view
        for trial in tune_controller.get_trials():
            if trial.status not in (RayTrial.PENDING, RayTrial.PAUSED) or trial.trial_id not in self._number:
                continue
            if view.ending is not None or self._own(trial)[1].ended is not None:
                trial.init_local_path()  # Ray's results want a folder of each, also of those that never ran
                tune_controller.stop_trial(trial)

    def _write(self) -> None:
        if self._log is None:
            return
        if self._store is None:
            self._store = SqliteStore.open(self._log)
            if self._store.last:
                raise CallerError(f"{self._log} holds a study already", do="name a file that does not exist")
        self._store.append(self._live.events[self._written :])
        self._written = len(self._live.events)


def _room(trial: RayTrial) -> int:
    """How many trials like this one the cluster has room for."""
    wanted, there = trial.placement_group_factory.required_resources, ray.cluster_resources()
    return max(1, min((int(there.get(name, 0) // count) for name, count in wanted.items() if count), default=1))


# --- what is searched ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Searched:
    """A place of Ray's parameter space that is searched; `options`: those of a choice, as Ray has them."""

    knob: Knob
    options: tuple[Any, ...] = ()

    def value(self, given: Any) -> Any:
        """What a trial has there, as the knob has it."""
        return self.knob.options[self.options.index(given)] if isinstance(self.knob, Options) else given


def _searched(table: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, Searched]]:
    """By name, "model.lr" for nested ones. What has no bounds cannot be placed and is left out."""
    for key, value in table.items():
        place = (*path, str(key))
        is_grid = isinstance(value, dict) and set(value) == {"grid_search"}
        domain = sample.choice(value["grid_search"]) if is_grid else value
        if isinstance(domain, dict):
            yield from _searched(domain, place)
        elif isinstance(domain, sample.Domain):
            found = _knob(domain)
            if found is not None:
                yield ".".join(place), found


def _knob(domain: sample.Domain) -> Searched | None:
    sampler = domain.get_sampler()
    quantized = isinstance(sampler, sample.Quantized)
    is_log = isinstance(sampler.get_sampler() if quantized else sampler, sample.LogUniform)
    match domain:
        case sample.Categorical(categories=options) if len(options) > 1:
            return Searched(Options(options_of(options)), tuple(options))
        case sample.Float(lower=low, upper=high) if abs(low) != float("inf") != abs(high):
            return Searched(Float(low, high, log=is_log))
        case sample.Integer(lower=low, upper=high) if high - 1 > low:
            return Searched(Int(low, high if quantized else high - 1, log=is_log))
        case _:
            return None
