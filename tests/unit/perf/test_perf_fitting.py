"""Fitting and predicting: what is learned, what stays, and what is refused."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from foresail.errors import CallerError
from foresail.perf.fitting import fit, joint_covariance, predict
from foresail.perf.hardware import device
from foresail.perf.intervals import calibrate, excess, scores
from foresail.perf.rows import Rows, join, rows_of, stack
from foresail.perf.step_time import STEP_TIME, log_step_s, parts
from foresail.perf.transformer import transformer
from foresail.perf.words import Job, Recompute, SystemConfiguration

A100 = device("A100")


def _systems() -> list[SystemConfiguration]:
    grid = itertools.product((1, 2, 4), (1, 2), (1, 2, 4), (1, 4))
    return [
        SystemConfiguration(
            tp=t, pp=p, dp=8 // (t * p), micro_batch=m, accumulation=a, recompute=Recompute.FULL
        )
        for t, p, m, a in grid
    ]


def _job(hidden: int) -> Job:
    return transformer(f"gpt-{hidden}", layers=16, hidden=hidden, heads=16, seq_len=1024)


def _true_s(rows: Rows) -> np.ndarray:
    """A machine unlike the prior's: slower launches, a slower link."""
    theta = STEP_TIME.medians.copy()
    theta[STEP_TIME.index["launch"]] += 0.8
    theta[STEP_TIME.index["tp_link_eff"]] -= 0.7
    theta[STEP_TIME.index["gemm_eff"]] -= 0.3
    return np.exp(log_step_s(theta, rows))


def test_few_runs_and_a_history_foresee_the_rest() -> None:
    old, new = (rows_of(_job(h), _systems(), A100) for h in (1024, 2048))
    prior = fit(STEP_TIME, old, _true_s(old))
    probes, rest = np.arange(0, len(new), 9), np.arange(1, len(new), 9)
    blind = np.abs(predict(STEP_TIME, None, new.take(rest)).median / _true_s(new.take(rest)) - 1)
    model = fit(STEP_TIME, new.take(probes), _true_s(new.take(probes)), prior=prior)
    known = np.abs(predict(STEP_TIME, model, new.take(rest)).median / _true_s(new.take(rest)) - 1)
    assert np.median(blind) > 0.1
    assert np.median(known) < 0.02


def test_an_outlier_weighs_little() -> None:
    rows = rows_of(_job(1024), _systems(), A100)
    times = _true_s(rows)
    spoilt = times.copy()
    spoilt[5] *= 3
    rest = np.delete(np.arange(len(rows)), 5)
    found = predict(STEP_TIME, fit(STEP_TIME, rows, spoilt), rows.take(rest)).median
    assert np.median(np.abs(found / times[rest] - 1)) < 0.02


def test_what_was_never_measured_stays_at_the_prior() -> None:
    rows = rows_of(_job(1024), [SystemConfiguration(micro_batch=m) for m in (1, 2, 4, 8)], A100)
    theta = fit(STEP_TIME, rows, _true_s(rows)).theta(rows)[0]
    for name in ("tp_link_eff", "sync_network_eff", "memory_wall"):
        at = STEP_TIME.index[name]
        assert theta[at] == pytest.approx(STEP_TIME.medians[at], abs=1e-6)


def test_one_measurement_repeated_is_sure_of_itself_and_of_nothing_else() -> None:
    same = rows_of(Job(name="blind"), [SystemConfiguration(micro_batch=8)] * 20, A100)
    model = fit(STEP_TIME, same, np.full(20, 0.25))
    here = predict(STEP_TIME, model, same.take([0]))
    far = predict(STEP_TIME, model, rows_of(Job(name="blind"), [SystemConfiguration(micro_batch=512)], A100))
    assert here.median[0] == pytest.approx(0.25, rel=0.02)
    assert far.log_sd[0] > 5 * here.log_sd[0]


