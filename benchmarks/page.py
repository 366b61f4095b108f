"""The page with many trials, in headless Chromium: first paint, an update, bytes, errors in the console.

    python -m benchmarks.page [--trials 1000] [--points 100] [--updates 10] [--study FILE] [--json FILE]

The study is a log of legal events, appended as a driver would (the training is free): all trials have all points, every
trial a class and a chance, and the last are still running. The server is `foresail serve` in a process of its own; the
browser is Chromium with a cold cache. Wall times are those of this machine as busy as it is; `_cpu_s` is what the main
thread of the page, and the server, used of a core for the same, which a busy machine disturbs less:

* `glance`: from the request until the goal, the best, time and classes are written;
* `drawn`: until the pictures in sight are drawn as well (learning curves, the map);
* `update`: one increment, from the arrival of its answer to the last picture in sight; `update_bytes` on the wire;
* `answer`: the server's time for that increment, first and last byte included;
* `again`: the page is opened once more, when the server has read the log;
* `past`: from the click to a moment of the middle of the study until that is drawn.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from foresail.core import events as ev
from foresail.core.goal import maximize
from foresail.core.plan import Verdict
from foresail.core.reason import Reason, Rule
from foresail.core.spec import StudySpec
from foresail.core.words import Act, Label, Outcome, Status, TrialId, attempt_id
from foresail.space import Choice, Float, Int, Space
from foresail.stores.sqlite import SqliteStore

CHROMIUM = "/usr/bin/chromium"
CORES = 8
SPACE = Space(
    lr=Float(1e-4, 1.0, log=True),
    momentum=Float(0.0, 0.99),
    width=Int(8, 512, log=True),
    depth=Int(1, 6),
    dropout=Float(0.0, 0.8),
    optimizer=Choice(["sgd", "adam", "lamb"]),
)


class Growing:
    """A log that is written as if a driver trained: `CORES` trials at a time, point by point."""

    def __init__(self, path: Path, trials: int, points: int) -> None:
        self.points, self.trials, self.rng = points, trials, random.Random(0)
        self.store = SqliteStore.open(path)
        goal = maximize("accuracy", target=0.98, within="10 days", trials=trials + 10 * CORES)
        spec = StudySpec(name="many", space=SPACE.to_dict(), goal=goal, max_steps=points)
        self.store.append([ev.StudyCreated(at_s=0.0, spec=spec), ev.DriverStarted(at_s=0.0, cores=tuple(range(CORES)))])
        self.now_s, self.next, self.decision = 0.0, 0, 0
        self.ends: dict[int, float] = {}

    def write(self) -> None:
        """All but the last `CORES` trials to their ends; those to their middle."""
        while self.next + CORES <= self.trials:
            batch = [self._new() for _ in range(CORES)]
            last = self.next + CORES > self.trials
            self.store.append(list(self._round(batch, self.points // 2 if last else self.points)))
            if not last:
                self.store.append([event for trial in batch for event in self._end(trial)])
        self.running, self.step = batch, self.points // 2

    def grow(self) -> int:
        """One more step of those that run, with a decision about them; the number of events."""
        self.step += 1
        events: list[ev.Event] = [self._point(trial, self.step) for trial in self.running]
        events.append(self._plan(self.running))
        self.store.append(events)
        return len(events)

    def _new(self) -> int:
        trial, self.next = self.next, self.next + 1
        self.ends[trial] = min(0.99, self.rng.betavariate(5, 2))
        return trial

    def _round(self, batch: list[int], points: int) -> Iterator[ev.Event]:
        for core, trial in enumerate(batch):
            config = SPACE.point([self.rng.random() for _ in SPACE.knobs])
            yield ev.TrialProposed(at_s=self.now_s, trial=TrialId(trial), config=config, origin="random")
            attempt = attempt_id(TrialId(trial), 1)
            yield ev.AttemptGranted(at_s=self.now_s, attempt=attempt, trial=TrialId(trial), number=1, cores=(core,))
        yield self._plan(batch)
        for step in range(1, points + 1):
            yield from (self._point(trial, step) for trial in batch)

    def _point(self, trial: int, step: int) -> ev.PointReported:
        self.now_s += 0.1
        value = self.ends[trial] * (1.0 - 0.8 * 0.9**step) + self.rng.gauss(0.0, 0.003)
        attempt = attempt_id(TrialId(trial), 1)
        return ev.PointReported(
            at_s=self.now_s, attempt=attempt, step=step, metrics={"accuracy": value}, seconds=0.5 + (trial % 37) / 20
        )

    def _plan(self, batch: list[int]) -> ev.Planned:
        verdicts = tuple(self._verdict(trial) for trial in batch)
        self.decision += 1
        return ev.Planned(at_s=self.now_s, decision=self.decision - 1, verdicts=verdicts)

    def _verdict(self, trial: int) -> Verdict:
        p = max(0.0, min(1.0, self.ends[trial] ** 6 + self.rng.gauss(0.0, 0.03)))
        label = Label.PROMISING if p > 0.5 else Label.POOR if p < 0.05 else Label.OPPORTUNISTIC
        reason = Reason(Rule.POP_OPPORTUNISTIC, {"p": p, "threshold": 0.5, "final": self.ends[trial]})
        return Verdict(TrialId(trial), Act.RUN, reason, label=label)

    def _end(self, trial: int) -> Iterator[ev.Event]:
        attempt = attempt_id(TrialId(trial), 1)
        yield ev.AttemptEnded(at_s=self.now_s, attempt=attempt, outcome=Outcome.COMPLETED)
        yield ev.TrialEnded(at_s=self.now_s, trial=TrialId(trial), status=Status.COMPLETED)


class Serving:
    """`foresail serve` in its own process."""

    def __init__(self, storage: Path) -> None:
        started = time.perf_counter()
        command = [sys.executable, "-m", "foresail", "serve", str(storage), "--json"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        lines = [self.process.stdout.readline() for _ in range(3)]
        self.address = json.loads("".join(lines))["address"]
        self.read_s = time.perf_counter() - started

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()


def measure(storage: Path, log: Growing | None, updates: int) -> dict[str, Any]:
    """What a person waits for."""
    import psutil
    from playwright.sync_api import sync_playwright

    serving = Serving(storage)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            page.set_default_timeout(300_000)
            server = psutil.Process(serving.process.pid)
            found = {"read_s": serving.read_s, "read_cpu_s": sum(server.cpu_times()[:2])}
            found |= _look(page, serving.address, log, server, updates)
            browser.close()
    finally:
        serving.close()
    return found


def _look(page: Any, address: str, log: Growing | None, server: Any, count: int) -> dict[str, Any]:
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable")

    def cpu_s() -> tuple[float, float]:
        metrics = {row["name"]: row["value"] for row in devtools.send("Performance.getMetrics")["metrics"]}
        return float(metrics["ThreadTime"]), sum(server.cpu_times()[:2])

    start = cpu_s()
    page.goto(address, wait_until="commit")
    marks = _marks(page)
    first = cpu_s()
    page.wait_for_selector("#map[data-computed]")
    medians: dict[str, float] = {}
    if log is not None:
        updates = [_update(page, log, cpu_s) for _ in range(count)]
        medians = {key: statistics.median(update[key] for update in updates) for key in updates[0]}
    before = cpu_s()
    page.reload(wait_until="commit")
    again, second = _marks(page), cpu_s()
    started = time.perf_counter()
    middle = page.evaluate("() => { foresail.goTo(Math.round(foresail.state.last / 2)); return foresail.ui.until; }")
    page.wait_for_selector(f'#curves[data-drawn="{middle}"]')
    past_s = time.perf_counter() - started
    return {
        **marks,
        "drawn_page_cpu_s": first[0],  # of the page's thread from its beginning
        "drawn_server_cpu_s": first[1] - start[1],
        **medians,
        **{f"again_{key}": value for key, value in again.items()},
        "again_drawn_page_cpu_s": second[0] - (before[0] if second[0] >= before[0] else 0.0),  # of a new thread: all
        "again_drawn_server_cpu_s": second[1] - before[1],
        "past_s": past_s,
        "console_errors": len(errors),
        "errors": errors[:3],
    }


def _marks(page: Any) -> dict[str, float]:
    """Seconds from the request for the page until it has drawn the two pictures that are in sight."""
    page.wait_for_selector("#curves[data-drawn]")
    page.wait_for_selector("#map[data-drawn]")
    page.wait_for_function("() => performance.getEntriesByName('drawn').length > 0")
    marks: dict[str, float] = page.evaluate(
        """() => {
            const at = (name) => performance.getEntriesByName(name)[0].startTime / 1000;
            return { first_paint_s: at("first-contentful-paint"), glance_s: at("glance"), drawn_s: at("drawn") };
        }"""
    )
    return marks


def _update(page: Any, log: Growing, cpu_s: Any) -> dict[str, float]:
    """One increment."""
    page.evaluate("() => performance.clearResourceTimings()")
    before = cpu_s()
    log.grow()
    page.wait_for_selector(f'html[data-drawn="{log.store.last}"]', state="attached")
    told = page.evaluate(
        """() => {
            const answers = performance.getEntriesByType("resource").filter((entry) => entry.name.includes("/changes"));
            const answer = answers.sort((a, b) => b.encodedBodySize - a.encodedBodySize)[0];
            return { ms: performance.getEntriesByName("drawn").at(-1).detail.ms, bytes: answer.encodedBodySize,
                answer_ms: answer.responseEnd - answer.requestStart };
        }"""
    )
    after = cpu_s()
    return {
        "update_s": told["ms"] / 1000,
        "update_page_cpu_s": after[0] - before[0],
        "update_server_cpu_s": after[1] - before[1],
        "answer_s": told["answer_ms"] / 1000,
        "update_bytes": told["bytes"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--updates", type=int, default=10, help="increments that are measured; medians are given")
    parser.add_argument("--study", type=Path, help="one that exists, in place of a new one: no updates are measured")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if args.study:
        found = measure(args.study, None, 0)
    else:
        found = _of_new(args.trials, args.points, args.updates)
    for key, value in found.items():
        print(f"{key:24} {value:.4g}" if isinstance(value, float) else f"{key:24} {value}")
    if args.json:
        args.json.write_text(json.dumps(found, indent=2))


def _of_new(trials: int, points: int, updates: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        storage = Path(folder) / "many.db"
        log = Growing(storage, trials, points)
        log.write()
        return {"trials": trials, "points": points, **measure(storage, log, updates)}


if __name__ == "__main__":
    main()
