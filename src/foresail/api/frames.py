"""A study as pandas frames, and as tables on disk (CSV, Parquet)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from foresail.api.spreadsheet import Row, point_rows, trial_rows, write_csv
from foresail.core import events as ev
from foresail.core.view import View
from foresail.errors import MissingExtraError


def points_frame(events: Sequence[ev.Event]) -> Any:
    """Every point of the log as a `pandas.DataFrame`: trial, step, attempt, at_s, seconds, then the metrics.

    Raises:
        MissingExtraError: pandas is not installed.
    """
    return _frame(point_rows(events))


def trials_frame(view: View) -> Any:
    """Every trial as a `pandas.DataFrame`: its status, class, best and reason, and a column `config.<knob>` a knob.

    Raises:
        MissingExtraError: pandas is not installed.
    """
    return _frame(trial_rows(view))


def _frame(rows: Iterator[Row]) -> Any:
    try:
        import pandas
    except ImportError:
        raise MissingExtraError("pandas", "pandas") from None
    titles = next(rows)
    return pandas.DataFrame(list(rows), columns=titles)


def write_points(events: Sequence[ev.Event], to: Path) -> None:
    """The points as a table at `to`, CSV or, where it ends in .parquet, Parquet."""
    write_table(point_rows(events), to, parquet=to.suffix == ".parquet")


def write_table(rows: Iterator[Row], to: Path, *, parquet: bool) -> None:
    """Written elsewhere, then moved: a file of that name is whole.

    Raises:
        MissingExtraError: pyarrow is not installed, for Parquet.
    """
    beside = to.with_name(to.name + ".part")
    if parquet:
        _write_parquet(rows, beside)
    else:
        with beside.open("w", encoding="utf-8", newline="") as stream:
            write_csv(rows, stream)
    os.replace(beside, to)


def _write_parquet(rows: Iterator[Row], to: Path) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "parquet") from None
    titles = [str(title) for title in next(rows)]
    columns = [*zip(*rows, strict=True)] or [()] * len(titles)
    arrays = [_column(column) for column in columns]
    parquet.write_table(pyarrow.table(arrays, names=titles), to)


def _column(values: Sequence[Any]) -> Any:
    """As a column of one type: text where knobs have options of several types."""
    import pyarrow

    try:
        return pyarrow.array([str(v) if isinstance(v, os.PathLike) else v for v in values])
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):
        return pyarrow.array([None if v is None else str(v) for v in values])
