"""What training costs, learned from the study's own trials: seconds of a step, of a start, of a restart.

A configuration that has not run is given the seconds that a ridge regression of log seconds on the hyperparameters
expects: batch size, width and depth show in them nearly log-linearly. Part of a policy's index, folded from the log.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foresail.core import events as ev
from foresail.core.view import Attempt, Trial, View
from foresail.core.words import TrialId

Floats = NDArray[Any]

RIDGE = 1.0
"""Prior precision of a slope, in trials: a knob must show in a few trials before it is believed."""


@dataclass
class Delay:
    """Mean seconds between a grant and the beginning of training."""

    total_s: float = 0.0
    count: int = 0

    def add(self, seconds: float) -> None:
        self.total_s, self.count = self.total_s + max(0.0, seconds), self.count + 1

    @property
    def mean_s(self) -> float:
        return self.total_s / self.count if self.count else 0.0


@dataclass
class Costs:
    """Sums of the regression (slopes after the intercept), mean delays, and of each trial its steps and the seconds
    that they would have taken at a width of one unit."""

    start: Delay = field(default_factory=Delay)
    restart: Delay = field(default_factory=Delay)
    gram: Floats | float = 0.0
    moment: Floats | float = 0.0
    trials: int = 0
    trained: dict[TrialId, tuple[int, float]] = field(default_factory=dict)
    _weights: Floats | None = None

    def observe(self, view: View, event: ev.PointReported, unit: Sequence[float], speedup: float = 1.0) -> None:
        """A point has been reported; the first one of an attempt tells what its start took, of a trial its speed.

        Args:
            view: With the point.
            event: The point.
            unit: Hyperparameters of its trial, in the unit cube.
            speedup: Of the width at which the attempt runs, over one unit.
        """
        attempt = view.attempts[event.attempt]
        self._note(attempt, event, speedup)
        if attempt.previous == attempt.resume_step:
            delay = self.start if attempt.number == 1 else self.restart
            delay.add(event.at_s - attempt.granted_s - event.seconds)
        if attempt.number == 1 and attempt.previous == attempt.resume_step and event.seconds > 0.0:
            row = np.array([1.0, *(u - 0.5 for u in unit)])
            self.gram = self.gram + np.outer(row, row)
            step_s = speedup * event.seconds / max(1, event.step - attempt.resume_step)
            self.moment = self.moment + row * math.log(step_s)
            self.trials, self._weights = self.trials + 1, None

    def _note(self, attempt: Attempt, event: ev.PointReported, speedup: float) -> None:
        steps, seconds = self.trained.get(attempt.trial, (0, 0.0))
        self.trained[attempt.trial] = steps + event.step - attempt.previous, seconds + speedup * event.seconds

    def step_s(self, trial: Trial, unit: Sequence[float]) -> float:
        """Seconds of a step of the trial at a width of one unit: measured, or expected."""
        steps, seconds = self.trained.get(trial.id, (0, 0.0))
        if seconds > 0.0:
            return seconds / steps
        if not self.trials:
            return 1.0
        if self._weights is None:
            prior = np.diag([1e-9, *(RIDGE for _ in unit)])
            self._weights = np.linalg.solve(self.gram + prior, self.moment)
        return math.exp(float(self._weights[0] + self._weights[1:] @ (np.asarray(unit) - 0.5)))

    def start_s(self, trial: Trial) -> float:
        """Seconds until the trial would train, if it were granted cores now."""
        return self.restart.mean_s if trial.attempts else self.start.mean_s
