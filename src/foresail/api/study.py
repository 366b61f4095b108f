"""A study as a user writes it: what to train, over which space, for which goal."""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from foresail.api.display import Nothing, showing
from foresail.api.drive import Train, controller_of, drive
from foresail.api.recorded import folder_of, load_result
from foresail.api.result import Result
from foresail.api.summary import summary
from foresail.api.tracking import checked, tracked
from foresail.core.goal import Goal
from foresail.core.layout import Parallel
from foresail.core.spec import Choice, Entry, Resources, StudySpec
from foresail.driver.loop import Watcher
from foresail.errors import CallerError, nearest
from foresail.space import Space

DEFAULT_POLICY = "hybrid"
DEFAULT_SEARCH = "random"

_SECRET = re.compile(
    r"(^|_)(SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIALS?|(API|ACCESS|PRIVATE|SECRET)_?KEY)$", re.IGNORECASE
)
"""Names of variables that hold secrets."""

Named = str | Mapping[str, Any]
"""A policy or a search: its name, or {"name": ..., option: value}."""


class Study:
    """One tuning job.

    Args:
        train: the training function, `train(run: fs.Run) -> None`. It may be any function if the study is run on a
            platform that forks; otherwise, and to resume from another process, one that can be imported. Or where it
            is found, "module:name" or "path/to/file.py:name"; it is then not imported here.
        command: instead of `train`, a command line as a list, for scripts in any language.
        space: what may be tuned.
        goal: `fs.maximize(...)` or `fs.minimize(...)`.
        storage: file of the study's log, "<name>.db" if not given. Logs and checkpoints lie beside it, in
            "<name>.runs".
        name: for people; the name of the storage file if not given.
        policy: who gets which resources: "hybrid", "pop", "asha", "asha-stop", "median", "fifo", or a mapping with
            options.
        search: which configurations come next: "random", "sobol", "grid", "tpe", "gp", "cmaes".
        workers: trials at a time; as many as fit on the machine if not given.
        cores_per_trial: cores, and so threads, of each; "auto": one, and more where no other trial needs them and the
            study's steps say that they make its steps faster.
        parallel: run each trial as several ranks, which share its cores: `fs.Parallel(...)` or a mapping of its words.
        seed: of everything that is drawn. Same seed, same recorded history: same decisions.
        max_steps: steps of a full training, if `run.steps(max=...)` does not say so.
        retries: how often a failed trial is tried again.
        grace_s: seconds that a trial has to leave at a step boundary before it is killed.
        silence_s: a trial that reports and saves nothing for so many seconds is killed, which counts as a failure;
            None: it may be silent for ever, and is only warned of.
        keep_bytes: budget for the checkpoints of the whole study; the best and what may be resumed are always kept.
        repeats: whether a configuration may come twice.
        track: who else is told of the study: "tensorboard", "mlflow", "wandb", "csv" or "parquet", each alone or with a
            place, "tensorboard:runs". Nothing that goes wrong there disturbs the study.

    Raises:
        CallerError: anything of this is wrong; nothing was started.
    """

    def __init__(
        self,
        train: Train | str | None = None,
        *,
        space: Space,
        goal: Goal,
        storage: str | os.PathLike[str] | None = None,
        name: str = "",
        command: Sequence[str] = (),
        policy: Named = DEFAULT_POLICY,
        search: Named = DEFAULT_SEARCH,
        workers: int | None = None,
        cores_per_trial: int | Literal["auto"] = 1,
        parallel: Parallel | Mapping[str, object] | None = None,
        seed: int = 0,
        max_steps: int | None = None,
        retries: int = 2,
        grace_s: float = 30.0,
        silence_s: float | None = None,
        keep_bytes: int = 10_000_000_000,
        repeats: bool = False,
        track: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] = "",
    ) -> None:
        _check_parts(train, command, space, goal)
        cores = 1 if cores_per_trial == "auto" else cores_per_trial
        _check_numbers(workers=workers, cores_per_trial=cores, max_steps=max_steps)
        _check_silence(silence_s)
        _check_from_zero(seed=seed, retries=retries, grace_s=grace_s, keep_bytes=keep_bytes)
        self._train = None if isinstance(train, str) else train
        self.space = space
        self.track = checked(track)
        name = name or (Path(storage).stem if storage else _name_of(train, command))
        self.storage = Path(storage) if storage else Path(f"{file_name(name)}.db")
        self.spec = StudySpec(
            name=name,
            space=space.to_dict(),
            goal=goal,
            seed=seed,
            policy=_elastic(_choice("policy", policy)) if cores_per_trial == "auto" else _choice("policy", policy),
            search=_choice("search", search),
            resources=Resources(workers, cores, _parallel(parallel, cores_per_trial, space)),
            entry=_entry(train, command, env, cwd),
            max_steps=max_steps,
            retries=retries,
            grace_s=grace_s,
            silence_s=msgspec.UNSET if silence_s is None else float(silence_s),
            keep_bytes=keep_bytes,
            repeats=repeats,
        )
        controller_of(self.spec)

    @property
    def folder(self) -> Path:
        """Where attempts and checkpoints lie."""
        return folder_of(self.storage)

    def run(self, *, watch: Watcher | None = None, quiet: bool = False, on: str = "") -> Result:
        """Train until the goal is reached or a budget is used, and return what was found.

        A storage that holds this study already is continued: what is finished is not done again.

        Args:
            watch: called after each batch of events with the view and the new events, and about once a second with
                none; it takes the place of the progress on stderr.
            quiet: show no progress and no summary.
            on: "ray", "ray://HOST:PORT" or "ray:HOST:PORT" to run trials on a Ray cluster; here if not given.

        Raises:
            CallerError: the storage holds another study, another driver runs it, or the machine is too small.
            HostError: the storage cannot be written.
        """
        if watch is not None:
            trouble = Nothing().trouble
            with tracked(self.storage, self.track):
                return drive(self.storage, spec=self.spec, train=self._train, watch=watch, trouble=trouble, on=on)
        with showing(quiet=quiet) as shown, tracked(self.storage, self.track):
            result = drive(self.storage, spec=self.spec, train=self._train, watch=shown, trouble=shown.trouble, on=on)
        if not quiet:
            print(f"\n{summary(result)}", file=sys.stderr)
        return result

    def result(self) -> Result:
        """What is known now, from the storage.

        Raises:
            CallerError: the study has not been started.
        """
        return load_result(self.storage)

    def _repr_html_(self) -> str:
        """What a notebook shows: the result so far, or what will be searched."""
        from foresail.api.notebook import result_html, study_html

        return result_html(self.result()) if self.storage.exists() else study_html(self.spec, self.storage)


