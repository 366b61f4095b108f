"""The data of the plots: what it says of a study is so."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from studies import EVIL, pieces, played, table

from foresail.core import events as ev
from foresail.core.view import fold
from foresail.core.words import Status
from foresail.errors import CallerError
from foresail.plots import (
    Chronicle,
    Foreseen,
    best_so_far,
    calibration,
    foresee,
    gantt,
    importance,
    learning_curves,
    parallel_coordinates,
    potential_map,
    saving,
    step_speeds,
)
from foresail.policies.potential import Potential

ALL: dict[str, Callable[[Chronicle, Foreseen], Any]] = {
    "curves": learning_curves,
    "map": potential_map,
    "gantt": lambda chronicle, _: gantt(chronicle),
    "best": lambda chronicle, _: best_so_far(chronicle),
    "coordinates": parallel_coordinates,
    "importance": importance,
    "importance of speed": lambda chronicle, foreseen: importance(chronicle, foreseen, of="speed"),
    "speeds": lambda chronicle, _: step_speeds(chronicle),
    "calibration": calibration,
}


@pytest.mark.parametrize("name", ALL)
def test_all_data_is_json_and_comes_back(name: str, chronicle: Chronicle, foreseen: Foreseen) -> None:
    data = ALL[name](chronicle, foreseen)
    line = msgspec.json.encode(data)
    assert msgspec.json.encode(msgspec.json.decode(line)) == line
    if b"null" not in line or name == "gantt":  # a number that is not finite is null there
        assert msgspec.json.decode(line, type=type(data)) == data


@pytest.mark.parametrize("name", ALL)
def test_a_chronicle_does_not_care_in_which_parts_it_heard(name: str, pop: Sequence[ev.Event]) -> None:
    in_parts = Chronicle()
    for part in pieces(pop):
        in_parts.take(part)
    at_once = Chronicle.of(pop)
    datas = []
    for chronicle in (in_parts, at_once):
        foreseen = foresee(chronicle.view)
        assert foreseen is not None
        datas.append(msgspec.json.encode(ALL[name](chronicle, foreseen)))
    assert datas[0] == datas[1]


def test_nothing_is_foreseen_of_nothing(pop: Sequence[ev.Event]) -> None:
    chronicle = Chronicle.of(pop[:3])
    assert foresee(chronicle.view) is None
    assert learning_curves(chronicle).curves == ()
    assert gantt(chronicle).bars == ()
    assert best_so_far(chronicle).improvements == ()
    assert importance(chronicle).knobs == ()
    assert step_speeds(chronicle).speeds == ()
    assert calibration(chronicle, None).forecasts == 0


def test_a_storage_is_loaded_and_what_is_none_is_refused(tmp_path: Path, pop: Sequence[ev.Event]) -> None:
    from foresail.stores.sqlite import SqliteStore

    with SqliteStore.open(tmp_path / "study.db") as log:
        log.append(pop)
    loaded, told = Chronicle.load(tmp_path / "study.db"), Chronicle.of(pop)
    assert gantt(loaded) == gantt(told)
    with pytest.raises(CallerError, match="there is no study at"):
        Chronicle.load(tmp_path / "stduy.db")


# --- the cluster -------------------------------------------------------------------------------------------------


def test_bars_hold_exactly_the_core_time_that_was_used(pop: Sequence[ev.Event]) -> None:
    for upto in (len(pop) // 3, len(pop) // 2, len(pop)):
        chronicle = Chronicle.of(pop[:upto])
        data = gantt(chronicle)
        held = [((data.now_s if b.end_s is None else b.end_s) - b.start_s) * len(b.cores) for b in data.bars]
        assert sum(held) == pytest.approx(chronicle.view.device_s_used)


def test_a_core_is_held_by_one_attempt_at_a_time(pop: Sequence[ev.Event]) -> None:
    data = gantt(Chronicle.of(pop))
    for core in data.cores:
        times = sorted((bar.start_s, bar.end_s) for bar in data.bars if core in bar.cores and bar.end_s is not None)
        assert all(end <= start for (_, end), (start, _) in pairwise(times))


def test_only_what_changed_is_told_again(pop: Sequence[ev.Event]) -> None:
    half = len(pop) // 2
    chronicle = Chronicle.of(pop[:half])
    before = {bar.attempt: bar for bar in gantt(chronicle).bars}
    curves = {curve.trial: curve for curve in learning_curves(chronicle).curves}
    chronicle.take(pop[half : half + 40])
    known = {bar.attempt: bar for bar in gantt(chronicle).bars}
    changed = {bar.attempt for bar in gantt(chronicle, since=half).bars}
    assert {name for name, bar in known.items() if bar != before.get(name)} <= changed < set(known)
    after = {curve.trial: curve for curve in learning_curves(chronicle).curves}
    told = {curve.trial for curve in learning_curves(chronicle, since=half).curves}
    assert {trial for trial, curve in after.items() if curve != curves.get(trial)} <= told < set(after)


# --- the best ----------------------------------------------------------------------------------------------------


def test_the_best_only_gets_better_and_ends_at_the_best(pop: Sequence[ev.Event]) -> None:
    chronicle = Chronicle.of(pop)
    data = best_so_far(chronicle)
    values = [i.value for i in data.improvements if i.value is not None]
    assert values == sorted(values)
    last = data.improvements[-1]
    assert (last.trial, last.step, last.value) == chronicle.view.best
    assert data.steps == sum(isinstance(event, ev.PointReported) for event in pop)
    assert [i.steps for i in data.improvements] == sorted(i.steps for i in data.improvements)


def test_a_best_that_diverges_is_taken_back() -> None:
    from foresail.core.goal import maximize
    from foresail.testing.byhand import ByHand

    study = ByHand(goal=maximize("score", trials=3), cores=1)
    study.point("0-1", 1, 0.9)
    study.point("0-1", 2, math.nan)
    data = best_so_far(Chronicle.of(study.log))
    assert [i.value for i in data.improvements] == [0.9, None]


# --- forecasts ---------------------------------------------------------------------------------------------------


def test_forecasts_are_those_of_the_policy(chronicle: Chronicle, foreseen: Foreseen) -> None:
    """The policy's own, fitted to the same points with the same lens, trial by trial."""
    view = chronicle.view
    potential = Potential.begin(view.spec)
    potential.end = int(foreseen.horizon[-1])
    potential._refocus(view, foreseen.focus)
    trials = [view.trials[int(number)] for number in foreseen.trials]
    one_by_one = potential.foresee(trials, foreseen.target)
    for row, trial in enumerate(trials):
        assert foreseen.final[2, row] == pytest.approx(one_by_one[trial.id].final, abs=1e-6)
        if one_by_one[trial.id].reach_H.size:
            assert foreseen.reach[row, -1] == pytest.approx(one_by_one[trial.id].reach_H[-1], abs=1e-6)


