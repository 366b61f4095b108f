"""`plan` against published step times of large jobs, without a probe and without a history.

A table without a `micro_batch` column publishes the best of what its authors tried: the fastest micro-batch
that fits stands for it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from benchmarks.perf.scoring import Score, percent
from benchmarks.perf.tables import Table, _precision, device_of, job_of, number, seconds_of
from scipy.stats import spearmanr

from foresail.perf.hardware import Cluster
from foresail.perf.plan import Option, assess
from foresail.perf.words import Recompute, Sharding, SystemConfiguration

_MICRO_BATCHES = (1, 2, 4, 8, 16)
_LEAST = 4


def published(tables: list[Table]) -> Iterator[Score]:
    """Rank correlation and error of predicted step times, for each table of large transformers."""
    for table in tables:
        large = [e for e in table.rows if _is_large(e)]
        if len(large) < _LEAST:
            continue
        truth = np.array([seconds_of(e) for e in large])
        options = [_planned(e) for e in large]
        found = np.array([o.step_s for o in options])
        inside = [o.step_low_s <= t <= o.step_high_s for o, t in zip(options, truth, strict=True)]
        error = np.abs(found / truth - 1)
        rank = float(spearmanr(found, truth).statistic)
        figures = {
            "n": float(len(large)),
            "rank": rank,
            "median": float(np.median(error)),
            "p95": float(np.quantile(error, 0.95)),
            "coverage": float(np.mean(inside)),
        }
        yield Score(
            "plan without a probe, large transformers on known devices",
            table.name,
            "rank correlation 0.9, median 15 %",
            f"rank correlation {rank:.3f}, {percent(figures, 'median', 'p95', 'coverage')} of {len(large)}",
            rank >= 0.9 and figures["median"] <= 0.15,
            figures,
        )


def _is_large(entry: dict[str, str]) -> bool:
    has_shape = bool(entry.get("layers") and entry.get("hidden")) or bool(entry.get("params"))
    seconds = seconds_of(entry)
    return bool(
        has_shape
        and number(entry, "seq_len") > 0
        and number(entry, "devices") > 8
        and np.isfinite(seconds)
        and device_of(entry).is_known
    )


def _planned(entry: dict[str, str]) -> Option:
    """The published layout; with no micro-batch given, the fastest one that fits."""
    tp, pp = (int(number(entry, name, default=1)) for name in ("tp", "pp"))
    devices = int(number(entry, "devices"))
    dp = int(number(entry, "dp", default=devices / (tp * pp)))
    batch = number(entry, "global_batch")
    given = number(entry, "micro_batch")
    micros = [int(given)] if given > 0 else [m for m in _MICRO_BATCHES if m * dp <= batch]
    full = entry.get("recompute", "") == "full"
    sharding = Sharding.FULL if "shard" in entry.get("sharding", "").lower() else Sharding.NONE
    if entry.get("sharding", "") in list(Sharding):
        sharding = Sharding(entry["sharding"])
    systems = [
        SystemConfiguration(
            dp=dp,
            tp=tp,
            pp=pp,
            micro_batch=m,
            accumulation=max(1, round(batch / (dp * m))),
            sharding=sharding,
            recompute=Recompute.FULL if full else Recompute.NONE,
            precision=_precision(entry),
        )
        for m in micros
    ]
    device = device_of(entry)
    nodes = int(number(entry, "nodes", default=-(-devices // device.per_node)))
    cluster = Cluster(device=device, nodes=nodes)
    options = assess(job_of(entry), cluster, systems)
    safe = [o for o in options if o.fits] or options[:1]
    return min(safe, key=lambda o: o.step_s)
