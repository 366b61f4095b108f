"""Seconds of a step of every trial of a study, started or not, from the steps that its trials have reported.

Every report is a measurement. A trial that has not run is foreseen from its hyperparameters and its width, by what the
others took (`smooth.py`); from its first report on, its own steps are weighed against that. The first report of an
attempt holds what is paid once (compilation, caches): how much longer it takes is learned from all attempts. `add`
changes it and nothing else does, so it is a function of the log.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from foresail.perf.smooth import SPEEDUP, SPEEDUP_SD, Sites, Smooth, fit_smooth

REFIT = 1.2
"""All is fitted again when so many times the trials of the last fit have run: it stays a constant share of the work."""
_JITTER_SD, _JITTER_REPORTS = 0.15, 4.0
"""Relative deviation of a report from its trial's mean before it is known, and the reports that this counts as."""
_DRIFT_SD, _DRIFT_TRIALS = 0.1, 2.0
"""What a trial's later steps deviate from its earlier ones, however many these were, before it is known."""
_SURPRISE_TRIALS, _TELLING, _MOST_SURPRISE = 4.0, 4, 9.0
"""Trials that "claimed variances are right" counts as; reports after which a trial is compared; most that it counts."""
_MOST = 1.0
"""A single squared deviation counts as no more: a machine that slept says little of other steps."""
_ONCE_SD, _ONCE_ATTEMPTS = 0.5, 2.0
"""How much longer or shorter first reports may take (of the logarithm), and the attempts that "no longer" counts as."""


class Seconds(NamedTuple):
    """Logarithm of seconds per step: median and deviation."""

    log_median: float
    log_sd: float

    @property
    def median(self) -> float:
        return math.exp(self.log_median)

    def interval(self, factor: float = 1.645) -> tuple[float, float]:
        """Bounds `factor` deviations away: 1.645 is 90 %."""
        reach = factor * self.log_sd
        return math.exp(self.log_median - reach), math.exp(self.log_median + reach)


def _together(views: Sequence[tuple[float, float]]) -> Seconds:
    """What several (mean, variance) say together."""
    known = [1.0 / variance for _, variance in views]
    mean = sum(k * value for k, (value, _) in zip(known, views, strict=True)) / sum(known)
    return Seconds(mean, sum(known) ** -0.5)


@dataclass
class Own:
    """What a trial has shown at one width: of first reports of attempts, and of the others. `half`: steps and seconds
    of the others when there were half as many or fewer."""

    firsts: int = 0
    first_log: float = 0.0
    reports: int = 0
    steps: int = 0
    seconds: float = 0.0
    half: tuple[int, float] = (0, 0.0)

    @property
    def log_s(self) -> float:
        """Of a step, the first reports left out."""
        return math.log(self.seconds / self.steps)


@dataclass
class Mean:
    """A mean of so many values; what was thought before is there as further ones."""

    count: float
    total: float

    @classmethod
    def thought(cls, value: float, count: float) -> Mean:
        return cls(count, count * value)

    def add(self, value: float) -> None:
        self.count, self.total = self.count + 1.0, self.total + value

    @property
    def value(self) -> float:
        return self.total / self.count


