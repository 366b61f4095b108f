"""An Optuna storage (journal file or SQLite) as a trace.

Curves are the intermediate values that its trials reported; seconds are the trial's duration, spread evenly over its
reports, since Optuna keeps no time of a report. A trial that reported nothing counts as one report of its final value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from foresail.core.goal import Mode
from foresail.errors import CallerError, MissingExtraError, nearest
from foresail.replay.columns import columns_of, space_of, told_apart
from foresail.replay.trace import Trace, as_recording, targets_of


def read_optuna(path: Path, *, study: str | None = None) -> Trace:
    """The trace of a study in a storage; `study` names it where there are several.

    Raises:
        CallerError: no such study, several and none named, several objectives, or no trial with a value.
        MissingExtraError: Optuna is not installed.
    """
    loaded = _study(path, study)
    if len(loaded.directions) != 1:
        raise CallerError(f"{path}: study {loaded.study_name!r} has {len(loaded.directions)} objectives", allowed="one")
    mode: Mode = "max" if loaded.direction.name == "MAXIMIZE" else "min"
    trials = [trial for trial in loaded.get_trials(deepcopy=False) if _values(trial)]
    curves = [_values(trial) for trial in trials]
    if not any(math.isfinite(value) for curve in curves for value in curve):
        raise CallerError(f"{path}: no trial of study {loaded.study_name!r} has a finite value")
    declared = _declared(trials)
    names = list(declared)
    rows = [[str(trial.params[name]) if name in trial.params else "" for name in names] for trial in trials]
    columns = columns_of(names, declared, rows)
    parsed = [
        {name: value for column, text in zip(columns, row, strict=True) for name, value in column.parse(text)}
        for row in rows
    ]
    configs = told_apart(parsed)
    return Trace(
        name=loaded.study_name,
        metric="value",
        mode=mode,
        space=space_of(columns, configs),
        configs=configs,
        curves=tuple(as_recording(c, _seconds(t, len(c))) for t, c in zip(trials, curves, strict=True)),
        targets=targets_of(curves, mode),
        numbers=tuple(trial.number for trial in trials),
    )


def _study(path: Path, name: str | None) -> Any:
    try:
        import optuna
        from optuna.storages import JournalStorage, RDBStorage
        from optuna.storages.journal import JournalFileBackend
    except ImportError:
        raise MissingExtraError("Optuna", "optuna") from None
    with path.open("rb") as file:
        is_sqlite = file.read(16).startswith(b"SQLite format 3")
    storage: Any = RDBStorage(f"sqlite:///{path}") if is_sqlite else JournalStorage(JournalFileBackend(str(path)))
    names = [study.study_name for study in storage.get_all_studies()]
    if name is None and len(names) == 1:
        name = names[0]
    if name is None:
        raise CallerError(f"{path} holds {len(names)} studies", allowed=", ".join(names), do=f"name one: {path}::NAME")
    if name not in names:
        raise CallerError(f"{path} has no study {name!r}", do=nearest(name, names))
    return optuna.load_study(study_name=name, storage=storage)


def _values(trial: Any) -> list[float]:
    """Intermediate values in the order of their steps, else the final one."""
    if trial.intermediate_values:
        return [float(value) for _, value in sorted(trial.intermediate_values.items())]
    return [float(trial.value)] if trial.state.is_finished() and trial.values else []


def _seconds(trial: Any, points: int) -> list[float]:
    """Evenly over the trial's duration; one a report where it is not known."""
    whole_s = trial.duration.total_seconds() if trial.duration is not None else float(points)
    return [whole_s * (at + 1) / points for at in range(points)]


def _declared(trials: Sequence[Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for trial in trials:
        for name, distribution in trial.distributions.items():
            if hasattr(distribution, "choices"):
                found.setdefault(name, {"type": "categorical"})
                continue
            kind = "int" if type(distribution).__name__.startswith("Int") else "float"
            known = found.setdefault(
                name, {"type": kind, "low": distribution.low, "high": distribution.high, "log": distribution.log}
            )
            known["low"] = min(known["low"], distribution.low)
            known["high"] = max(known["high"], distribution.high)
    return found
