"""What changes learning and what does not, and the published rules for those who want to change it.

Threads, replicas, accumulation, parallel degrees, sharding, recomputation and placement keep the global
batch: the learning curve stays the same curve. The global batch and the precision are hyperparameters.
Nothing here is applied behind the user's back: `learning_rate_for` answers when asked.
"""

from __future__ import annotations

import math
from enum import StrEnum

from foresail.errors import CallerError
from foresail.perf.words import SystemConfiguration

LEARNING = ("global_batch", "precision")
"""What of a system configuration touches learning; everything else may change freely."""


class Rule(StrEnum):
    """How the learning rate follows the batch.

    `LINEAR`: SGD below the critical batch, with warm-up (Goyal et al. 2017). `SQUARE_ROOT`: Adam, with 1 -
    beta times the ratio (Malladi et al., NeurIPS 2022). `NOISE`: SGD at any batch, from the gradient noise
    scale (McCandlish et al. 2018, eq. 2.13; AdaScale, Johnson et al. 2020). `SURGE`: Adam at any batch; it
    rises, peaks at the noise scale, and falls (Li et al. 2024).
    """

    LINEAR = "linear"
    SQUARE_ROOT = "square root"
    NOISE = "noise"
    SURGE = "surge"


def changes_learning(old: SystemConfiguration, new: SystemConfiguration) -> tuple[str, ...]:
    """What of a change touches learning; empty where the curve stays the same.

    >>> changes_learning(SystemConfiguration(micro_batch=8), SystemConfiguration(dp=2, micro_batch=4))
    ()
    """
    return tuple(name for name in LEARNING if getattr(old, name) != getattr(new, name))


def learning_rate_for(
    rate: float, batch: int, new_batch: int, *, rule: Rule = Rule.LINEAR, noise_scale: float | None = None
) -> float:
    """The learning rate at another global batch, by a published rule.

    `noise_scale` is the batch at which gradient noise and signal are equal, in samples.

    Raises:
        CallerError: a number is not positive, or the rule needs a noise scale.

    >>> learning_rate_for(0.1, 32, 64)
    0.2
    """
    if not (rate > 0 and batch > 0 and new_batch > 0 and (noise_scale is None or noise_scale > 0)):
        raise CallerError(
            f"learning rate {rate} at batch {batch} for batch {new_batch}", allowed="positive numbers"
        )
    ratio = new_batch / batch
    if rule is Rule.LINEAR:
        return rate * ratio
    if rule is Rule.SQUARE_ROOT:
        return rate * math.sqrt(ratio)
    if noise_scale is None:
        raise CallerError(f"the {rule} rule needs a noise scale", do="measure it, or take another rule")
    if rule is Rule.NOISE:
        return rate * (1 + noise_scale / batch) / (1 + noise_scale / new_batch)

    def height(size: int) -> float:
        return 2 / (math.sqrt(size / noise_scale) + math.sqrt(noise_scale / size))

    return rate * height(new_batch) / height(batch)
