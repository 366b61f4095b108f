"""The only loop and the only sleep: facts in, append, act.

    executor.poll -> controller.feed -> store.append -> executor.perform

Events are appended in one transaction before anything is done about them, so a driver that dies at any point leaves a
log from which the next one continues. If the store cannot be written (a full disk), the study pauses and nothing is
lost: facts are heard and kept, nothing is begun, training goes on and spools its reports, and the append is tried again
until there is room. Limits hold meanwhile: at a deadline, what runs is ended though it cannot be recorded yet.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from foresail.core import events as ev
from foresail.core.commands import Command, DeleteCheckpoint, Kill, Launch, Yield
from foresail.core.view import View
from foresail.core.words import Outcome
from foresail.driver.silence import Silence
from foresail.engine.controller import Controller
from foresail.errors import HostError
from foresail.ports import Clock, Executor, Store

POLL_S = 60.0
"""Longest wait for news: long, since the executor wakes the loop and deadlines are known."""
WATCH_S = 1.0
"""The same while somebody watches: what is shown has a clock in it, and no thread of its own."""
RETRY_S = 2.0
"""Pause between two tries to write to a store that refuses."""
REPEAT_S = 60.0
"""As long as it refuses, this is said so often."""

Watcher = Callable[[View, Sequence[ev.Event]], None]


class Driver:
    """Carries facts to the controller, its events to the store and its commands to the executor.

    `watch` is called after each batch with the view and what is new, and once a second where nothing is. `trouble` is
    called with a sentence when the store refuses to be written, when it has room again, and when a trial says nothing
    for long; without it, a store that refuses ends the run.
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
        self._events: list[ev.Event] = []
        self._commands: list[Command] = []
        self._refused_s: float | None = None
        self._told_s = float("-inf")
        self._silence = Silence()
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
        self._handle([ev.Ticked(at_s=self.view.now_s)])  # not later: answers to commands wait to be heard
        while self.view.ended is None or self._events:
            facts = self._news()
            self._handle(facts)
            if not facts and self._watch is not None:
                self._watch(self.view, ())
            self._warn_of_silence()
        return self.view

    def _news(self) -> Sequence[ev.Fact]:
        now_s = self.clock.now_s()
        wake_s = self.controller.next_wake_s()
        until_s = now_s + (POLL_S if self._watch is None else WATCH_S)
        if self._events:
            until_s = min(until_s, now_s + RETRY_S)
        until_s = until_s if wake_s is None else min(wake_s, until_s)
        facts = [*self.executor.poll(until_s)]
        now_s = self.clock.now_s()
        if self._stop_asked and not self._events:  # who wants to stop does not wait for room: see `_write`
            self._stop_asked = False
            facts.append(ev.StopRequested(at_s=now_s))
        elif wake_s is not None and now_s >= wake_s:
            facts.append(ev.Ticked(at_s=now_s))  # also beside news: it may be stale, and then nobody looks at the time
        return facts

    def _handle(self, facts: Iterable[ev.Fact]) -> None:
        """Decide on the facts, record what follows, and do it."""
        started = time.perf_counter()
        for fact in facts:
            step = self.controller.feed(fact)
            self._events += step.events
            self._commands += step.commands
        self.deciding_s += time.perf_counter() - started
        if self._events and not self._write():
            self._end_what_is_over()
            return
        events, self._events = self._events, []
        commands, self._commands = self._commands, []
        for command in commands:
            self.executor.perform(command)
        if events and self._watch is not None:
            self._watch(self.view, events)

    def _end_what_is_over(self) -> None:
        """Limits hold though nothing can be recorded. Who is told to leave and dies with the driver is continued."""
        if self.view.ending is None:
            return
        leaving = {command.attempt for command in self._commands if isinstance(command, Kill | Yield)}
        unborn = [c.attempt for c in self._commands if isinstance(c, Launch) and c.attempt in leaving]
        now_s, detail = self.clock.now_s(), "it was never started"
        for command in self._commands:
            if isinstance(command, Kill | Yield) and command.attempt not in unborn:
                self.executor.perform(command)
        self._commands = [c for c in self._commands if isinstance(c, DeleteCheckpoint)]
        ends = [ev.AttemptEnded(at_s=now_s, attempt=a, outcome=Outcome.KILLED, detail=detail) for a in unborn]
        if ends:
            self._handle(ends)

    # --- a store that refuses ------------------------------------------------------------------------------------

    def _write(self) -> bool:
        """Append what is to be recorded; whether the store took it.

        Raises:
            HostError: it refuses, and nobody would hear of it, or a person wants to stop.
        """
        now_s = time.monotonic()
        if self._refused_s is not None and now_s < self._refused_s + RETRY_S and not self._stop_asked:
            return False
        try:
            self.store.append(self._events, durable=bool(self._commands))
        except HostError as error:
            if self._trouble is None or self._stop_asked:
                raise
            self._refused_s = now_s
            if now_s >= self._told_s + REPEAT_S:
                self._told_s = now_s
                self._trouble(f"{error}; the study pauses: what trains goes on, nothing is begun, nothing is lost")
            return False
        if self._refused_s is not None and self._trouble is not None:
            self._refused_s, self._told_s = None, float("-inf")
            self._trouble("the storage can be written again; the study goes on")
        return True

    def _warn_of_silence(self) -> None:
        if self._trouble is not None:
            for sentence in self._silence.new(self.view, self.clock.now_s()):
                self._trouble(sentence)
