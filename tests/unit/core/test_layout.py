"""From cores to ranks."""

from __future__ import annotations

import msgspec
import pytest

from foresail.core.codec import decode, encode
from foresail.core.events import StudyCreated
from foresail.core.goal import Goal
from foresail.core.layout import Layout, Parallel
from foresail.core.spec import Resources, StudySpec
from foresail.errors import CallerError


@pytest.mark.parametrize(
    ("parallel", "cores", "dp", "ranks"),
    [
        (Parallel(), 1, 1, 1),
        (Parallel(), 4, 4, 4),
        (Parallel(threads=2), 4, 2, 2),
        (Parallel(tp=2), 2, 1, 2),
        (Parallel(tp=2, pp=2), 8, 2, 8),
        (Parallel(pp=2), 1, 1, 2),  # fewer cores than ranks: they share
    ],
)
def test_more_cores_are_more_replicas(parallel, cores, dp, ranks):
    layout = parallel.layout(cores)
    assert (layout.dp, layout.ranks) == (dp, ranks)


@pytest.mark.parametrize(
    "wrong", [{"tp": 0}, {"pp": -1}, {"threads": 0}, {"micro_batch": 0}, {"batch": 0}, {"timeout_s": 0.0}]
)
def test_what_cannot_be_is_refused(wrong):
    with pytest.raises(CallerError):
        Parallel(**wrong)


@pytest.mark.parametrize(
    ("parallel", "cores", "usable"),
    [
        (Parallel(), 3, 3),  # nobody knows the batch
        (Parallel(batch=32), 3, 2),
        (Parallel(batch=32), 8, 8),
        (Parallel(batch=33), 4, 3),
        (Parallel(batch=7), 4, 1),
        (Parallel(batch=12, micro_batch=4), 4, 4),
        (Parallel(batch=12, micro_batch=4), 2, 1),  # a share of 6 is no whole micro-batches of 4
        (Parallel(batch="size"), 7, 6),
    ],
)
def test_a_grant_is_no_wider_than_the_batch_can_be_shared(parallel, cores, usable):
    assert Resources(None, 1, parallel).usable(cores, {"size": 48}) == usable


def test_a_grant_is_whole_units_and_one_of_them_at_least():
    assert Resources(None, 2, Parallel(batch=12)).usable(8, {}) == 6
    assert Resources(None, 2, Parallel(tp=2, batch=12)).usable(10, {}) == 8
    assert Resources(None, 3, Parallel(batch=16)).usable(3, {}) == 3  # what is wrong, the training says


def test_a_study_without_ranks_is_recorded_as_before():
    plain = StudyCreated(at_s=0.0, spec=StudySpec("s", {}, Goal("a", "max", trials=1)))
    assert b"parallel" not in encode(plain)
    assert plain.spec.resources.layout(4) == Layout()
    wide = msgspec.structs.replace(
        plain, spec=msgspec.structs.replace(plain.spec, resources=Resources(None, 2, Parallel()))
    )
    assert decode(encode(wide)) == wide
    assert decode(encode(wide)).spec.resources.layout(2).dp == 2
