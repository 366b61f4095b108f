"""`create_study`: an Optuna study whose `optimize` is Foresail's."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import optuna

from foresail.api.display import showing
from foresail.api.drive import drive
from foresail.api.recorded import load_events
from foresail.api.result import Result
from foresail.api.study import Study, file_name
from foresail.api.summary import summary
from foresail.core import events as ev
from foresail.core.goal import Goal
from foresail.core.spec import StudySpec
from foresail.core.view import View, fold
from foresail.errors import CallerError, TrainingError
from foresail.executors.template import unsafe_to_fork
from foresail.optuna.discover import discover
from foresail.optuna.records import Mirror
from foresail.optuna.work import SETTINGS, Objective, metric_names, training
from foresail.space import Space
from foresail.worker.entry import refer

_SEARCHES = {
    "TPESampler": "tpe",
    "RandomSampler": "random",
    "GPSampler": "gp",
    "CmaEsSampler": "cmaes",
    "QMCSampler": "sobol",
}
Named = str | Mapping[str, Any]
Direction = Literal["minimize", "maximize"] | optuna.study.StudyDirection


def create_study(
    *,
    storage: str | optuna.storages.BaseStorage | None = None,
    sampler: optuna.samplers.BaseSampler | None = None,
    pruner: optuna.pruners.BasePruner | None = None,
    study_name: str | None = None,
    direction: Direction | None = None,
    load_if_exists: bool = False,
    directions: Sequence[Direction] | None = None,
    log: str | Path | None = None,
    space: Space | None = None,
    policy: Named | None = None,
    workers: int | None = None,
    cores_per_trial: int = 1,
    target: float | None = None,
    max_steps: int | None = None,
    seed: int = 0,
    quiet: bool = False,
) -> TunedStudy:
    """An Optuna study whose trials Foresail runs: the arguments of `optuna.create_study`, and Foresail's own.

    Args:
        storage: as Optuna's; what happens is written there as it happens, so that its dashboard shows it.
        sampler: stands for Foresail's search of the same kind; TPE if not given, Sobol points for several objectives.
        pruner: `NopPruner` for "never end a trial early"; any other is replaced by `policy`.
        study_name: as Optuna's.
        direction: as Optuna's: "minimize" if not given.
        load_if_exists: as Optuna's, and of `log`: continue the study that it holds.
        directions: of several objectives.
        log: Foresail's log; "<study_name>.db" if not given, for a study without a name one that is not there yet.
        space: what is searched; found by running the objective if not given.
        policy: which policy decides; POP without suspending if not given, since an objective cannot be continued.
        workers: trials at a time; if not given, `n_jobs` of `optimize`, and as many as fit where that is 1 or -1.
        cores_per_trial: cores, and so threads, of each.
        target: value of the objective at which the study ends.
        max_steps: reports of a full training; those of the longest finished trial if not given.
        seed: of everything that is drawn.
        quiet: show no progress and no summary.

    Raises:
        CallerError: the sampler has no counterpart, or `log` holds a study already.
    """
    study = optuna.create_study(
        storage=storage,
        study_name=study_name,
        direction=direction,
        load_if_exists=load_if_exists,
        directions=directions,
    )
    several = len(study.directions) > 1
    path = Path(log) if log else _free(study_name, load_if_exists)
    if path.exists() and not load_if_exists:
        raise CallerError(f"{path} holds a study already", do="give load_if_exists=True, or another log=")
    settings = {
        "search": _search(sampler, several),
        "policy": policy or _policy(pruner, several),
        "workers": workers,
        "cores_per_trial": cores_per_trial,
        "max_steps": max_steps,
        "seed": seed,
    }
    return TunedStudy(study, path, space, target, settings, quiet=quiet)


def _free(name: str | None, load_if_exists: bool) -> Path:
    stem = file_name(name or Path(sys.argv[0]).stem or "study")
    path, k = Path(f"{stem}.db"), 1
    while name is None and path.exists():
        k += 1
        path = Path(f"{stem}-{k}.db")
    return path


def _search(sampler: optuna.samplers.BaseSampler | None, several: bool) -> str:
    if several:
        return "sobol"
    kind = type(sampler).__name__
    if sampler is not None and kind not in _SEARCHES:
        raise CallerError(f"there is no search like {kind}", allowed=", ".join(_SEARCHES), do="leave sampler out")
    return _SEARCHES.get(kind, "tpe")


def _policy(pruner: optuna.pruners.BasePruner | None, several: bool) -> Named:
    if several or isinstance(pruner, optuna.pruners.NopPruner):
        return "fifo"
    return {"name": "pop", "pause": False}


class TunedStudy(optuna.study.Study):
    """An Optuna study, to be read as any other; `optimize` runs its trials in processes and decides with Foresail.

    `log`: file of Foresail's log, for `foresail explain` and all other commands. `result`: of the last `optimize`.
    """

    def __init__(
        self,
        study: optuna.Study,
        log: Path,
        space: Space | None,
        target: float | None,
        settings: dict[str, Any],
        *,
        quiet: bool,
    ) -> None:
        super().__init__(study.study_name, study._storage)
        self.log, self.result = log, None
        self._space, self._target, self._settings, self._quiet = space, target, settings, quiet
        self._stopping = False

    log: Path
    result: Result | None

    def optimize(
        self,
        func: Objective,
        n_trials: int | None = None,
        timeout: float | None = None,
        n_jobs: int = 1,
        catch: Iterable[type[Exception]] | type[Exception] = (),
        callbacks: Iterable[Callable[[Any, Any], None]] | None = None,
        gc_after_trial: bool = False,
        show_progress_bar: bool = False,
    ) -> None:
        """Run trials until there were `n_trials`, `timeout` seconds have passed, or the target is reached.

        Every trial is a process of its own, so what the objective changes in variables around it is not seen here.
        A trial that raises has failed, and the study goes on; where all fail, it stops. Ctrl-C lets what runs leave
        at its next `should_prune`, and returns.

        Args:
            func: the objective.
            n_trials: how many.
            timeout: seconds.
            n_jobs: trials at a time, where `create_study` does not say it: as many as fit if 1 or -1.
            catch: not needed: exceptions are always caught.
            callbacks: called here with the study and each trial that has ended; `study.stop()` works.
            gc_after_trial: not needed: a process frees its memory.
            show_progress_bar: not needed: progress is shown on stderr.

        Raises:
            TrainingError: all trials fail.
            CallerError: neither `n_trials` nor `timeout` nor a target is given.
        """
        self._stopping = False
        log, first = self._log_for()
        study = self._study(func, log, n_trials, timeout, n_jobs, first)
        mirror = self._caught_up(study.spec, log, first)
        behind = False
        called = tuple(callbacks or ())
        with showing(quiet=self._quiet) as shown:

            def watch(view: View, events: Sequence[ev.Event]) -> None:
                nonlocal behind
                shown(view, events)
                try:
                    mirror(view, events if not behind else ())
                except optuna.exceptions.StorageInternalError as error:
                    behind = True
                    shown.trouble(
                        f"Optuna's storage refuses ({str(error).splitlines()[0]}); it is caught up at the end"
                    )
                for trial in mirror.finished:
                    for callback in called:
                        callback(self, trial)

            train = None if _is_imported(func) else training(func, self._ways, first)
            self.result = drive(log, spec=study.spec, train=train, watch=watch, trouble=shown.trouble)
        if behind:
            self._caught_up(study.spec, log, first)
        if self.result.end == "failing":
            raise TrainingError(self.result.why, do=f"foresail explain 0 {log}")
        if not self._quiet:
            print(f"\n{summary(self.result)}", file=sys.stderr)

    def stop(self) -> None:
        """From a callback: no new trials; those that run are asked to leave."""
        if not self._stopping:
            self._stopping = True
            signal.raise_signal(signal.SIGINT)

    def enqueue_trial(self, *args: Any, **kwargs: Any) -> None:
        """Not offered: Foresail's searches propose what runs.

        Raises:
            CallerError: always.
        """
        raise CallerError("enqueue_trial is not offered", do="give create_study a space= whose knobs have defaults")

    def _caught_up(self, spec: StudySpec, log: Path, first: int) -> Mirror:
        """A mirror that has told of all that the log holds."""
        mirror = Mirror(self, spec, first)
        if log.exists():
            events = load_events(log)
            mirror(fold(events), events)
        return mirror

    @property
    def _ways(self) -> list[str]:
        return [direction.name.lower() for direction in self.directions]

    def _log_for(self) -> tuple[Path, int]:
        """The log of this call, and how many trials the Optuna study had before its first trial.

        A log holds one study with one goal; a further `optimize` gets a further log.
        """
        before = len(self.get_trials(deepcopy=False))
        if not self.log.exists():
            return self.log, before
        events = load_events(self.log)
        if self.result is None and events:
            created = events[0]
            assert isinstance(created, ev.StudyCreated)
            return self.log, int(json.loads(created.spec.entry.env.get(SETTINGS, '{"first": 0}'))["first"])
        k = 2
        while (further := self.log.with_stem(f"{self.log.stem}-{k}")).exists():
            k += 1
        return further, before

    def _study(
        self, func: Objective, log: Path, n_trials: int | None, timeout: float | None, n_jobs: int, first: int
    ) -> Study:
        if self.result is None and log.exists():
            space = _space_in(log)
        else:
            space = self._space or self._found(func)
        mode = self._ways[0].removesuffix("imize")
        goal = Goal(metric_names(len(self._ways))[0], mode, self._target, timeout, n_trials)  # type: ignore[arg-type]
        reference = _reference(func)
        told = {"objective": reference, "directions": self._ways, "first": first}
        settings = {**self._settings, "workers": self._settings["workers"] or (n_jobs if n_jobs > 1 else None)}
        return Study(
            "foresail.optuna.work:train",
            space=space,
            goal=goal,
            storage=log,
            name=self.study_name,
            retries=0,
            env={SETTINGS: json.dumps(told)},
            **settings,
        )

    def _found(self, func: Objective) -> Space:
        space, runs = discover(func, self._ways)
        if not self._quiet:
            found = ", ".join(space.knobs)
            print(
                f"space: {len(space.knobs)} parameters, met in {runs} runs of the objective: {found}", file=sys.stderr
            )
        return space


def _space_in(log: Path) -> Space:
    created = load_events(log)[0]
    assert isinstance(created, ev.StudyCreated)
    return Space.from_dict(created.spec.space)


def _is_imported(func: Objective) -> bool:
    """Whether trials import the objective by its name: it has one, and this process cannot be forked into them."""
    unsafe = unsafe_to_fork() if sys.platform == "linux" else "it is not Linux"
    return bool(unsafe and _reference(func))


def _reference(func: Objective) -> str:
    """By which another process finds the objective; empty where only this one has it."""
    try:
        return refer(func)
    except CallerError:
        return ""
