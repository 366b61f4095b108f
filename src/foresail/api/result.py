"""What a study has come to: the best trial first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foresail.core.view import Trial, View
from foresail.core.words import Scalar
from foresail.engine.retention import best_checkpoint


@dataclass(frozen=True, slots=True)
class Best:
    """One triple: trial, step, value, and where the state of that very step is kept.

    `checkpoint`: folder of the checkpoint of `step`; None if none was saved there. `checkpoint_step` tells the step of
    the nearest one that is kept, in `nearest`.
    """

    trial: int
    step: int
    metric: str
    value: float
    config: Mapping[str, Scalar]
    checkpoint: Path | None
    nearest: Path | None = None
    nearest_step: int | None = None


@dataclass(frozen=True, slots=True)
class TrialRow:
    """One trial in a line."""

    trial: int
    status: str
    label: str | None
    config: Mapping[str, Scalar]
    best: float | None
    best_step: int
    steps: int
    attempts: int
    seconds: float
    why: str


@dataclass(frozen=True)
class Result:
    """What `Study.run` returns.

    `end`: "target", "deadline", "trials", "device_time", "exhausted", "stopped", "failing" or "nothing_left"; `why`
    says it in a sentence. `best` is None if no trial reported a finite value.
    """

    name: str
    end: str
    why: str
    best: Best | None
    seconds: float
    device_s: float
    points: int
    view: View
    storage: Path

    @property
    def reached(self) -> bool:
        """Whether the target was reached."""
        return self.end == "target"

    @property
    def trials(self) -> list[TrialRow]:
        """All trials, best first."""
        return sorted(rows(self.view), key=lambda row: _rank(self.view, row.best))

    def points_frame(self) -> Any:
        """Every point as a `pandas.DataFrame`; needs pandas."""
        from foresail.api.frames import points_frame
        from foresail.api.recorded import load_events

        return points_frame(load_events(self.storage))

    def trials_frame(self) -> Any:
        """Every trial as a `pandas.DataFrame`, with a column a knob; needs pandas."""
        from foresail.api.frames import trials_frame

        return trials_frame(self.view)

    def __repr__(self) -> str:
        best = self.best
        found = f"{best.metric} = {best.value:.6g} (trial {best.trial}, step {best.step})" if best else "no result"
        return f"<Result of {self.name!r}: {found}; {self.end}: {self.why}>"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from foresail.api.notebook import result_html

        return result_html(self)


def result_of(view: View, storage: Path, folder: Path) -> Result:
    """The result as the view stands."""
    end = view.ended or view.ending
    return Result(
        name=view.spec.name,
        end=end.end if end else "running",
        why=end.why if end else "the study has not ended",
        best=best_of(view, folder),
        seconds=view.now_s,
        device_s=view.device_s_used,
        points=view.points,
        view=view,
        storage=storage,
    )


def best_of(view: View, folder: Path) -> Best | None:
    if view.best is None:
        return None
    number, step, value = view.best
    trial = view.trials[number]
    exact = next((c for c in trial.saved if c.step == step), None)
    near = best_checkpoint(view) or trial.checkpoint
    return Best(
        trial=number,
        step=step,
        metric=view.spec.goal.metric,
        value=value,
        config=dict(trial.config),
        checkpoint=folder / exact.path if exact else None,
        nearest=folder / near.path if near else None,
        nearest_step=near.step if near else None,
    )


def rows(view: View) -> Iterator[TrialRow]:
    for trial in view.trials:
        yield TrialRow(
            trial=trial.id,
            status=view.status(trial).value,
            label=trial.verdict.label.value if trial.verdict and trial.verdict.label else None,
            config=dict(trial.config),
            best=trial.best_value,
            best_step=trial.best_step,
            steps=trial.last_step,
            attempts=trial.attempts,
            seconds=trial.seconds,
            why=why(trial),
        )


def why(trial: Trial) -> str:
    """The last decision about the trial, in a sentence."""
    if trial.detail:
        return trial.detail
    return trial.verdict.reason.sentence() if trial.verdict else ""


def _rank(view: View, value: float | None) -> float:
    if value is None:
        return float("inf")
    return -value if view.spec.goal.mode == "max" else value
