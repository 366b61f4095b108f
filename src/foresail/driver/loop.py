"""The only loop and the only sleep: facts in, append, act.

    executor.poll -> controller.feed -> store.append -> executor.perform

Events are appended in one transaction before anything is done about them, so a driver that dies at any point leaves a
log from which the next one continues. If the store cannot be written (a full disk), nothing is lost: the loop waits and
tries again, training goes on and spools its reports.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from foresail.core import events as ev
from foresail.core.commands import Command
from foresail.core.view import View
from foresail.engine.controller import Controller
from foresail.errors import HostError
from foresail.ports import Clock, Executor, Store

POLL_S = 60.0
"""Longest wait for news: long, since the executor wakes the loop and deadlines are known."""
WATCH_S = 1.0
"""The same while somebody watches: what is shown has a clock in it, and no thread of its own."""
RETRY_S = 2.0
"""Pause between two tries to write to a store that refuses."""

Watcher = Callable[[View, Sequence[ev.Event]], None]


class Driver:
    """Carries facts to the controller, its events to the store and its commands to the executor.

    `watch` is called after each batch with the view and what is new, and once a second where nothing is. `trouble` is
    called with a sentence when the store refuses to be written.
    """

    def __init__(
        self,
        controller: Controller,
        *,
        store: Store,
        executor: Executor,
        clock: Clock,
        watch: Watcher | None = None,
        trouble: Callable[[str], None] | None = None,
    ) -> None:
        self.controller = controller
        self.store, self.executor, self.clock = store, executor, clock
        self._watch, self._trouble = watch, trouble
        self._stop_asked = False
        self.deciding_s = 0.0

    @property
    def view(self) -> View:
        return self.controller.view

    def request_stop(self) -> None:
        """From a signal handler: no new starts, checkpoints, then the end."""
        self._stop_asked = True

    def run(self, cores: tuple[int, ...], *, host: str = "", wall_time: str = "") -> View:
        """Take the study, continue it, and return its view when it has ended."""
        self.executor.start()
        now_s = self.clock.now_s()
        self._handle([ev.DriverStarted(at_s=now_s, cores=cores, host=host, wall_time=wall_time)])
        self._handle(self.executor.adopt(tuple(self.view.attempts)))
        for command in self.controller.recover():
            self.executor.perform(command)
        self._handle([ev.Ticked(at_s=self.clock.now_s())])
        while self.view.ended is None:
            facts = self._news()
            self._handle(facts)
            if not facts and self._watch is not None:
                self._watch(self.view, ())
        return self.view

    def _news(self) -> Sequence[ev.Fact]:
        now_s = self.clock.now_s()
        wake_s = self.controller.next_wake_s()
        until_s = now_s + (POLL_S if self._watch is None else WATCH_S)
        until_s = until_s if wake_s is None else min(wake_s, until_s)
        facts = [*self.executor.poll(until_s)]
        now_s = self.clock.now_s()
        if self._stop_asked:
            self._stop_asked = False
            facts.append(ev.StopRequested(at_s=now_s))
        elif wake_s is not None and now_s >= wake_s:
            facts.append(ev.Ticked(at_s=now_s))  # also beside news: it may be stale, and then nobody looks at the time
        return facts

    def _handle(self, facts: Iterable[ev.Fact]) -> None:
        events: list[ev.Event] = []
        commands: list[Command] = []
        started = time.perf_counter()
        for fact in facts:
            step = self.controller.feed(fact)
            events += step.events
            commands += step.commands
        self.deciding_s += time.perf_counter() - started
        if events:
            self._append(events, durable=bool(commands))
        for command in commands:
            self.executor.perform(command)
        if events and self._watch is not None:
            self._watch(self.view, events)

    def _append(self, events: Sequence[ev.Event], *, durable: bool) -> None:
        while True:
            try:
                return self.store.append(events, durable=durable)
            except HostError as error:
                if self._trouble is None or self._stop_asked:  # who wants to stop does not wait for room
                    raise
                self._trouble(str(error))
                time.sleep(RETRY_S)
