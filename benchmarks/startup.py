"""From the command to the first point: a script whose trials import nothing, run as a user runs it.

    python -m benchmarks.startup [--runs 7]

Also: what `import foresail` takes, and whether it brings torch, scipy or ray. Minimum and median of the runs; a loaded
machine shows in the difference.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCRIPT = """
import sys, time
import foresail as fs

def train(run):
    run.report(score=1.0)

def seen(view, events):
    if view.points:
        print(time.time(), file=sys.stderr)
        sys.stderr.flush()

if __name__ == "__main__":
    space = fs.Space(x=fs.Float(0.0, 1.0))
    fs.Study(train, space=space, goal=fs.maximize("score", trials=1), storage=sys.argv[1]).run(watch=seen)
"""
IMPORT = "import sys, foresail; print(*(m for m in ('torch', 'scipy', 'ray', 'numpy') if m in sys.modules))"


def first_point(folder: Path, number: int) -> float:
    """Seconds from the command to the moment at which the driver has recorded the first point."""
    script = folder / "study.py"
    script.write_text(SCRIPT)
    started = time.time()
    done = subprocess.run(
        [sys.executable, str(script), str(folder / f"{number}.db")], capture_output=True, text=True, check=True
    )
    return float(done.stderr.split()[0]) - started


def import_time() -> float:
    """Seconds of `import foresail` beyond those of a bare interpreter."""
    took = []
    for code in ("pass", "import foresail"):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        took.append(time.perf_counter() - started)
    return took[1] - took[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        points = [first_point(Path(folder), number) for number in range(runs)]
    imports = [import_time() for _ in range(runs)]
    brought = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True).stdout.strip()
    print(f"first point: min {min(points):.3f} s, median {statistics.median(points):.3f} s")
    print(f"import foresail: min {1000 * min(imports):.0f} ms, median {1000 * statistics.median(imports):.0f} ms")
    print(f"heavy modules brought by it: {brought or 'none'}")


if __name__ == "__main__":
    main()
