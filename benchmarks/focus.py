"""What the lens around the target is worth: scores of reach probabilities with and without it.

    python -m benchmarks.focus TRACE_FOLDER...

Each trace is a study of its first 60 trials, without hyperparameters; the target is its top 10 %. Of the trials that
have not reached it after 10, 20 and 40 % of their steps: Brier and log score of P(reached by the end), mean over
families of traces (a family is the first word of a name).
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np

from foresail.curves import forecast
from foresail.policies.focus import Focus
from foresail.replay.folder import read_folder
from foresail.replay.trace import Trace

PREFIXES = (0.1, 0.2, 0.4)
SHARES = (None, 0.15, 0.05)
TRIALS = 60


def scores(trace: Trace, prefix: float, share: float | None) -> tuple[float, float] | None:
    """(Brier, log score), or None where no trial is left to be judged. `share`: width of the lens; None for none."""
    sign = 1.0 if trace.mode == "max" else -1.0
    target = sign * trace.targets["top10pct"]
    curves = [sign * np.asarray(curve.values, float) for curve in trace.curves[:TRIALS]]
    curves = [curve for curve in curves if np.isfinite(curve[: _seen(curve, prefix)]).all()]
    start = float(np.median([curve[0] for curve in curves]))
    lens = Focus(target, share * abs(target - start)) if share else None
    open_now = [curve for curve in curves if curve[: _seen(curve, prefix)].max() < target]
    if not open_now:
        return None
    seen = [curve[: _seen(curve, prefix)] for curve in open_now]
    looked_at = [lens.of(values) if lens else values for values in seen]
    horizon = np.arange(1, max(map(len, curves)) + 1)
    steps = [np.arange(1, len(values) + 1) for values in seen]
    found = forecast(steps, looked_at, horizon, mode="max", rng=np.random.default_rng(0))
    p = np.clip(found.prob_reach(float(lens.of(target)) if lens else target), 1e-3, 1 - 1e-3)
    y = np.array([np.nanmax(curve) >= target for curve in open_now], float)
    return float(((p - y) ** 2).mean()), float((y * np.log(p) + (1 - y) * np.log(1 - p)).mean())


def _seen(curve: np.ndarray, prefix: float) -> int:
    return max(1, round(prefix * len(curve)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+", type=Path)
    traces = [read_folder(folder) for folder in parser.parse_args().traces]
    print("width      " + "".join(f"{prefix:>10.0%} seen    " for prefix in PREFIXES))
    for share in SHARES:
        cells = []
        for prefix in PREFIXES:
            families: dict[str, list[tuple[float, float]]] = defaultdict(list)
            for trace in traces:
                found = scores(trace, prefix, share)
                if found is not None:
                    families[trace.name.split("-")[0]].append(found)
            brier, log_score = np.mean([np.mean(rows, axis=0) for rows in families.values()], axis=0)
            cells.append(f"{brier:.4f} ({log_score:.3f})")
        print(f"{'no lens' if share is None else format(share, '.0%'):<10} " + "   ".join(cells))


if __name__ == "__main__":
    main()
