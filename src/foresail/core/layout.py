"""How a trial's processes share its work: the ranks that a grant of cores becomes.

A study says once how its trials are parallel (`Parallel`); what an attempt gets (`Layout`) follows from that and from
the number of its cores, so that a wider grant is a wider training and nothing has to be recorded twice.
"""

from __future__ import annotations

from msgspec import Struct

from foresail.core.words import Config
from foresail.errors import CallerError

TIMEOUT_S = 300.0
"""Seconds that ranks wait for each other before the attempt has failed: more than the slowest step between two of
their meetings."""


class Layout(Struct, frozen=True, kw_only=True):
    """The ranks of one attempt: `pp` pipeline stages, times `dp` data-parallel replicas, times `tp` parts of a layer.

    `sharded`: replicas share parameters, gradients and optimizer state instead of each holding all. `micro_batch`:
    most samples that a rank computes at a time; None: its whole share. `halvings`: how often that is cut in half, since
    memory ran out. `timeout_s`: how long ranks wait for each other.
    """

    dp: int = 1
    tp: int = 1
    pp: int = 1
    sharded: bool = False
    micro_batch: int | None = None
    halvings: int = 0
    timeout_s: float = TIMEOUT_S

    def micro(self, share: int) -> int:
        """Samples of a rank's share that it computes at a time.

        >>> Layout(halvings=2).micro(24)
        6
        """
        micro = min(share, self.micro_batch or share)
        for _ in range(self.halvings):
            micro = micro // 2 if micro % 2 == 0 else micro
        return micro

    @property
    def ranks(self) -> int:
        """Processes of the attempt."""
        return self.dp * self.tp * self.pp


class Parallel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a study's trials do with several cores: `threads` for each rank, the rest as in `Layout`.

    `batch`: samples of a global batch, or the name of the knob that says so; what trials are granted is then kept to
    numbers of replicas that can share it evenly.

    Raises:
        CallerError: a number is below one, or the time limit is not above zero.
    """

    tp: int = 1
    pp: int = 1
    sharded: bool = False
    threads: int = 1
    micro_batch: int | None = None
    batch: int | str | None = None
    timeout_s: float = TIMEOUT_S

    def __post_init__(self) -> None:
        for name in ("tp", "pp", "threads", "micro_batch", "batch"):
            value = getattr(self, name)
            if isinstance(value, int) and value < 1:
                raise CallerError(f"parallel: {name} is {value}", allowed="whole numbers from 1")
        if self.timeout_s <= 0:
            raise CallerError(f"parallel: timeout_s is {self.timeout_s}", allowed="seconds above 0")

    @property
    def cores(self) -> int:
        """The fewest cores that a trial needs; more come in multiples of this."""
        return self.tp * self.pp * self.threads

    def keeps_batch(self, cores: int, config: Config) -> bool:
        """Whether the replicas on so many cores can share the batch of this configuration, and its micro-batches."""
        batch = config.get(self.batch) if isinstance(self.batch, str) else self.batch
        if not isinstance(batch, int):
            return True  # not known
        share, rest = divmod(batch, self.layout(cores).dp)
        return rest == 0 and share % min(share, self.micro_batch or share) == 0

    def layout(self, cores: int) -> Layout:
        """The ranks of an attempt with so many cores: as many replicas as fit.

        >>> Parallel(tp=2).layout(4)
        Layout(dp=2, tp=2, pp=1, sharded=False, micro_batch=None, halvings=0, timeout_s=300.0)
        """
        dp = max(1, cores // self.cores)
        return Layout(
            dp=dp, tp=self.tp, pp=self.pp, sharded=self.sharded, micro_batch=self.micro_batch, timeout_s=self.timeout_s
        )
