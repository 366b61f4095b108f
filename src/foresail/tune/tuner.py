"""`Tuner(...).fit()`, as Ray Tune's, run by Foresail."""

from __future__ import annotations

import functools
import inspect
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foresail.api.recorded import folder_of, load_events
from foresail.api.result import Result
from foresail.api.study import Named, Study, file_name
from foresail.core import events as ev
from foresail.core.goal import Goal
from foresail.core.words import Status, attempt_id, trial_of
from foresail.errors import CallerError
from foresail.integrations.loop import Length
from foresail.tune.session import BEST, Checkpoint, Finished, Session
from foresail.tune.spaces import ParamSpace
from foresail.worker.folder import StudyFolder
from foresail.worker.run import Run

_SEARCHES = {"OptunaSearch": "tpe", "HyperOptSearch": "tpe", "BayesOptSearch": "gp", "BasicVariantGenerator": "random"}
Trainable = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True, kw_only=True)
class TuneConfig:
    """Ray's settings, and Foresail's `policy`, `search`, `target` and `seed`.

    `num_samples`: trials; -1: until `time_budget_s` is over. `scheduler`: Ray's `FIFOScheduler` is heeded, any other is
    replaced by `policy`. `search_alg`: Ray's Optuna, HyperOpt and BayesOpt searches stand for Foresail's.
    """

    metric: str | None = None
    mode: str | None = None
    num_samples: int = 1
    time_budget_s: float | None = None
    max_concurrent_trials: int | None = None
    scheduler: Any = None
    search_alg: Any = None
    policy: Named | None = None
    search: Named | None = None
    target: float | None = None
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """`name` and `storage_path` (a folder) say where the log lies; a log that is there is continued. `stop`: only
    {"training_iteration": n}, the steps of a full training."""

    name: str | None = None
    storage_path: str | None = None
    stop: Mapping[str, Any] = field(default_factory=dict)


def with_parameters(trainable: Trainable, **parameters: Any) -> Trainable:
    """The training function with further arguments, which may be large: trials inherit them."""
    return functools.partial(trainable, **parameters)


def with_resources(trainable: Trainable, resources: Mapping[str, float]) -> Trainable:
    """The training function with the cores that each trial gets: {"cpu": 2}."""
    wrapped = functools.partial(trainable)
    wrapped.resources = dict(resources)  # type: ignore[attr-defined]
    return wrapped


class Tuner:
    """Trains a function with many configurations.

    Args:
        trainable: `train(config)`; reports by `tune.report`, or returns a dict of metrics.
        param_space: what it gets: values, and what is searched.
        tune_config: the goal and the budget.
        run_config: where the log lies, and how long a training is.
    """

    def __init__(
        self,
        trainable: Trainable,
        *,
        param_space: Mapping[str, Any] | None = None,
        tune_config: TuneConfig | None = None,
        run_config: RunConfig | None = None,
    ) -> None:
        if not callable(trainable) or inspect.isclass(trainable):
            raise CallerError(f"trainable is {trainable!r}", allowed="a function train(config)")
        self._trainable = trainable
        self._params = ParamSpace(dict(param_space or {}))
        self._tune, self._run = tune_config or TuneConfig(), run_config or RunConfig()

    def fit(self, *, quiet: bool = False) -> ResultGrid:
        """Run the study, or go on with it, and return what was found.

        Raises:
            CallerError: the goal or the space is wrong.
        """
        study = self._study()
        return ResultGrid(study.run(quiet=quiet), self._params, self._tune)

    def _study(self) -> Study:
        tune, space = self._tune, self._params.space()
        max_steps = _max_steps(self._run.stop)
        options: dict[str, Any] = {"seed": tune.seed, "workers": tune.max_concurrent_trials, "max_steps": max_steps}
        return Study(
            _training(self._trainable, self._params, max_steps),
            space=space,
            goal=self._goal(space.size()),
            storage=_log(self._run, self._trainable),
            policy=tune.policy or _policy(tune.scheduler, self._trainable),
            search=tune.search or ("grid" if self._params.is_grid else _search(tune.search_alg)),
            cores_per_trial=_cores(self._trainable),
            repeats=self._params.is_grid and tune.num_samples > 1,
            **options,
        )

    def _goal(self, size: int | None) -> Goal:
        tune = self._tune
        if tune.metric is None or tune.mode not in ("max", "min"):
            raise CallerError(
                f"metric = {tune.metric!r}, mode = {tune.mode!r}",
                allowed="the name of a metric, and max or min",
                do='give both, tune_config=tune.TuneConfig(metric="accuracy", mode="max")',
            )
        trials = None if tune.num_samples < 0 else tune.num_samples
        if self._params.is_grid and trials is not None and size is not None:
            trials *= size
        return Goal(tune.metric, tune.mode, tune.target, tune.time_budget_s, trials)  # type: ignore[arg-type]


def _training(trainable: Trainable, params: ParamSpace, max_steps: int | None) -> Callable[[Run], None]:
    def train(run: Run) -> None:
        try:
            Session.current = session = Session(run, max_steps)
            length = Length(run)
            returned = trainable(params.filled(run.config))
            if isinstance(returned, Mapping):
                session.report(returned, None)
            else:
                length.keep(max(session.reports, 1))
        except Finished:
            pass
        finally:
            Session.current = None

    return train