def test_a_job_without_features_is_learned_from_steps() -> None:
    systems = [SystemConfiguration(dp=d, micro_batch=m) for d in (1, 2, 4, 8) for m in (16, 32, 64, 128, 256)]
    rows = rows_of(Job(name="blind"), systems, device("P100"))
    times = 0.02 + 4e-4 * rows.micro_batch + 0.01 * (rows.dp > 1) + 0.002 * (rows.dp - 1)
    probes = np.array([0, 4, 6, 9, 11, 13, 15, 19])
    rest = np.setdiff1d(np.arange(len(rows)), probes)
    model = fit(STEP_TIME, rows.take(probes), times[probes])
    assert np.median(np.abs(predict(STEP_TIME, model, rows.take(rest)).median / times[rest] - 1)) < 0.07


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_absurd_times_are_refused(bad: float) -> None:
    rows = rows_of(_job(1024), _systems()[:2], A100)
    with pytest.raises(CallerError, match="run 1 measured"):
        fit(STEP_TIME, rows, [1.0, bad])


def test_no_measurement_and_a_wrong_count_are_refused() -> None:
    rows = rows_of(_job(1024), _systems()[:2], A100)
    with pytest.raises(CallerError, match="1 measurements for 2 runs"):
        fit(STEP_TIME, rows, [1.0])
    with pytest.raises(CallerError, match="no measurements"):
        fit(STEP_TIME, rows.take([]), [])
    with pytest.raises(CallerError, match="no runs"):
        stack([])
    with pytest.raises(CallerError, match="no rows"):
        join()


def test_order_does_not_matter() -> None:
    rows = rows_of(_job(1024), _systems(), A100)
    times, order = _true_s(rows), np.random.default_rng(0).permutation(len(rows))
    one, two = fit(STEP_TIME, rows, times), fit(STEP_TIME, rows.take(order), times[order])
    asked = rows_of(_job(2048), _systems(), A100)
    assert predict(STEP_TIME, one, asked).median == pytest.approx(
        predict(STEP_TIME, two, asked).median, rel=1e-4
    )


def test_joint_covariance_agrees_with_the_prediction() -> None:
    rows = rows_of(_job(1024), _systems(), A100)
    model = fit(STEP_TIME, rows.take([0, 7]), _true_s(rows.take([0, 7])))
    both = joint_covariance(STEP_TIME, model, rows)
    assert both == pytest.approx(both.T)
    assert np.sqrt(np.diag(both) + 0.015**2) == pytest.approx(
        predict(STEP_TIME, model, rows).log_sd, rel=1e-6
    )


def test_where_the_seconds_go_is_positive_and_the_exchange_needs_replicas() -> None:
    rows = rows_of(_job(1024), _systems(), A100)
    found = parts(STEP_TIME.medians, rows)
    assert (found.micro > 0).all()
    assert (found.total >= found.micro).all()
    assert (found.sync[rows.dp == 1] < 1e-6).all()
    assert (found.sync[rows.dp > 1] > 1e-6).all()


def test_intervals_widen_with_the_scores_of_other_jobs() -> None:
    normal = np.abs(np.random.default_rng(0).standard_normal(2000))
    assert calibrate(normal) == pytest.approx(1.645, abs=0.1)
    assert calibrate(3 * normal) == pytest.approx(3 * 1.645, rel=0.07)
    assert calibrate(normal[:0], level=0.95, one_sided=True) == pytest.approx(1.645, abs=1e-3)
    with pytest.raises(CallerError, match="level"):
        calibrate(normal, level=1.0)


def test_scores_are_errors_in_claimed_deviations() -> None:
    rows = rows_of(_job(1024), _systems()[:4], A100)
    found = predict(STEP_TIME, None, rows)
    above = np.exp(found.log_median + 2 * found.log_sd)
    assert scores(found, above) == pytest.approx(2.0)
    assert excess(found, np.exp(found.log_median - found.log_sd)) == pytest.approx(-1.0)
