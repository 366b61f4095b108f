"""A trial that says nothing for as long as the study allows has failed; its cores come back."""

from __future__ import annotations

import msgspec

from foresail.api.drive import controller_of
from foresail.core import codec
from foresail.core import events as ev
from foresail.core.commands import Kill, Launch
from foresail.core.goal import Goal
from foresail.core.spec import Choice, Resources, StudySpec
from foresail.core.words import AttemptId, Outcome, Status
from foresail.engine.controller import Controller
from foresail.space import Float, Space

SPEC = StudySpec(
    name="hangs",
    space=Space(x=Float(0.0, 1.0)).to_dict(),
    goal=Goal("score", "max", trials=2),
    policy=Choice("fifo"),
    resources=Resources(1, 1),
    retries=1,
    silence_s=60.0,
)
FIRST, SECOND = AttemptId("0-1"), AttemptId("0-2")


def begun(spec: StudySpec = SPEC) -> Controller:
    controller = controller_of(spec)
    for fact in (
        ev.StudyCreated(at_s=0.0, spec=spec),
        ev.DriverStarted(at_s=0.0, cores=(0,)),
        ev.Ticked(at_s=0.0),
        ev.AttemptStarted(at_s=1.0, attempt=FIRST),
    ):
        controller.feed(fact)
    return controller


def point(at_s: float, attempt: AttemptId, step: int) -> ev.PointReported:
    return ev.PointReported(at_s=at_s, attempt=attempt, step=step, metrics={"score": 0.5}, seconds=1.0)


def test_a_trial_that_reports_is_never_silent() -> None:
    controller = begun()
    for step in range(1, 5):
        assert controller.next_wake_s() == 1.0 + (step - 1) * 59.0 + 60.0
        controller.feed(point(1.0 + step * 59.0, FIRST, step))
    assert not controller.feed(ev.Ticked(at_s=240.0)).commands


def test_silence_is_a_failure_and_is_tried_again_within_the_retries() -> None:
    controller = begun()
    controller.feed(point(2.0, FIRST, 1))
    step = controller.feed(ev.Ticked(at_s=62.0))
    assert step.commands == [Kill(FIRST)]
    assert [type(event).__name__ for event in step.events] == ["Ticked", "AttemptSilent", "AttemptEnding"]
    step = controller.feed(ev.AttemptEnded(at_s=63.0, attempt=FIRST, outcome=Outcome.KILLED))
    trial = controller.view.trials[0]
    assert trial.failures == 1
    assert [c.attempt for c in step.commands if isinstance(c, Launch)] == [SECOND]
    controller.feed(ev.Ticked(at_s=200.0))
    controller.feed(ev.AttemptEnded(at_s=201.0, attempt=SECOND, outcome=Outcome.KILLED))
    assert trial.ended is Status.FAILED
    assert trial.detail == "it said nothing for 60 s"


def test_one_that_completes_while_it_is_ended_has_completed() -> None:
    controller = begun()
    controller.feed(point(2.0, FIRST, 1))
    controller.feed(ev.Ticked(at_s=62.0))
    controller.feed(ev.AttemptEnded(at_s=63.0, attempt=FIRST, outcome=Outcome.COMPLETED))
    assert controller.view.trials[0].ended is Status.COMPLETED


def test_without_a_limit_nothing_is_ended_and_old_logs_are_written_as_they_were() -> None:
    free = msgspec.structs.replace(SPEC, silence_s=msgspec.UNSET)
    controller = begun(free)
    assert controller.next_wake_s() is None
    assert b"silence" not in codec.encode(ev.StudyCreated(at_s=0.0, spec=free))
