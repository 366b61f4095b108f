"""Many replays, in parallel over cores: every contender on the same traces, with the same seeds, in one setting."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass

from foresail.replay.record import Record
from foresail.replay.session import Contender, Setting, replay
from foresail.replay.source import read

SEEDS_A_BATCH = 5
"""Seeds that one process plays on a trace that it has read."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Work of one process: a trace, some seeds, everybody."""

    path: str
    contenders: tuple[Contender, ...]
    seeds: tuple[int, ...]
    setting: Setting

    def __len__(self) -> int:
        return len(self.contenders) * len(self.seeds)


def batches(
    paths: Sequence[str], contenders: Sequence[Contender], seeds: Sequence[int], setting: Setting
) -> list[Batch]:
    """The work, split by trace and by seeds."""
    parts = [tuple(seeds[at : at + SEEDS_A_BATCH]) for at in range(0, len(seeds), SEEDS_A_BATCH)]
    return [Batch(path, tuple(contenders), part, setting) for part in parts for path in paths]


def play(batch: Batch) -> list[Record]:
    """The records of a batch, in the order seed, contender."""
    trace = read(batch.path)
    return [replay(trace, who, seed, batch.setting) for seed in batch.seeds for who in batch.contenders]


def compare(work: Sequence[Batch], *, processes: int, done: Callable[[int], None] | None = None) -> list[Record]:
    """All records, in an order that does not depend on who was faster.

    Args:
        work: As `batches` gives it.
        processes: How many to use; 1 plays everything here.
        done: Called with the number of replays that have just been finished.
    """
    records: dict[int, list[Record]] = {}
    for at, found in _played(work, processes):
        records[at] = found
        if done is not None:
            done(len(found))
    return [record for at in sorted(records) for record in records[at]]


def _played(work: Sequence[Batch], processes: int) -> Iterator[tuple[int, list[Record]]]:
    if processes <= 1:
        yield from ((at, play(batch)) for at, batch in enumerate(work))
        return
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        pending: dict[Future[list[Record]], int] = {pool.submit(play, batch): at for at, batch in enumerate(work)}
        while pending:
            for future in wait(pending, return_when=FIRST_COMPLETED).done:
                yield pending.pop(future), future.result()
