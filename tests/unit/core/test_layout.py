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


@pytest.mark.parametrize("wrong", [{"tp": 0}, {"pp": -1}, {"threads": 0}, {"micro_batch": 0}, {"timeout_s": 0.0}])
def test_what_cannot_be_is_refused(wrong):
    with pytest.raises(CallerError):
        Parallel(**wrong)


def test_a_study_without_ranks_is_recorded_as_before():
    plain = StudyCreated(at_s=0.0, spec=StudySpec("s", {}, Goal("a", "max", trials=1)))
    assert b"parallel" not in encode(plain)
    assert plain.spec.resources.layout(4) == Layout()
    wide = msgspec.structs.replace(
        plain, spec=msgspec.structs.replace(plain.spec, resources=Resources(None, 2, Parallel()))
    )
    assert decode(encode(wide)) == wide
    assert decode(encode(wide)).spec.resources.layout(2).dp == 2