def _max_steps(stop: Mapping[str, Any]) -> int | None:
    for name in stop:
        if name != "training_iteration":
            raise CallerError(f"stop has {name!r}", allowed="training_iteration", do="give TuneConfig a target=")
    return stop.get("training_iteration")


def _log(config: RunConfig, trainable: Trainable) -> Path:
    stem = file_name(config.name or _function(trainable).__name__)
    folder, k = Path(config.storage_path or "").expanduser(), 1
    path = folder / f"{stem}.db"
    while config.name is None and path.exists():
        k += 1
        path = folder / f"{stem}-{k}.db"
    return path


def _function(trainable: Any) -> Any:
    return _function(trainable.func) if isinstance(trainable, functools.partial) else trainable


def _policy(scheduler: Any, trainable: Trainable) -> Named:
    """POP; without suspending where the function looks for no checkpoint, since it could not go on."""
    if type(scheduler).__name__ == "FIFOScheduler":
        return "fifo"
    code = getattr(_function(trainable), "__code__", None)
    return "pop" if code is None or "get_checkpoint" in code.co_names else {"name": "pop", "pause": False}


def _search(search_alg: Any) -> str:
    kind = type(search_alg).__name__
    if search_alg is not None and kind not in _SEARCHES:
        raise CallerError(f"there is no search like {kind}", allowed=", ".join(_SEARCHES), do="give search= a name")
    return _SEARCHES.get(kind, "random")


def _cores(trainable: Any) -> int:
    resources = getattr(trainable, "resources", {})
    if isinstance(trainable, functools.partial) and not resources:
        resources = getattr(trainable.func, "resources", {})
    if resources.get("gpu"):
        warnings.warn("GPUs of with_resources are not assigned: trials see all of them", RuntimeWarning)
    return max(1, round(float(resources.get("cpu", 1))))


# --- results -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TuneResult:
    """One trial. `metrics`: of its last report, with `training_iteration`. `checkpoint`: of its best."""

    metrics: dict[str, Any]
    config: dict[str, Any]
    checkpoint: Checkpoint | None
    path: str
    error: str | None
    history: tuple[dict[str, Any], ...]

    @property
    def metrics_dataframe(self) -> Any:
        """All its reports as a `pandas.DataFrame`."""
        import pandas

        return pandas.DataFrame(list(self.history))


class ResultGrid(Sequence[TuneResult]):
    """All trials in their order. `result`: Foresail's own, with its reasons; `storage` of it is the log."""

    def __init__(self, result: Result, params: ParamSpace, tune: TuneConfig) -> None:
        self.result = result
        self._tune = tune
        self._results = tuple(_results(result, params))

    def __len__(self) -> int:
        return len(self._results)

    def __getitem__(self, at: Any) -> Any:
        return self._results[at]

    @property
    def num_errors(self) -> int:
        """Trials that failed."""
        return sum(result.error is not None for result in self._results)

    def get_best_result(self, metric: str | None = None, mode: str | None = None, scope: str = "last") -> TuneResult:
        """The best trial by its last report, or with `scope="all"` by the best of all.

        Raises:
            CallerError: no trial has reported the metric.
        """
        metric, mode = metric or self._tune.metric or "", mode or self._tune.mode
        sign = 1.0 if mode == "max" else -1.0
        best: tuple[float, TuneResult] | None = None
        for result in self._results:
            reports = result.history[-1:] if scope == "last" else result.history
            values = [sign * point[metric] for point in reports if math.isfinite(point.get(metric, math.nan))]
            if values and (best is None or max(values) > best[0]):
                best = max(values), result
        if best is None:
            raise CallerError(f"no trial has reported {metric!r}", do="see the failures: foresail status")
        return best[1]

    def get_dataframe(self) -> Any:
        """The last report of each trial as a `pandas.DataFrame`."""
        import pandas

        return pandas.json_normalize([result.metrics for result in self._results], sep="/")


def _results(result: Result, params: ParamSpace) -> Iterator[TuneResult]:
    folder = folder_of(result.storage)
    history: dict[int, list[dict[str, Any]]] = {}
    for event in load_events(result.storage):
        if isinstance(event, ev.PointReported):
            row = {**event.metrics, "training_iteration": event.step}
            history.setdefault(trial_of(event.attempt), []).append(row)
    for trial in result.view.trials:
        rows = history.get(trial.id, [])
        config = params.filled(trial.config)
        lives = [StudyFolder(folder).attempt(attempt_id(trial.id, n)).path for n in range(trial.attempts, 0, -1)]
        best = next((life / BEST for life in lives if (life / BEST).is_dir()), None)
        yield TuneResult(
            metrics={**(rows[-1] if rows else {}), "config": config},
            config=config,
            checkpoint=None if best is None else Checkpoint(best),
            path=str(lives[0]) if lives else "",
            error=trial.detail if trial.ended is Status.FAILED else None,
            history=tuple(rows),
        )
