"""Find a near-best system configuration with a handful of measured steps, most of which count as training.

Enumerate what is feasible, predict all, run the one that is predicted to be best, learn from it, look
again; stop when a further probe is expected to save less than it costs. Only configurations with the same
global batch and precision compete, so the learning curve stays the same curve.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from foresail.errors import CallerError
from foresail.perf.fitting import Fit, Prediction, joint_covariance
from foresail.perf.hardware import Cluster
from foresail.perf.law import Law
from foresail.perf.rows import Floats, Ints, Rows
from foresail.perf.words import Job, Precision, Recompute, Sharding, SystemConfiguration

_PROMISING = 0.1
"""Of the largest expected gain, below which a configuration is not probed for being fast alone."""


class Probe(NamedTuple):
    """Which configuration to run next, and the numbers behind it.

    `run` is None when no probe is worth its cost. `gain_s` is what the probe is expected to save over the
    remaining steps, `cost_s` what it costs.
    """

    run: int | None
    gain_s: float
    cost_s: float


def next_probe(
    prediction: Prediction,
    measured: Mapping[int, float],
    *,
    remaining_steps: float = float("inf"),
    cost_s: float = 0.0,
) -> Probe:
    """The unmeasured configuration to run next, given step times predicted for all N of them.

    Greedy: the one predicted to be fastest, passing over those that are known too well to gain much (twins of
    measured ones). It is worth a probe while the expected improvement on the best
    measured step (of a log-normal prediction), over the remaining steps, exceeds the cost of moving there.

    Raises:
        CallerError: a measured index is not one of the N.
    """
    count = len(prediction.log_median)
    if any(not 0 <= i < count for i in measured):
        raise CallerError(f"measured configurations {sorted(measured)}", allowed=f"0 to {count - 1}")
    rest = np.array([i for i in range(count) if i not in measured], dtype=np.int64)
    if len(rest) == 0:
        return Probe(None, 0.0, cost_s)
    fastest = int(rest[np.argmin(prediction.log_median[rest])])
    if not measured:
        return Probe(fastest, float("inf"), cost_s)
    best = min(measured.values())
    if not np.isfinite(best):  # all that ran so far did not fit
        return Probe(fastest, float("inf"), cost_s)
    gains = _expected_gain(prediction.log_median[rest], prediction.log_sd[rest], best)
    gain = float(gains.max()) * remaining_steps if gains.max() > 0 else 0.0
    promising = rest[gains >= _PROMISING * gains.max()]
    fastest = int(promising[np.argmin(prediction.log_median[promising])])
    return Probe(fastest if gain > cost_s else None, gain, cost_s)


def _expected_gain(log_median: Floats, log_sd: Floats, best_s: float) -> Floats:
    """[N] E[(best - t)+] of log-normal step times."""
    from scipy.special import ndtr

    z = (np.log(best_s) - log_median) / log_sd
    mean = np.exp(log_median + 0.5 * log_sd**2)
    gain: Floats = best_s * ndtr(z) - mean * ndtr(z - log_sd)
    return np.maximum(gain, 0.0)


def most_telling(
    law: Law,
    model: Fit | None,
    rows: Rows,
    count: int,
    *,
    without: Sequence[int] = (),
    noise_sd: float = 0.03,
) -> Ints:
    """`count` of N runs whose measurement would tell most about all of them, one after the other.

    Each is the one that lowers the summed variance most (greedy A-optimal design, as Ernest's, NSDI 2016);
    those in `without` are not chosen.

    Raises:
        CallerError: more are asked for than there are.
    """
    left_over = len(rows) - len(set(without))
    if not 0 <= count <= left_over:
        raise CallerError(f"{count} of {left_over} configurations", allowed=f"0 to {left_over}")
    left = joint_covariance(law, model, rows).copy()
    chosen: list[int] = []
    for _ in range(count):
        gain = (left**2).sum(0) / (np.diag(left) + noise_sd**2)
        gain[[*chosen, *without]] = -1.0
        best = int(np.argmax(gain))
        chosen.append(best)
        left -= np.outer(left[:, best], left[:, best]) / (left[best, best] + noise_sd**2)
    return np.array(chosen, dtype=np.int64)


def feasible(
    job: Job,
    cluster: Cluster,
    *,
    global_batch: int,
    precision: Precision = Precision.BF16,
    shardings: Sequence[Sharding] = (Sharding.NONE, Sharding.OPTIMIZER, Sharding.FULL),
    recomputes: Sequence[Recompute] = (Recompute.NONE, Recompute.FULL),
    all_devices: bool = True,
    max_micro_batch: int = 64,
) -> list[SystemConfiguration]:
    """Every configuration of a global batch that a cluster can lay out; memory is not asked here.

    Tensor parallelism stays inside a machine and divides the heads; stages divide the layers; replicas and
    micro-batches divide the global batch. A job without layers and heads is run data parallel only.

    Raises:
        CallerError: the global batch is below one.
    """
    if global_batch < 1:
        raise CallerError(f"a global batch of {global_batch}", allowed="1 or more")
    found: list[SystemConfiguration] = []
    for tp, pp, dp in _degrees(job, cluster, all_devices=all_devices):
        if global_batch % dp:
            continue
        for micro in (m for m in _divisors(global_batch // dp) if m <= max_micro_batch):
            for sharding in shardings:
                if (sharding is not Sharding.NONE and dp == 1) or (sharding is Sharding.FULL and pp > 1):
                    continue
                found.extend(
                    SystemConfiguration(
                        dp=dp,
                        tp=tp,
                        pp=pp,
                        micro_batch=micro,
                        accumulation=global_batch // (dp * micro),
                        sharding=sharding,
                        recompute=recompute,
                        precision=precision,
                    )
                    for recompute in recomputes
                )
    return found


def _degrees(job: Job, cluster: Cluster, *, all_devices: bool) -> Iterator[tuple[int, int, int]]:
    """(tp, pp, dp) that the job and the cluster allow."""
    total = cluster.devices
    for tp in _divisors(job.heads or 1):
        if tp > cluster.devices_per_node or cluster.devices_per_node % tp:
            continue
        for pp in _divisors(job.layers or 1):
            if tp * pp > total:
                break
            widths = [total // (tp * pp)] if all_devices else _divisors(total // (tp * pp))
            for dp in widths:
                if not all_devices or dp * tp * pp == total:
                    yield tp, pp, dp


def _divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]
