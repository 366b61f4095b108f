"""Kept measurements and what changes learning."""

from __future__ import annotations

import numpy as np
import pytest

from foresail.errors import CallerError
from foresail.perf.fitting import predict
from foresail.perf.hardware import device
from foresail.perf.keeping import dump_measurements, history_of, load_measurements
from foresail.perf.rows import rows_of
from foresail.perf.semantics import Rule, changes_learning, learning_rate_for
from foresail.perf.step_time import STEP_TIME
from foresail.perf.words import Job, Precision, SystemConfiguration

ROWS = rows_of(Job(name="blind"), [SystemConfiguration(micro_batch=m) for m in (8, 16, 32)], device("A100"))
TIMES = [0.1, 0.15, 0.25]


def test_kept_measurements_make_the_same_history() -> None:
    rows, times = load_measurements(dump_measurements(ROWS, TIMES))
    one, two = history_of(STEP_TIME, ROWS, TIMES), history_of(STEP_TIME, rows, times)
    assert np.array_equal(predict(STEP_TIME, one, ROWS).median, predict(STEP_TIME, two, ROWS).median)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"{", "no kept"),
        (b'{"schema":9,"columns":{},"values":[]}', "schema 9"),
        (b'{"schema":1,"columns":{},"values":[]}', "without"),
    ],
)
def test_other_texts_are_refused(text: bytes, says: str) -> None:
    with pytest.raises(CallerError, match=says):
        load_measurements(text)


def test_only_the_global_batch_and_the_precision_touch_learning() -> None:
    old = SystemConfiguration(micro_batch=16)
    assert (
        changes_learning(old, SystemConfiguration(dp=2, tp=2, micro_batch=4, accumulation=2, threads=3)) == ()
    )
    new = SystemConfiguration(micro_batch=32, precision=Precision.BF16)
    assert changes_learning(old, new) == ("global_batch", "precision")


def test_rules_for_the_learning_rate_meet_their_limits() -> None:
    assert learning_rate_for(0.1, 32, 128) == pytest.approx(0.4)
    assert learning_rate_for(0.1, 32, 128, rule=Rule.SQUARE_ROOT) == pytest.approx(0.2)
    far_below = learning_rate_for(0.1, 32, 128, rule=Rule.NOISE, noise_scale=1e9)
    far_above = learning_rate_for(0.1, 32, 128, rule=Rule.NOISE, noise_scale=1e-6)
    assert far_below == pytest.approx(0.4)
    assert far_above == pytest.approx(0.1)
    peak = learning_rate_for(0.1, 64, 256, rule=Rule.SURGE, noise_scale=256)
    assert peak > learning_rate_for(0.1, 64, 1024, rule=Rule.SURGE, noise_scale=256)
    with pytest.raises(CallerError, match="noise scale"):
        learning_rate_for(0.1, 32, 64, rule=Rule.SURGE)
    with pytest.raises(CallerError, match="positive"):
        learning_rate_for(0.1, 0, 64)
