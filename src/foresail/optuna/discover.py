"""Which space a define-by-run objective searches, found by running it.

The objective is run in processes that are thrown away, each until its first report, its return, or `QUIET_S` after the
last parameter that it asked for. The first run answers with first options and lowest numbers; each further one with
another option of a parameter that has few, so that branches are met. A parameter that was asked for where another had
certain values, and not where it had others, becomes a knob that exists only there.

Nothing that is found must be right for a trial to be: what a trial asks for and its configuration lacks is drawn there
(`work.py`), and what it does not ask for does no harm. See docs/decisions on why.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import msgspec
import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    IntDistribution,
    distribution_to_json,
    json_to_distribution,
)

from foresail.errors import CallerError, HostError, TrainingError
from foresail.optuna.knobs import distribution_of, knob_of
from foresail.optuna.work import Granted, Objective, _written, ways
from foresail.space import Choice, Flag, Int, Knob, Space, Value
from foresail.space.knobs import When
from foresail.space.options import options_of

QUIET_S = 2.0
"""Seconds after a parameter in which another one is awaited."""
FIRST_S = 120.0
"""Seconds until the first parameter: an objective may load its data before."""
MOST_RUNS = 32
MOST_OPTIONS = 8
"""Of a parameter with more options, or integers with more values, only some are tried."""
MOST_LEVELS = 16


@dataclass
class Trace:
    """One run. `asked`: distributions in the order of their asking; `values`: what was answered, as a knob says it."""

    asked: dict[str, BaseDistribution] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)
    error: str = ""


def discover(objective: Objective, directions: Sequence[str], *, patience_s: float = 30.0) -> tuple[Space, int]:
    """The space that the objective searches, as far as runs tell, and how many there were.

    Args:
        objective: the objective.
        directions: of the study.
        patience_s: no further run is begun after so many seconds.

    Raises:
        TrainingError: the objective fails before it has asked for anything.
        CallerError: it asks for nothing that can be searched.
        HostError: the platform cannot fork.
    """
    if not hasattr(os, "fork"):
        raise HostError("this platform cannot fork", allowed="Linux, macOS, WSL", do="give create_study a space=")
    until_s = time.monotonic() + patience_s
    traces: list[Trace] = []
    plans: list[dict[str, Value]] = [{}]
    planned: set[tuple[str, Value]] = set()
    while plans and len(traces) < MOST_RUNS and (not traces or time.monotonic() < until_s):
        traces.append(_run(objective, directions, plans.pop(0)))
        for plan, what in _further(traces):
            if what not in planned:
                planned.add(what)
                plans.append(plan)
    return space_of(traces), len(traces)


# --- one run -----------------------------------------------------------------------------------------------------


def _run(objective: Objective, directions: Sequence[str], forced: Mapping[str, Value]) -> Trace:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads: a run that hangs in one is cut
        pid = os.fork()
    if pid == 0:
        os.close(reading)
        _trace(objective, directions, forced, writing)
    os.close(writing)
    try:
        return _heard(reading)
    finally:
        os.close(reading)
        _end(pid)


def _end(pid: int) -> None:
    """The run and all that it has started, if it got as far as a group of its own."""
    for kill in (os.killpg, os.kill):
        try:
            kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
    os.waitpid(pid, 0)


def _heard(reading: int) -> Trace:
    trace, rest, wait_s = Trace(), b"", FIRST_S
    while select.select([reading], [], [], wait_s)[0]:
        chunk = os.read(reading, 1 << 16)
        if not chunk:
            break
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            _take(trace, json.loads(line))
        wait_s = QUIET_S if trace.asked else FIRST_S
    return trace


def _take(trace: Trace, said: dict[str, Any]) -> None:
    if "error" in said:
        trace.error = said["error"]
        return
    trace.asked[said["name"]] = json_to_distribution(said["distribution"])
    if said["value"] is not None:
        trace.values[said["name"]] = said["value"]


def _trace(objective: Objective, directions: Sequence[str], forced: Mapping[str, Value], writing: int) -> NoReturn:
    """In the process that is thrown away. Never returns."""
    try:
        os.setsid()
        silent = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(silent, number)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        study = optuna.create_study(directions=ways(directions), sampler=_Teller(forced, writing))
        objective(_Probe(study, study._storage.create_new_trial(study._study_id)))
    except (_Enough, optuna.TrialPruned):
        pass
    except BaseException:
        _tell(writing, {"error": traceback.format_exc()})
    finally:
        os._exit(0)


def _tell(writing: int, said: dict[str, Any]) -> None:
    os.write(writing, json.dumps(said).encode() + b"\n")


class _Enough(BaseException):
    """The objective has begun to report: its training has begun."""


class _Probe(optuna.trial.Trial):
    def report(self, value: float, step: int) -> None:
        raise _Enough

    def should_prune(self) -> bool:
        raise _Enough


class _Teller(Granted):
    """Answers with the simplest, and tells what was asked."""

    def __init__(self, forced: Mapping[str, Value], writing: int) -> None:
        super().__init__(forced, seed=0)
        self._forced, self._writing = forced, writing

    def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: BaseDistribution) -> Any:
        knob = knob_of(param_name, param_distribution)
        answered = None
        if knob is not None and param_name not in self._forced:
            answered = knob.level(0) if isinstance(knob, Choice | Int | Flag) else knob.at(0.5)
            self._config = {**self._config, param_name: answered}
        value = super().sample_independent(study, trial, param_name, param_distribution)
        written = (
            _written(param_distribution, value)[1] if knob is None else distribution_to_json(distribution_of(knob))
        )
        _tell(
            self._writing,
            {"name": param_name, "distribution": written, "value": self._forced.get(param_name, answered)},
        )
        return value


# --- which runs are worth it -------------------------------------------------------------------------------------


def _further(traces: Sequence[Trace]) -> Iterator[tuple[dict[str, Value], tuple[str, Value]]]:
    """What the last run calls for: its answers up to a parameter, with another answer there."""
    last = traces[-1]
    before: dict[str, Value] = {}
    for name, distribution in last.asked.items():
        if name not in last.values:
            continue
        for other in _others(traces, name, distribution):
            yield {**before, name: other}, (name, other)
        before[name] = last.values[name]


def _others(traces: Sequence[Trace], name: str, distribution: BaseDistribution) -> list[Value]:
    value = traces[-1].values[name]
    match distribution:
        case CategoricalDistribution():
            options = options_of(distribution.choices)[:MOST_OPTIONS]
        case IntDistribution(low=low, high=high, step=step):
            ends = (low, high)
            branches = _changes(traces, name) and (high - low) // step < MOST_LEVELS
            options = tuple(range(low, high + 1, step)) if branches else ends
        case _:
            options = ()
    return [option for option in options if option != value]


def _changes(traces: Sequence[Trace], name: str) -> bool:
    """Whether runs with another value there asked for other parameters."""
    met = {(t.values[name], frozenset(t.asked)) for t in traces if name in t.values and not t.error}
    return len({asked for _, asked in met}) > 1 and len({value for value, _ in met}) > 1


# --- from runs to a space ----------------------------------------------------------------------------------------


def space_of(traces: Sequence[Trace]) -> Space:
    """The knobs that were met, with the conditions under which they were.

    Raises:
        TrainingError: nothing was met, since the objective failed.
        CallerError: nothing that can be searched was met.
    """
    knobs: dict[str, Knob] = {}
    for trace in traces:
        for name, distribution in trace.asked.items():
            knob = knob_of(name, distribution)
            if knob is not None:
                knobs.setdefault(name, knob)
    if not knobs and traces and traces[0].error:
        said = traces[0].error.strip().splitlines()
        raise TrainingError(f"the objective fails before it asks for a parameter: {said[-1]}", do="\n".join(said))
    if not knobs:
        raise CallerError(
            "the objective asks for no parameter that can be searched",
            do="let it call trial.suggest_float and its like",
        )
    whole = [trace for trace in traces if not trace.error] or list(traces)
    when = {name: _when(name, knobs, whole) for name in knobs}
    return Space.of({name: msgspec.structs.replace(knob, when=when[name]) for name, knob in knobs.items()})


def _when(name: str, knobs: Mapping[str, Knob], traces: Sequence[Trace]) -> When | None:
    """The one parameter, met before `name`, whose value tells whether `name` is met; the nearest of several."""
    with_it = [trace for trace in traces if name in trace.asked]
    without = [trace for trace in traces if name not in trace.asked]
    if not with_it or not without:
        return None
    for parent in reversed([*with_it[0].asked][: [*with_it[0].asked].index(name)]):
        if parent not in knobs or not all(parent in trace.values for trace in with_it):
            continue
        there = {trace.values[parent] for trace in with_it}
        not_there = {trace.values[parent] for trace in without if parent in trace.values}
        criterion = _criterion(knobs[parent], there, not_there)
        if criterion is not None:
            return {parent: criterion}
    return None


def _criterion(parent: Knob, there: set[Value], not_there: set[Value]) -> Any:
    if there & not_there or not not_there:
        return None
    match parent:
        case Choice():
            return [option for option in parent.options if option in there]
        case Int():
            with_it, without = {int(value) for value in there}, {int(value) for value in not_there}
            if min(with_it) > max(without):
                return {"at_least": min(with_it)}
            return {"at_most": max(with_it)} if max(with_it) < min(without) else None
        case _:
            return None
