"""Whether an open page slows the driver down: the same study driven with and without one, in turns.

    python -m benchmarks.page_beside [--trials 3000] [--points 10] [--policy pop] [--rounds 4] [--json FILE]

The real driver, engine, policy and SQLite store in a process of their own; only the training is played, so that
reports come as fast as the driver takes them, which is far more than trainings send. In every other round `foresail
serve` and a headless Chromium with its page follow that study from its first event. Given are the driver's processor
time and its wall time a report, and of both the ratio of each pair of rounds. The first tells whether the page makes
the driver do more; the second contains that browser and server need a core as well, where there is none to spare.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.driver import SPACE, recording
from benchmarks.page import CHROMIUM, Serving

from foresail.api.drive import controller_of
from foresail.core import events as ev
from foresail.core.goal import maximize
from foresail.core.spec import Choice, StudySpec
from foresail.driver.loop import Driver
from foresail.executors.replay import ReplayExecutor, VirtualClock
from foresail.stores.sqlite import SqliteStore


def drive(storage: Path, policy: str, trials: int, points: int) -> None:
    """Create the study, wait for a line on stdin, drive it to its end, and tell what that took."""
    goal, clock = maximize("accuracy", trials=trials), VirtualClock()
    spec = StudySpec(name="driven", space=SPACE.to_dict(), goal=goal, policy=Choice(policy), max_steps=points)
    with SqliteStore.open(storage) as store:
        controller = controller_of(spec)
        store.append(controller.feed(ev.StudyCreated(at_s=0.0, spec=spec)).events, durable=True)
        driver = Driver(
            controller, store=store, executor=ReplayExecutor(recording(points), "accuracy", clock), clock=clock
        )
        print("ready", flush=True)
        sys.stdin.readline()
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        view = driver.run(tuple(range(8)))
        took = {"wall_us": time.perf_counter() - wall_s, "cpu_us": time.process_time() - cpu_s}
    print(json.dumps({key: 1e6 * value / view.points for key, value in took.items()} | {"points": view.points}))


def driven(args: argparse.Namespace, *, page: bool) -> dict[str, float]:
    """One round, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        storage = Path(folder) / "study.db"
        options = ["--trials", str(args.trials), "--points", str(args.points), "--policy", args.policy]
        command = [sys.executable, "-m", "benchmarks.page_beside", "--drive", str(storage), *options]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        child.stdout.readline()
        if not page:
            return _finished(child)
        with _looked_at(storage) as events:
            found = _finished(child)
            return found | {"events_seen": float(events())}


def _finished(child: subprocess.Popen[str]) -> dict[str, float]:
    said, _ = child.communicate("go\n")
    found: dict[str, float] = json.loads(said)
    return found


@contextmanager
def _looked_at(storage: Path) -> Iterator[Callable[[], int]]:
    """The study's page in a browser; gives how many events it shows."""
    from playwright.sync_api import sync_playwright

    serving = Serving(storage)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        shown = browser.new_page(viewport={"width": 1440, "height": 900})
        shown.goto(serving.address)
        shown.wait_for_function("() => foresail.state.event > 0")
        yield lambda: shown.evaluate("() => foresail.state.event")
        browser.close()
    serving.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=3000)
    parser.add_argument("--points", type=int, default=10)
    parser.add_argument("--policy", default="pop")
    parser.add_argument("--rounds", type=int, default=4, help="pairs of rounds")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--drive", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.drive:
        return drive(args.drive, args.policy, args.trials, args.points)
    rounds = []
    for number in range(args.rounds):
        pair = {page: driven(args, page=page) for page in ((False, True) if number % 2 else (True, False))}
        rounds.append({"without": pair[False], "with": pair[True]})
        print(json.dumps(rounds[-1]), file=sys.stderr)
    for key in ("cpu_us", "wall_us"):
        without, beside = ([row[side][key] for row in rounds] for side in ("without", "with"))
        ratios = [b / a for a, b in zip(without, beside, strict=True)]
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        print(f"{key} a report: {statistics.median(without):.0f} without a page, {statistics.median(beside):.0f} with")
        print(f"  ratio: median {statistics.median(ratios):.2f}, {spread}")
    if args.json:
        args.json.write_text(json.dumps(rounds, indent=2))
    return None


if __name__ == "__main__":
    main()
