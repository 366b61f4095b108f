"""`plan` against published tables of large jobs, without a probe."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.perf.scoring import Score
from benchmarks.perf.tables import Table


def published(tables: list[Table]) -> Iterator[Score]:
    """Rank correlation and error of predicted step times."""
    yield from ()