def test_chances_count_the_time_that_is_left() -> None:
    trace = table()
    events = played(trace, "asha", target=trace.targets["best"], within_s=60.0)
    chronicle = Chronicle.of(event for event in events if event.at_s < 55.0)
    foreseen = foresee(chronicle.view)
    assert foreseen is not None
    assert (foreseen.chance <= foreseen.reach[:, -1] + 1e-9).all()
    assert (foreseen.chance < foreseen.reach[:, -1] - 1e-6).any()


@pytest.mark.parametrize("mode", ["max", "min"])
def test_no_quantile_is_worse_than_what_was_seen(mode: str) -> None:
    events = played(table(mode=mode), "asha")
    chronicle = Chronicle.of(events[: len(events) // 3])
    foreseen = foresee(chronicle.view)
    assert foreseen is not None
    values = np.concatenate([np.frombuffer(t.values) for t in chronicle.view.trials if t.values])
    if mode == "max":
        assert foreseen.quantiles.min() >= values.min()
    else:
        assert foreseen.quantiles.max() <= values.max()
    assert (np.diff(foreseen.quantiles, axis=0) >= -1e-9).all()


def test_curves_are_what_was_reported_and_bands_begin_at_their_end(chronicle: Chronicle, foreseen: Foreseen) -> None:
    data = learning_curves(chronicle, foreseen)
    view = chronicle.view
    assert {c.trial for c in data.curves} == {t.id for t in view.trials if t.values}
    for curve in data.curves:
        trial = view.trials[curve.trial]
        assert curve.values == tuple(trial.values)
        assert (curve.band is not None) <= (trial.ended is None)
        if curve.band is not None:
            assert (curve.band.steps[0], curve.band.middle[0]) == (trial.last_step, trial.last_value)
            rows = (curve.band.low, curve.band.inner_low, curve.band.middle, curve.band.inner_high, curve.band.high)
            assert (np.diff(np.array(rows), axis=0) >= -1e-9).all()
    over = next(t.id for t in view.trials if t.ended is Status.ENDED)
    assert learning_curves(chronicle, foreseen, trials=[over]).curves[0].band is not None


def test_the_map_places_each_trial_by_its_speed_and_its_expected_end(chronicle: Chronicle, foreseen: Foreseen) -> None:
    data = potential_map(chronicle, foreseen)
    assert data.classes_by == "policy"
    for spot in data.spots:
        trial = chronicle.view.trials[spot.trial]
        assert spot.steps_per_s * (trial.step_s or 0.0) == pytest.approx(1.0)
        assert 0.0 <= spot.p <= 1.0
        assert spot.low <= spot.final <= spot.high
    assert {spot.label for spot in data.spots} >= {"opportunistic", "poor"}


def test_who_reached_the_target_is_promising(pop: Sequence[ev.Event]) -> None:
    chronicle = Chronicle.of(pop)
    assert chronicle.view.ended is not None
    assert chronicle.view.ended.end == "target"
    foreseen = foresee(chronicle.view)
    assert foreseen is not None
    best = next(s for s in potential_map(chronicle, foreseen).spots if s.trial == chronicle.view.best[0])  # type: ignore[index]
    assert (best.label, best.p) == ("promising", 1.0)


def test_a_policy_without_classes_gets_those_of_the_forecasts(whole: Sequence[ev.Event]) -> None:
    chronicle = Chronicle.of(whole[: len(whole) // 2])
    foreseen = foresee(chronicle.view)
    assert foreseen is not None
    data = potential_map(chronicle, foreseen)
    assert data.classes_by == "forecasts"
    best = max(data.spots, key=lambda spot: spot.p)
    assert best.label == "promising"
    assert all(spot.label == "poor" for spot in data.spots if spot.p < 0.05 and spot is not best)


# --- hyperparameters ---------------------------------------------------------------------------------------------


def test_parallel_coordinates_hold_every_value(chronicle: Chronicle, foreseen: Foreseen) -> None:
    data = parallel_coordinates(chronicle, foreseen)
    axes = {axis.name: axis for axis in data.axes}
    assert list(axes) == ["lr", "width", "kind", "momentum"]
    assert (axes["lr"].scale, axes["kind"].scale, axes["momentum"].scale) == ("log", "options", "linear")
    for at, number in enumerate(data.trials):
        config = chronicle.view.trials[number].config
        assert axes["lr"].values[at] == config["lr"]
        assert (axes["momentum"].at[at] is None) == (config["kind"] == EVIL)
    assert all(0.0 <= place <= 1.0 for axis in data.axes for place in axis.at if place is not None)


def test_importance_finds_what_the_values_and_the_speed_hang_on(whole: Sequence[ev.Event]) -> None:
    chronicle = Chronicle.of(whole)
    value, speed = importance(chronicle), importance(chronicle, of="speed")
    assert (value.knobs[0].name, speed.knobs[0].name) == ("lr", "width")
    assert value.knobs[0].total > 0.85
    assert speed.knobs[0].total > 0.85
    assert all(knob.total < 0.15 for knob in (*value.knobs[1:], *speed.knobs[1:]))
    assert value.explained > 0.5
    assert speed.explained > 0.9


def test_importance_of_known_shares() -> None:
    """4 a + 2 b + 0 c over the unit cube: variances are as 16 to 4 to 0."""
    from foresail.curves.neighbours import fit_neighbours
    from foresail.plots.influence import _indices
    from foresail.space import Float, Space

    rng = np.random.default_rng(1)
    units = rng.random((80, 3))
    level = 0.4 + 0.4 * (units @ [0.8, 0.4, 0.0] - 0.6)
    space = Space(a=Float(0.0, 1.0), b=Float(0.0, 1.0), c=Float(0.0, 1.0))
    alone, total = _indices(fit_neighbours(units, level, np.full(80, 1e-4)), space)
    assert alone == pytest.approx([0.8, 0.2, 0.0], abs=0.08)
    assert total == pytest.approx([0.8, 0.2, 0.0], abs=0.08)


def test_speed_is_predicted_from_the_other_trials(whole: Sequence[ev.Event]) -> None:
    data = step_speeds(Chronicle.of(whole))
    assert data.error is not None
    measured, predicted = zip(*((s.step_s, s.predicted_s) for s in data.speeds), strict=True)
    assert data.error < 1.5
    assert np.corrcoef(np.log(measured), np.log(predicted))[0, 1] > 0.9


def test_leaving_out_is_what_conditioning_without_gives() -> None:
    from foresail.perf.smooth import Sites, fit_smooth
    from foresail.plots.timing import _ERROR_SD, _left_out

    rng = np.random.default_rng(0)
    units, log_s = rng.random((12, 3)), rng.normal(size=12)
    smooth = fit_smooth(Sites(units, np.zeros(12), np.arange(12)), log_s, np.full(12, _ERROR_SD**2))
    covariance = np.linalg.inv(smooth.inverse)
    residual, rest = covariance @ smooth.pull, np.arange(12) != 5
    seen = covariance[5, rest] @ np.linalg.solve(covariance[np.ix_(rest, rest)], residual[rest])
    assert _left_out(units, log_s)[5] == pytest.approx(log_s[5] - residual[5] + seen, abs=1e-6)


# --- calibration, and what was saved -----------------------------------------------------------------------------


def test_calibration_rests_on_trials_that_were_trained_to_their_end(whole: Sequence[ev.Event]) -> None:
    chronicle = Chronicle.of(whole)
    data = calibration(chronicle, foresee(chronicle.view))
    assert data.forecasts >= 5 * 30
    seen = [covered.seen for covered in data.coverage]
    assert seen == sorted(seen)
    assert seen[-1] > 0.8
    assert sum(part.count for part in data.reliability) == data.forecasts
    assert data.claims == ()  # first in, first out expects nothing


def test_claims_are_what_decisions_said(pop: Sequence[ev.Event]) -> None:
    chronicle = Chronicle.of(pop)
    verdicts = [v for e in pop if isinstance(e, ev.Planned) for v in e.verdicts if "final" in v.reason.numbers]
    assert [claim.final for claim in chronicle.claims] == [v.reason.numbers["final"] for v in verdicts]
    done = {t.id for t in chronicle.view.trials if t.ended is Status.COMPLETED}
    assert {kept.trial for kept in calibration(chronicle, None).claims} <= done


def test_training_everything_saves_nothing(whole: Sequence[ev.Event]) -> None:
    found = saving(fold(whole), whole)
    assert found is not None
    assert (found.filled_in, found.by) == (0, "replay of its own curves")
    assert found.all_device_s == pytest.approx(found.used_device_s, rel=1e-6)
    assert found.trials == 30


def test_what_was_saved_is_told_with_its_basis() -> None:
    events = played(table(), "asha")
    view = fold(events)
    found = saving(view, events)
    assert found is not None
    rest_s = sum((t.max_steps - t.reached) * t.step_s for t in view.trials if t.max_steps and t.step_s)
    assert rest_s > 0
    assert found.filled_in == sum(20 - t.reached for t in view.trials)
    assert found.all_device_s >= 0.9 * (sum(t.seconds for t in view.trials) + rest_s)
    assert 0.0 < found.saved_frac < 1.0
    assert "filled in by arithmetic" in found.by


def test_one_trial_cannot_save(pop: Sequence[ev.Event]) -> None:
    first = next(at for at, event in enumerate(pop) if isinstance(event, ev.PointReported))
    assert saving(fold(pop[: first + 1]), pop[: first + 1]) is None


def test_a_study_after_the_fold_is_the_view_of_the_log(pop: Sequence[ev.Event]) -> None:
    chronicle, view = Chronicle.of(pop), fold(pop)
    assert chronicle.view.events == view.events
    assert [t.seconds for t in chronicle.view.trials] == [t.seconds for t in view.trials]
    assert len(chronicle.changed) == len(view.trials)
