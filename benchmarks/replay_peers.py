"""Our policies beside independent implementations, from the records of a comparison.

    foresail replay TRACES/* --policy random,median,asha,asha-stop,hyperband --seeds 20 --json records.json
    python benchmarks/replay_peers.py records.json

Prints the speed-up over random to the top 1 % by family of traces, and marks what is outside the 90 % interval that
implementations written independently reached on the same traces under the same rules (20 seeds, 4 workers).
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from foresail.replay.record import Record
from foresail.replay.scores import REFERENCE, by_policy, speedup

FAMILIES = ("algoperf", "deepobs", "hyperjump", "taskset", "yahpo", "")
PEERS: dict[str, tuple[tuple[float, float], ...]] = {
    "median": ((0.92, 1.12), (0.99, 1.11), (1.51, 2.34), (1.52, 1.98), (1.10, 1.81), (1.22, 1.61)),
    "asha": ((0.48, 0.79), (1.16, 2.37), (1.96, 4.40), (5.17, 7.62), (1.27, 3.02), (1.62, 2.83)),
    "asha-stop": ((0.54, 0.79), (0.92, 1.56), (1.93, 4.46), (4.54, 6.24), (1.27, 2.98), (1.51, 2.63)),
    "hyperband": ((0.55, 0.89), (0.79, 1.06), (1.19, 1.97), (2.18, 3.06), (1.46, 2.05), (1.34, 1.78)),
    "asha:first_rung=3": ((0.46, 0.80), (1.01, 1.63), (1.21, 3.50), (2.77, 4.36), (2.28, 3.45), (1.76, 2.62)),
    "asha-stop:first_rung=3": ((0.50, 0.82), (0.94, 1.45), (1.22, 3.36), (2.65, 4.08), (2.10, 3.40), (1.71, 2.56)),
    "hyperband:first_rung=3": ((0.64, 1.08), (0.83, 1.15), (1.08, 1.91), (1.46, 2.29), (1.42, 1.88), (1.27, 1.64)),
}


def main() -> None:
    policies = by_policy(msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=list[Record]))
    base = policies[REFERENCE]
    print(f"{'policy':24s}" + "".join(f"{family or 'all':>28s}" for family in FAMILIES))
    for policy, intervals in PEERS.items():
        cells = []
        for family, (low, high) in zip(FAMILIES, intervals, strict=True):
            found = speedup([r for r in policies.get(policy, ()) if r.trace.startswith(family)], base, "top1pct")
            inside = "  " if found is None or low <= found.mean <= high else " *"
            cells.append("-" if found is None else f"{found.mean:.2f} in [{low:.2f}, {high:.2f}]{inside}")
        print(f"{policy:24s}" + "".join(f"{cell:>28s}" for cell in cells))


if __name__ == "__main__":
    main()