def _check_parts(train: object, command: Sequence[str], space: object, goal: object) -> None:
    if (train is None) == (not command):
        what = (
            "neither a training function nor a command" if train is None else "both a training function and a command"
        )
        raise CallerError(f"the study has {what}", do="give one of the two")
    if train is not None and not callable(train) and not _is_reference(train):
        raise CallerError(f"train is {train!r}", allowed="a function train(run), or 'module:name'")
    if callable(train):
        _check_function(train)
    if isinstance(command, str):
        raise CallerError(f"command {command!r} is one string", do="give a list, ['python', 'train.py']")
    if not isinstance(space, Space):
        raise CallerError(f"space is {space!r}", allowed="foresail.Space(...)")
    if not isinstance(goal, Goal):
        raise CallerError(f"goal is {goal!r}", allowed="foresail.maximize(...) or foresail.minimize(...)")


def _check_function(train: Callable[..., object]) -> None:
    """Refuse what would train nothing when it is called with a run."""
    kind = "a generator" if inspect.isgeneratorfunction(train) else ""
    kind = "a coroutine" if inspect.iscoroutinefunction(train) else kind
    if kind:
        raise CallerError(f"train is {kind}: a call of it runs nothing", allowed="a plain function train(run)")
    try:
        inspect.signature(train).bind(None)
    except TypeError as error:
        raise CallerError(
            f"train cannot be called as train(run): {error}",
            allowed="a function of one argument",
            do="give what else it needs by functools.partial",
        ) from None
    except ValueError:
        pass  # some callables of C do not tell their arguments


def _is_reference(train: object) -> bool:
    place, _, name = train.rpartition(":") if isinstance(train, str) else ("", "", "")
    return bool(place and name)


