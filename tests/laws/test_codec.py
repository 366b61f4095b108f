"""Every event comes back from its line as it was; what is no event is refused with one kind of error."""

from __future__ import annotations

import contextlib
import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from foresail.core import events as ev
from foresail.core.codec import decode, encode
from foresail.core.plan import Verdict
from foresail.core.reason import Reason, Rule
from foresail.core.words import Act, AttemptId, TrialId
from foresail.errors import CallerError
from foresail.testing.strategies import event_kinds, events


def same(a: object, b: object) -> bool:
    return repr(a) == repr(b)  # unlike ==, holds NaN equal to NaN and tells 1 from 1.0


def test_the_strategies_know_every_kind_of_event() -> None:
    assert set(event_kinds()) == set(ev.Event.__args__)


@pytest.mark.parametrize("kind", event_kinds(), ids=lambda kind: kind.__name__)
def test_round_trip(kind: type) -> None:
    @given(events(kind))
    @settings(deadline=None, max_examples=60)
    def law(event: ev.Event) -> None:
        line = encode(event)
        assert b"\n" not in line
        assert same(decode(line), event)
        assert encode(decode(line)) == line
        assert same(decode(line.decode()), event)

    law()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308])
def test_numbers_come_back_wherever_they_stand(value: float) -> None:
    verdict = Verdict(TrialId(0), Act.RUN, Reason(Rule.POP_UNSEEN, {"ert_s": value}))
    for event in (
        ev.PointReported(at_s=1.0, attempt=AttemptId("0-1"), step=1, metrics={"loss": value}, seconds=value),
        ev.TrialProposed(at_s=1.0, trial=TrialId(0), config={"max_norm": value, "name": "nan"}, origin="random"),
        ev.Planned(at_s=1.0, decision=0, verdicts=(verdict,)),
        ev.StudyEnded(at_s=1.0, end="target", why="reached", summary={"best": value}),
    ):
        assert same(decode(encode(event)), event)


def test_half_a_surrogate_pair_is_recorded_as_its_escape() -> None:
    event = ev.DriverStopped(at_s=0.0, why="bad byte \udc80")
    assert decode(encode(event)) == ev.DriverStopped(at_s=0.0, why="bad byte \\udc80")


@given(st.binary(max_size=200) | st.text(max_size=200))
@settings(deadline=None)
@example(b"[" * 100_000)
@example(b'{"a":' * 100_000)
@example(b'{"$float":' * 50_000)
@example(b'{"event":"Ticked","at_s":1e999}')
@example(b'{"event":"PointReported","at_s":{"$float":"nope"},"attempt":"0-1","step":1,"metrics":{}}')
@example('{"event":"Ticked","at_s":"\ud800"}')
def test_what_is_no_event_is_refused(line: bytes | str) -> None:
    with pytest.raises(CallerError, match="not an event"):
        decode(line)


@given(events(), st.data())
@settings(deadline=None)
def test_a_garbled_event_is_refused_or_is_an_event(event: ev.Event, data: st.DataObject) -> None:
    line = bytearray(encode(event))
    for _ in range(data.draw(st.integers(1, 4))):
        line[data.draw(st.integers(0, len(line) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(line)))
    for garbled in (bytes(line), bytes(line[:cut])):
        with contextlib.suppress(CallerError):
            assert isinstance(decode(garbled), ev.Happened)