@dataclass
class Speeds:
    """`own`: of each trial, what it has shown at each width; `foreseen`: what was foreseen of it at width 1 before its
    first report, if others had run. `once`: log of how much longer first reports take, `once_var` how different that is
    from trial to trial; `jitter`, `drift`: variances of a report, and of later steps against earlier ones;
    `surprise`: squared errors of what was foreseen, in claimed variances."""

    own: dict[int, dict[int, Own]] = field(default_factory=dict)
    units: dict[int, tuple[float, ...]] = field(default_factory=dict)
    foreseen: dict[int, Seconds] = field(default_factory=dict)
    once: Mean = field(default_factory=lambda: Mean.thought(0.0, _ONCE_ATTEMPTS))
    once_var: Mean = field(default_factory=lambda: Mean.thought(_ONCE_SD**2, _ONCE_ATTEMPTS))
    jitter: Mean = field(default_factory=lambda: Mean.thought(_JITTER_SD**2, _JITTER_REPORTS))
    drift: Mean = field(default_factory=lambda: Mean.thought(_DRIFT_SD**2, _DRIFT_TRIALS))
    surprise: Mean = field(default_factory=lambda: Mean.thought(1.0, _SURPRISE_TRIALS))
    smooth: Smooth | None = None
    fitted: int = 0

    def add(
        self, trial: int, unit: Sequence[float], seconds: float, *, steps: int = 1, width: int = 1, first: bool = False
    ) -> None:
        """A report of a trial: seconds that so many steps took at a width in cores; `first` of its attempt."""
        if not (0.0 < seconds < math.inf and steps > 0):
            return
        if trial not in self.units:
            self.units[trial] = tuple(unit)
            if self.smooth is not None:
                self.foreseen[trial] = self._foresee(self.smooth, unit)
        own = self.own.setdefault(trial, {}).setdefault(width, Own())
        if first:
            own.firsts, own.first_log = own.firsts + 1, own.first_log + math.log(seconds / steps)
        else:
            self._later(own, seconds, steps)
            if own.reports == _TELLING and trial in self.foreseen:
                off = self._off(self._at(self.foreseen[trial], 1, width), self._shown(own))
                self.surprise.add(min(off, _MOST_SURPRISE))
        if len(self.units) >= max(REFIT * self.fitted, self.fitted + 1):
            self._fit()

    def _later(self, own: Own, seconds: float, steps: int) -> None:
        """A report that is not its attempt's first, with what it tells of reports in general."""
        log_s = math.log(seconds / steps)
        if own.reports:
            self.jitter.add(min((log_s - own.log_s) ** 2, _MOST) * own.reports / (own.reports + 1.0))
        elif own.firsts:
            longer = own.first_log / own.firsts - log_s
            off = (longer - self.once.value) ** 2 - 2.0 * self.jitter.value
            self.once_var.add(min(max(0.0, off), _MOST))
            self.once.add(longer)
        own.reports, own.steps, own.seconds = own.reports + 1, own.steps + steps, own.seconds + seconds
        if own.reports & (own.reports - 1) == 0:  # twice as many as the last time
            if own.half[0]:
                later = math.log((own.seconds - own.half[1]) / (own.steps - own.half[0]))
                off = (later - math.log(own.half[1] / own.half[0])) ** 2 - 4.0 * self.jitter.value / own.reports
                self.drift.add(min(max(0.0, off), _MOST))
            own.half = own.steps, own.seconds

    def _fit(self) -> None:
        """All again, with what every trial has shown at every width."""
        found = [(n, width, self._shown(own)) for n, widths in self.own.items() for width, own in widths.items()]
        sites = Sites(
            np.array([self.units[n] for n, _, _ in found]),
            np.log([width for _, width, _ in found]),
            np.array([n for n, _, _ in found]),
        )
        shown = np.array([seconds for _, _, seconds in found])
        self.smooth, self.fitted = fit_smooth(sites, shown[:, 0], shown[:, 1] ** 2), len(self.units)

    def _shown(self, own: Own) -> Seconds:
        """By its own reports alone; how much longer first ones take is taken off them."""
        views = []
        if own.reports:
            views.append((own.log_s, self.jitter.value / own.reports))
        if own.firsts:
            doubt = (self.once_var.value + self.jitter.value) / own.firsts
            views.append((own.first_log / own.firsts - self.once.value, doubt))
        seconds = _together(views)
        return Seconds(seconds.log_median, math.hypot(seconds.log_sd, math.sqrt(self.drift.value)))

    # --- asking ----------------------------------------------------------------------------------------------

    @property
    def speedup(self) -> tuple[float, float]:
        """Exponent of the speed-up with the width, and its deviation."""
        return (SPEEDUP, SPEEDUP_SD) if self.smooth is None else (self.smooth.speedup, self.smooth.speedup_sd)

    def expected(self, trial: int, unit: Sequence[float], width: int = 1) -> Seconds | None:
        """Of a trial at hyperparameters in the unit cube; None while no trial has reported."""
        if trial in self.own:
            return _together([(view.log_median, view.log_sd**2) for view in self._views(trial, width)])
        return None if self.smooth is None else self._at(self._foresee(self.smooth, unit), 1, width)

    def before(self, trial: int, unit: Sequence[float], width: int = 1) -> Seconds | None:
        """What was foreseen of a trial before its first report, or is now if it has none; None: no other had run."""
        if trial in self.own:
            return self._at(self.foreseen[trial], 1, width) if trial in self.foreseen else None
        return self.expected(trial, unit, width)

    def _foresee(self, smooth: Smooth, unit: Sequence[float]) -> Seconds:
        """Of a new trial at width 1; its deviation is as much wider as earlier ones turned out too narrow."""
        mean, sd = smooth.predict(np.asarray([unit], float))
        return Seconds(float(mean[0]), float(sd[0]) * math.sqrt(max(1.0, self.surprise.value)))

    def _off(self, foreseen: Seconds, shown: Seconds) -> float:
        """Squared difference, in claimed variances."""
        var = foreseen.log_sd**2 + shown.log_sd**2
        return (foreseen.log_median - shown.log_median) ** 2 / var

    def _views(self, trial: int, width: int) -> Iterator[Seconds]:
        """What is said of a trial at a width: by each width that it has run at, and by the others.

        What its own steps contradict loses weight, as an outlier of Student's t with four degrees of freedom does.
        """
        own = [self._at(self._shown(own), at, width) for at, own in self.own[trial].items()]
        yield from own
        if trial in self.foreseen:
            foreseen = self._at(self.foreseen[trial], 1, width)
            off = min(self._off(foreseen, shown) for shown in own)
            yield Seconds(foreseen.log_median, foreseen.log_sd * math.sqrt(max(1.0, (4.0 + off) / 5.0)))

    def _at(self, seconds: Seconds, at: int, width: int) -> Seconds:
        """The same at another width."""
        exponent, doubt = self.speedup
        times = math.log(width / at)
        return Seconds(seconds.log_median - exponent * times, math.hypot(seconds.log_sd, doubt * times))