def _check_numbers(**numbers: int | None) -> None:
    for name, number in numbers.items():
        if number is not None and (not isinstance(number, int) or isinstance(number, bool) or number < 1):
            raise CallerError(f"{name} = {number!r}", allowed="a whole number from 1")


def _check_from_zero(*, grace_s: float, **numbers: int) -> None:
    for name, number in numbers.items():
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise CallerError(f"{name} = {number!r}", allowed="a whole number from 0")
    if not isinstance(grace_s, int | float) or not 0.0 <= grace_s < float("inf"):
        raise CallerError(f"grace_s = {grace_s!r}", allowed="seconds, from 0")


def _check_silence(silence_s: object) -> None:
    known = isinstance(silence_s, int | float) and not isinstance(silence_s, bool)
    if silence_s is not None and not (known and 0.0 < float(silence_s) < float("inf")):  # type: ignore[arg-type]
        raise CallerError(f"silence_s = {silence_s!r}", allowed="seconds, above 0; or None")


def _parallel(
    given: Parallel | Mapping[str, object] | None, cores: int | Literal["auto"], space: Space
) -> Parallel | msgspec.UnsetType:
    if given is None:
        return msgspec.UNSET
    try:
        parallel = given if isinstance(given, Parallel) else msgspec.convert(given, Parallel)
    except msgspec.ValidationError as error:
        raise CallerError(f"parallel: {error}", allowed=", ".join(Parallel.__struct_fields__)) from None
    if isinstance(parallel.batch, str) and parallel.batch not in space.knobs:
        raise CallerError(f"parallel: no knob {parallel.batch!r}; {nearest(parallel.batch, space.knobs)}")
    if cores == "auto" and parallel.batch is None:
        raise CallerError(
            'parallel: cores_per_trial = "auto" changes the number of replicas, and not all can share a batch evenly',
            do="say how large a global batch is: batch = 32, or the name of the knob, batch = 'batch_size'",
        )
    cores = 1 if cores == "auto" else cores
    if cores % parallel.cores:
        raise CallerError(
            f"parallel: {cores} cores per trial cannot be shared by ranks in groups of {parallel.cores}",
            do=f"set cores_per_trial to {parallel.cores} or a multiple of it",
        )
    return parallel


def _elastic(policy: Choice) -> Choice:
    return Choice(policy.name, {**policy.options, "elastic": True})


def _choice(what: str, named: Named) -> Choice:
    if isinstance(named, str):
        return Choice(named)
    options = dict(named)
    if "name" not in options:
        raise CallerError(f"{what} {options!r} has no name", do=f'{what}={{"name": ..., ...}}')
    return Choice(options.pop("name"), options)


def _name_of(train: Train | str | None, command: Sequence[str]) -> str:
    if isinstance(train, str):
        return train.rpartition(":")[2]
    if train is not None:
        return str(getattr(train, "__name__", "study"))
    scripts = [Path(part).stem for part in command if part.endswith((".py", ".sh"))]
    return scripts[0] if scripts else Path(command[0]).stem


def file_name(name: str) -> str:
    """A name as a part of a path."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "study"


def _entry(
    train: Train | str | None,
    command: Sequence[str],
    env: Mapping[str, str] | None,
    cwd: str | os.PathLike[str],
) -> Entry:
    place = str(Path(cwd).resolve()) if cwd else os.getcwd()
    settings = {str(k): str(v) for k, v in (env or {}).items()}
    for name in settings:
        if _SECRET.search(name):
            raise CallerError(
                f"env.{name} looks like a secret, and env is recorded in the study's log",
                do="set it in the environment in which the study is run: trials inherit it and nothing records it",
            )
    if train is None:
        return Entry(command=tuple(str(part) for part in command), cwd=place, env=settings)
    return Entry(function=train if isinstance(train, str) else reference_to(train), cwd=place, env=settings)


def reference_to(train: Train) -> str:
    """By which another process finds the function; empty for one that only this process has."""
    name = getattr(train, "__qualname__", "")
    module = sys.modules.get(getattr(train, "__module__", ""))
    if "." in name or "<" in name or module is None:
        return ""
    file = getattr(module, "__file__", None)
    if module.__name__ == "__main__":
        return f"{Path(file).resolve()}:{name}" if file else ""
    return f"{module.__name__}:{name}"
