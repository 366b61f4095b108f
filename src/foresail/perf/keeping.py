"""Measurements as text, to keep with a machine or a study, and the history that they make.

What is kept are the measured runs, not the fitted numbers: a better law fits them again.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from foresail.errors import CallerError
from foresail.perf.fitting import Fit, checked, fit
from foresail.perf.law import Law
from foresail.perf.rows import Floats, Rows

_SCHEMA = 1
MOST_KEPT = 240
"""Runs that a history keeps: more help little, and time grows with their cube."""


class _Kept(msgspec.Struct, frozen=True):
    schema: int
    columns: dict[str, list[float]]
    values: list[float]


def dump_measurements(rows: Rows, values: ArrayLike) -> bytes:
    """Measured runs as JSON.

    Raises:
        CallerError: the values do not fit the rows, or one is not a positive finite number.
    """
    found = checked(values, rows)
    columns = {f.name: getattr(rows, f.name).astype(float).tolist() for f in dataclasses.fields(Rows)}
    return msgspec.json.encode(_Kept(_SCHEMA, columns, found.tolist()))


def load_measurements(text: bytes) -> tuple[Rows, Floats]:
    """What `dump_measurements` wrote.

    Raises:
        CallerError: it is something else, or of a later release.
    """
    try:
        kept = msgspec.json.decode(text, type=_Kept)
    except msgspec.DecodeError as error:
        raise CallerError(f"these are no kept measurements ({error})") from error
    if kept.schema != _SCHEMA:
        raise CallerError(f"measurements of schema {kept.schema}", allowed=f"schema {_SCHEMA}")
    kinds = {"job_id": np.int64, "device_id": np.int64, "known": np.bool_, "on_cpu": np.bool_}
    missing = {f.name for f in dataclasses.fields(Rows)} - set(kept.columns)
    if missing:
        raise CallerError(f"kept measurements without {', '.join(sorted(missing))}")
    arrays: dict[str, Any] = {
        f.name: np.array(kept.columns[f.name], dtype=kinds.get(f.name, np.float64)) for f in dataclasses.fields(Rows)
    }
    return Rows(**arrays), np.array(kept.values)


def history_of(law: Law, rows: Rows, values: ArrayLike) -> Fit:
    """The history that measured runs make: of many, those measured last."""
    found = checked(values, rows)
    last = np.arange(max(0, len(rows) - MOST_KEPT), len(rows))
    return fit(law, rows.take(last), found[last])
