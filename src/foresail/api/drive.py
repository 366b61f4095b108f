"""From a stored study to a running one: store, executor, clock, controller and driver put together.

Starting, continuing after a crash and continuing after Ctrl-C are the same: fold the log, ask the executor what has
become of what was alive, go on.
"""

from __future__ import annotations

import datetime
import os
import warnings
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from foresail.api.entry import check_entry
from foresail.api.interrupt import stop_on_interrupt
from foresail.api.machine import host_name, usable_cores
from foresail.api.recorded import folder_of
from foresail.api.result import Result, result_of
from foresail.core import events as ev
from foresail.core.commands import Launch
from foresail.core.spec import StudySpec
from foresail.core.view import View
from foresail.core.words import AttemptId
from foresail.driver.clock import StudyClock
from foresail.driver.loop import Driver, Watcher
from foresail.engine.controller import Controller
from foresail.errors import CallerError
from foresail.executors.leftover import set_strangers_apart
from foresail.executors.local import LocalExecutor
from foresail.executors.ray import RayExecutor
from foresail.policies.registry import make as make_policy
from foresail.ports import Executor, Store
from foresail.search import get as get_search
from foresail.search.proposals import Proposals
from foresail.stores.connect import guard
from foresail.stores.sqlite import SqliteStore
from foresail.worker.folder import StudyFolder

Train = Callable[[Any], object]
IN_TEMPLATE = "FORESAIL_TEMPLATE"
"""Set where a user's script is imported only to find its training function."""


def controller_of(spec: StudySpec) -> Controller:
    """An engine for the study.

    Raises:
        CallerError: no such policy or search, or a wrong option.
    """
    search = get_search(spec.search.name)
    return Controller(make_policy(spec.policy), Proposals(search))


def drive(
    storage: Path,
    *,
    spec: StudySpec | None = None,
    train: Train | None = None,
    watch: Watcher | None = None,
    trouble: Callable[[str], None] | None = None,
    on: str = "",
) -> Result:
    """Start the study of `spec` in `storage`, or continue the one that it holds, until it ends.

    `on`: where trials run: here if empty; "ray" for the Ray cluster that runs here, or else one that is started here;
    "ray://HOST:PORT" or "ray:HOST:PORT" for another one.

    Raises:
        CallerError: `storage` holds another study, or none and `spec` is not given; or a driver is at work on it; or
            attempts of another study lie beside it.
        HostError: `storage` or the folder beside it cannot be written.
    """
    if os.environ.get(IN_TEMPLATE):
        raise CallerError(
            "the script starts its study while it is imported by a trial",
            do='put the study under `if __name__ == "__main__":`',
        )
    if spec is None and not storage.exists():
        raise CallerError(f"there is no study at {storage}", do="start one with foresail run, or study.run()")
    with guard(storage):
        storage.parent.mkdir(parents=True, exist_ok=True)
        if not storage.exists():
            _check_unused(storage)
    store = SqliteStore.open(storage)
    try:
        return _drive(store, storage, spec, train, watch, trouble, on)
    finally:
        store.close()


def _drive(
    store: Store,
    storage: Path,
    spec: StudySpec | None,
    train: Train | None,
    watch: Watcher | None,
    trouble: Callable[[str], None] | None,
    on: str,
) -> Result:
    first, events = read_log(store)
    spec = _agreed(first, spec, storage)
    controller = controller_of(spec)
    if first is None:
        _check_unused(storage)
        created = ev.StudyCreated(at_s=0.0, spec=spec)
        store.append([created], durable=True)
        events = iter([created])
    controller.load(events)
    if controller.view.ended is not None and controller.view.ended.end != "stopped":
        if watch is not None:
            watch(controller.view, ())
        return result_of(controller.view, storage, folder_of(storage))
    return _run(controller, store, storage, train, watch, trouble, on)


