"""From what an attempt writes to facts: its spool, and the JSON lines that a script in any language may append."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from foresail.core import events as ev
from foresail.core.events import Fact
from foresail.core.words import AttemptId, Outcome
from foresail.errors import TrainingError
from foresail.worker.folder import AttemptFolder
from foresail.worker.metrics import Metrics, check_step
from foresail.worker.spool import Farewell, Horizon, Note, Point, Saved, SpoolReader, decode_line, from_wire


class Listener:
    """Reads one attempt, each line once. `refusal`: why a line of a script was refused, once one was."""

    def __init__(self, attempt: AttemptId, folder: AttemptFolder, *, metric: str, now_s: float) -> None:
        self.attempt = attempt
        self._spool = SpoolReader(folder.spool)
        self._reports = SpoolReader(folder.reports)
        self._metrics = Metrics(metric)
        self._step = 0
        self._lines = 0
        self._mark_s = now_s
        self.damaged = 0
        self.farewell: Farewell | None = None
        self.refusal = ""

    def facts(self, now_s: float) -> list[Fact]:
        """What is new, stamped with `now_s`."""
        return [*self._from_spool(now_s), *self._from_reports(now_s)]

    def last_facts(self, now_s: float) -> list[Fact]:
        """As `facts`, once the process is gone: the last line of a script needs no newline then."""
        facts = self.facts(now_s)
        if _is_object(self._reports.rest):
            self._reports.end_line()
            facts += self._from_reports(now_s)
        return facts

    @property
    def loss(self) -> str:
        """What could not be read, in a line for people; empty where all could."""
        torn = len(self._spool.rest) + len(self._reports.rest)
        damaged = f"{self.damaged} damaged lines in its spool" if self.damaged else ""
        return ", ".join(part for part in (f"its last report was torn ({torn} bytes)" if torn else "", damaged) if part)

    def close(self) -> None:
        self._spool.close()
        self._reports.close()

    # --- our own lines -------------------------------------------------------------------------------------------

    def _from_spool(self, now_s: float) -> Iterator[Fact]:
        for data in self._spool.lines():
            try:
                line = decode_line(data)
            except msgspec.DecodeError:
                self.damaged += 1
                continue
            match line:
                case Point():
                    yield self._point(line.step, from_wire(line.metrics), line.seconds, now_s)
                case Horizon():
                    yield ev.HorizonDeclared(at_s=now_s, attempt=self.attempt, max_steps=line.max_steps)
                case Note(notes=notes):
                    yield ev.Noted(at_s=now_s, attempt=self.attempt, notes=notes)
                case Saved():
                    yield self._saved(line, now_s)
                case Farewell():
                    self.farewell = line

    def _point(self, step: int, metrics: dict[str, float], seconds: float | None, now_s: float) -> Fact:
        spent_s = now_s - self._mark_s if seconds is None else seconds
        self._mark_s = now_s
        return ev.PointReported(at_s=now_s, attempt=self.attempt, step=step, metrics=metrics, seconds=spent_s)

    def _saved(self, line: Saved, now_s: float) -> Fact:
        return ev.CheckpointSaved(
            at_s=now_s,
            attempt=self.attempt,
            step=line.step,
            path=line.path,
            bytes=line.bytes,
            digest=line.digest,
            seconds=line.seconds,
        )

    # --- lines of scripts ----------------------------------------------------------------------------------------

    def _from_reports(self, now_s: float) -> Iterator[Fact]:
        for data in self._reports.lines():
            self._lines += 1
            if self.refusal:
                return
            try:
                said = json.loads(data)
                if said == {"yielded": True}:  # it leaves because it was asked to, and is not done
                    self.farewell = Farewell(outcome=Outcome.YIELDED)
                    continue
                fact = self._report(said, now_s)
            except (ValueError, RecursionError, TrainingError) as error:
                self.refusal = f"line {self._lines} of reports.jsonl: {error}"
                return
            yield fact

    def _report(self, said: object, now_s: float) -> Fact:
        """`{"step": 3, "accuracy": 0.9}`, or `{"max_steps": 50}`; the step may be left out."""
        if not isinstance(said, dict):
            raise TrainingError("it is no JSON object", allowed='{"step": 3, "accuracy": 0.9}')
        if set(said) == {"max_steps"}:
            most = check_step(said["max_steps"], 0)
            return ev.HorizonDeclared(at_s=now_s, attempt=self.attempt, max_steps=most)
        step = check_step(said.pop("step", self._step + 1), self._step)
        metrics = self._metrics.check({name: _not_finite(value) for name, value in said.items()})
        self._step = step
        return self._point(step, metrics, None, now_s)


def read_farewell(spool: Path) -> Farewell | None:
    """What a process said at its end, if it did."""
    reader = SpoolReader(spool)
    said: Farewell | None = None
    for data in reader.lines():
        with suppress(msgspec.DecodeError):
            line = decode_line(data)
            said = line if isinstance(line, Farewell) else said
    reader.close()
    return said


def _is_object(data: bytes) -> bool:
    """Whether this is a JSON object to its last brace; a torn one is not."""
    try:
        return isinstance(json.loads(data), dict)
    except (ValueError, RecursionError):
        return False


def _not_finite(value: object) -> object:
    """JSON has no NaN and no infinity; their names are taken for them."""
    known = isinstance(value, str) and value.lower().lstrip("+-") in ("nan", "inf", "infinity")
    return float(value) if known else value  # type: ignore[arg-type]