def read_log(store: Store) -> tuple[ev.Event | None, Iterator[ev.Event]]:
    """The first event of a log, None where there is none, and all of them: one at a time, since a log may be long."""
    events = (event for _, event in store.read())
    first = next(events, None)
    return first, events if first is None else chain([first], events)


def _run(
    controller: Controller,
    store: Store,
    storage: Path,
    train: Train | None,
    watch: Watcher | None,
    trouble: Callable[[str], None] | None,
    on: str,
) -> Result:
    spec, folder = controller.view.spec, folder_of(storage)
    if train is None or on:
        check_entry(spec.entry)
    clock = StudyClock(controller.view.now_s)
    executor: Executor
    if on:
        cores: tuple[int, ...] = ()  # machines come by and by
        executor = RayExecutor(folder, clock=clock, goal=spec.goal, entry=spec.entry, address=_cluster(on))
    else:
        cores = _enough(usable_cores(), spec)
        target = train if train is not None else spec.entry
        executor = LocalExecutor(folder, clock=clock, goal=spec.goal, target=target, trouble=trouble)
    for place in set_strangers_apart(StudyFolder(folder), _launches(controller.view)):
        warnings.warn(
            f"an attempt that the log does not know was ended and moved to {place}; a damaged log may have lost it",
            RuntimeWarning,
            stacklevel=2,
        )
    driver = Driver(controller, store=store, executor=executor, clock=clock, watch=watch, trouble=trouble)
    try:
        with stop_on_interrupt(driver.request_stop):
            view = driver.run(cores, host=host_name(), wall_time=_now())
    finally:
        executor.close()
    return result_of(view, storage, folder)


def _launches(view: View) -> dict[AttemptId, Launch]:
    """What the attempts that the log believes to be alive were told, by which they are known."""
    return {
        attempt.id: Launch(
            attempt=attempt.id,
            trial=attempt.trial,
            number=attempt.number,
            config=view.trials[attempt.trial].config,
            cores=attempt.cores,
            resume_step=attempt.resume_step,
        )
        for attempt in view.attempts.values()
    }


def _cluster(on: str) -> str:
    """The address of a Ray cluster, as `ray.init` takes it; empty for the one that runs here."""
    kind, _, address = on.partition(":")
    if kind != "ray":
        raise CallerError(f"there is nothing called {on!r} to run on", allowed="ray, ray://HOST:PORT, ray:HOST:PORT")
    return on if address.startswith("//") else address


def _check_unused(storage: Path) -> None:
    """Refuse to begin a study among attempts of another, whose points and checkpoints would be taken for its own."""
    folder = folder_of(storage)
    if StudyFolder(folder).is_used:
        raise CallerError(
            f"{folder} holds attempts of another study, and {storage} no study yet",
            do=f"remove {folder} if that study is not needed any more, or give another storage",
        )


def _agreed(first: ev.Event | None, spec: StudySpec | None, storage: Path) -> StudySpec:
    """The stored study, if it is the one that is asked for."""
    if first is None:
        if spec is None:
            raise CallerError(f"{storage} holds no study yet", do="start one with foresail run, or study.run()")
        return spec
    if not isinstance(first, ev.StudyCreated):
        raise CallerError(f"{storage} does not begin with a study", do="it is damaged; see foresail doctor")
    if spec is not None:
        for field in ("space", "goal", "seed", "policy", "search", "repeats"):
            ours, theirs = getattr(spec, field), getattr(first.spec, field)
            if ours != theirs:
                shown = [msgspec.json.encode(value).decode() for value in (theirs, ours)]
                raise CallerError(
                    f"{storage} holds another study: its {field} is {shown[0]}, not {shown[1]}",
                    do="give another storage, or go on with the stored one by `foresail resume`",
                )
    return first.spec


def _enough(cores: tuple[int, ...], spec: StudySpec) -> tuple[int, ...]:
    wanted = spec.resources.cores_per_trial
    if wanted > len(cores):
        raise CallerError(
            f"a trial asks for {wanted} cores and this machine offers {len(cores)}", do="lower cores_per_trial"
        )
    return cores


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
