"""What is shown of a running study: bounded in lines, in drawings and in work."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from rich.console import Console

from foresail.api import display
from foresail.api.lines import BEST_EVERY_S, BURST_LINES, LINE_EVERY_S, Lines
from foresail.api.progress import Progress
from foresail.api.screen import EVERY_S, MOST_SLOTS, Screen, picture
from foresail.core import events as ev
from foresail.core.goal import maximize
from foresail.core.plan import Verdict
from foresail.core.reason import Reason, Rule
from foresail.core.spec import StudySpec
from foresail.core.view import View, fold
from foresail.core.words import Act, AttemptId, Label, Outcome, Status, TrialId, attempt_id
from foresail.space import Float, Space


class Hand:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.s = 0.0

    def __call__(self) -> float:
        return self.s


class Feed:
    """A study that a test tells, batch by batch, to a watcher."""

    def __init__(self, watcher, cores: int = 2, target: float | None = 0.9, within: str | None = "10 min") -> None:
        self.view, self.watcher = View(), watcher
        goal = maximize("accuracy", target=target, within=within)
        spec = StudySpec(name="digits", space=Space(lr=Float(0.0, 1.0)).to_dict(), goal=goal, max_steps=10)
        self.now_s = 0.0
        self.tell(ev.StudyCreated(at_s=0.0, spec=spec), ev.DriverStarted(at_s=0.0, cores=tuple(range(cores))))

    def tell(self, *events: ev.Event) -> None:
        fold(events, self.view)
        self.watcher(self.view, events)

    def life(self, trial: int) -> AttemptId:
        return attempt_id(TrialId(trial), 1)

    def start(self, trial: int, core: int = 0, label: Label = Label.PROMISING) -> None:
        verdict = Verdict(TrialId(trial), Act.RUN, Reason(Rule.POP_UNSEEN, {"p": 0.5}), label=label)
        at = self.now_s
        self.tell(
            ev.TrialProposed(at_s=at, trial=TrialId(trial), config={"lr": 0.1}, origin="random"),
            ev.Planned(at_s=at, decision=trial, verdicts=(verdict,)),
            ev.AttemptGranted(at_s=at, attempt=self.life(trial), trial=TrialId(trial), number=1, cores=(core,)),
        )

    def point(self, trial: int, step: int, value: float) -> None:
        metrics = {"accuracy": value}
        self.tell(ev.PointReported(at_s=self.now_s, attempt=self.life(trial), step=step, metrics=metrics, seconds=1.0))

    def end(self, trial: int, status: Status = Status.COMPLETED, detail: str = "") -> None:
        self.tell(
            ev.AttemptEnded(at_s=self.now_s, attempt=self.life(trial), outcome=Outcome.COMPLETED),
            ev.TrialEnded(at_s=self.now_s, trial=TrialId(trial), status=status, detail=detail),
        )


def lines_of(clock: Hand) -> tuple[Feed, list[str]]:
    written: list[str] = []
    return Feed(Lines(written.append, clock)), written


def test_the_lines_of_a_small_study() -> None:
    clock = Hand()
    feed, written = lines_of(clock)
    feed.start(0)
    feed.now_s = 61.0
    for step, value in ((1, 0.5), (2, 0.4), (3, 0.6), (4, 0.7)):
        feed.point(0, step, value)
    clock.s += BEST_EVERY_S
    feed.watcher(feed.view, ())
    feed.end(0)
    feed.start(1)
    feed.end(1, Status.FAILED, "ValueError: no such file")
    feed.tell(ev.StopRequested(at_s=62.0))
    feed.tell(ev.StudyEnding(at_s=62.0, end="stopped", why="a person asked to stop"))
    feed.tell(ev.StudyEnded(at_s=62.0, end="stopped", why="a person asked to stop"))
    assert written == [
        "       0.0 s  study 'digits' starts: maximize accuracy to 0.9 within 10 min; 2 slots, hybrid",
        "   1 min 1 s  best accuracy = 0.5 by trial 0 at step 1 (0.4 to go)",
        "   1 min 1 s  best accuracy = 0.7 by trial 0 at step 4 (0.2 to go)",
        "   1 min 1 s  trial 0 completed at step 4, best 0.7",
        "   1 min 1 s  trial 1 failed at step 0: ValueError: no such file [lr=0.1]",
        "   1 min 2 s  stopping: no new starts; what runs saves its state; Ctrl-C again ends it at once",
        "   1 min 2 s  ending (stopped): a person asked to stop",
        "   1 min 2 s  ended: 2 trials, 4 points, best accuracy = 0.7 by trial 0 at step 4 (0.2 to go)",
    ]


def test_points_that_change_nothing_write_nothing() -> None:
    feed, written = lines_of(Hand())
    feed.start(0)
    feed.point(0, 1, 0.5)
    before = len(written)
    for step in range(2, 500):
        feed.point(0, step, 0.4)
        feed.watcher(feed.view, ())
    assert len(written) == before


def test_ten_thousand_trials_do_not_flood_a_log() -> None:
    clock = Hand()
    feed, written = lines_of(clock)
    for trial in range(10_000):
        clock.s += 0.01
        feed.start(trial)
        feed.point(trial, 1, trial / 20_000)
        feed.end(trial)
    feed.tell(ev.StudyEnded(at_s=0.0, end="trials", why="all had their turn"))
    assert len(written) <= 2 * (BURST_LINES + clock.s / LINE_EVERY_S) + clock.s / BEST_EVERY_S + 4
    assert "and not shown: " in written[-2]
    assert "10000 trials" in written[-1]


def test_what_is_left_out_is_counted_to_the_last_one() -> None:
    feed, written = lines_of(Hand())
    for trial in range(100):
        feed.start(trial)
        feed.end(trial)
    feed.tell(ev.StudyEnded(at_s=0.0, end="trials", why="all had their turn"))
    assert written[-2] == f"       0.0 s  ... and not shown: {100 - BURST_LINES} completed"


def screen_of(clock: Hand, **study: object) -> tuple[Feed, Screen, io.StringIO]:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=100, height=40, color_system=None)
    screen = Screen(console, clock)
    return Feed(screen, **study), screen, stream  # type: ignore[arg-type]


def drawn(view: View, progress: Progress) -> list[str]:
    stream = io.StringIO()
    Console(file=stream, width=100, color_system=None).print(picture(view, progress))
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_the_picture_of_a_running_study() -> None:
    clock = Hand()
    progress = Progress(clock)
    feed = Feed(progress.note)
    feed.start(0)
    feed.start(1, core=1, label=Label.OPPORTUNISTIC)
    feed.now_s = 30.0
    feed.point(0, 1, 0.5)
    feed.point(1, 1, 0.25)
    clock.s = 90.0
    assert drawn(feed.view, progress) == [
        " study  digits: maximize accuracy to 0.9 within 10 min",
        " best   accuracy = 0.5 by trial 0 at step 1 (0.4 to go)",
        " time   2 min of 10 min, 8 min left; core time 4 min; 2 trials, 2 points",
        "",
        " trial        step        last        best   chance   class           configuration",
        " " + 98 * "─",
        "     0        1/10         0.5         0.5     0.50   promising       lr=0.1",
        "     1        1/10        0.25        0.25     0.50   opportunistic   lr=0.1",
        "",
        " 2 running",
        " 1 promising, 1 opportunistic",
    ]


def test_a_long_configuration_leaves_the_other_columns_their_place() -> None:
    progress = Progress(Hand())
    feed = Feed(progress.note)
    feed.start(0)
    feed.view.trials[0].config = {f"hyperparameter_{number}": 0.123456 for number in range(9)}
    feed.point(0, 1, 0.5)
    (row,) = [line for line in drawn(feed.view, progress) if "1/10" in line]
    assert row.split()[:5] == ["0", "1/10", "0.5", "0.5", "0.50"]
    assert row.endswith("…")


def test_the_screen_is_drawn_no_more_often_than_said() -> None:
    clock = Hand()
    feed, screen, stream = screen_of(clock, cores=1)
    feed.start(0)
    start = len(stream.getvalue())
    for step in range(1, 400):
        feed.point(0, step, 0.5)
    assert len(stream.getvalue()) == start
    clock.s += EVERY_S
    feed.watcher(feed.view, ())
    assert "400 points" not in stream.getvalue()
    assert "399 points" in stream.getvalue()
    screen.close()


def test_the_screen_shows_few_slots_of_many() -> None:
    progress = Progress(Hand())
    feed = Feed(progress.note, cores=40)
    for trial in range(40):
        feed.start(trial, core=trial)
    lines = drawn(feed.view, progress)
    assert len(lines) < MOST_SLOTS + 14
    assert f"and {40 - MOST_SLOTS} more" in "\n".join(lines)


def test_a_failure_stays_on_the_terminal() -> None:
    feed, screen, stream = screen_of(Hand())
    feed.start(0)
    feed.end(0, Status.FAILED, "ValueError: no such file")
    screen.close()
    assert "trial 0 failed at step 0: ValueError: no such file [lr=0.1]" in stream.getvalue()


@pytest.mark.parametrize("kind", ["lines", "screen"])
def test_a_study_that_has_ended_is_told_so(kind: str) -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=100, color_system=None)
    watcher = Screen(console) if kind == "screen" else Lines(lambda text: print(text, file=stream))
    feed = Feed(lambda view, events: None)
    feed.tell(ev.StudyEnded(at_s=7.5, end="deadline", why="10 min have passed"))
    watcher(feed.view, ())
    watcher.close()
    assert stream.getvalue().strip().endswith("study 'digits' has ended (deadline): 10 min have passed")


def test_labels_of_markup_are_text() -> None:
    feed, screen, stream = screen_of(Hand())
    feed.start(0)
    feed.end(0, Status.FAILED, "[red]not markup[/red]")
    screen.close()
    assert "[red]not markup[/red]" in stream.getvalue()


def test_counts_by_class_follow_the_verdicts() -> None:
    progress = Progress(Hand())
    feed = Feed(progress.note)
    for trial in range(3):
        feed.start(trial, core=0, label=Label.OPPORTUNISTIC)
        feed.end(trial)
    verdict = Verdict(TrialId(0), Act.WAIT, Reason(Rule.POP_UNSEEN), label=Label.POOR)
    feed.tell(ev.Planned(at_s=0.0, decision=9, verdicts=(verdict,)))
    assert {label: n for label, n in progress.labels.items() if n} == {Label.OPPORTUNISTIC: 2, Label.POOR: 1}


def test_a_display_that_joins_late_knows_what_was() -> None:
    early, late = Progress(Hand()), Progress(Hand())
    feed = Feed(early.note)
    for trial in range(3):
        feed.start(trial, label=Label.POOR)
        feed.end(trial)
    late.note(feed.view, ())
    assert late.labels == early.labels
    assert late.counts(feed.view) == early.counts(feed.view) == {Status.COMPLETED: 3}


def test_study_time_goes_on_between_events_and_stands_at_the_end() -> None:
    clock = Hand()
    progress = Progress(clock)
    feed = Feed(progress.note)
    clock.s = 7.0
    assert progress.now_s(feed.view) == 7.0
    feed.tell(ev.StudyEnded(at_s=7.5, end="deadline", why="over"))
    clock.s = 99.0
    assert progress.now_s(feed.view) == 7.5


class Watched(View):
    """A view that does not let itself be walked through."""

    walked = 0

    def __setattr__(self, name: str, value: object) -> None:
        if name == "trials":
            value = Counting(value)  # type: ignore[arg-type]
        super().__setattr__(name, value)


class Counting(list):  # type: ignore[type-arg]
    def __iter__(self):
        Watched.walked += 1
        return super().__iter__()


@pytest.mark.parametrize("kind", ["lines", "screen"])
def test_no_drawing_walks_over_all_trials(kind: str) -> None:
    clock = Hand()
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=100, color_system=None)
    watcher = Screen(console, clock) if kind == "screen" else Lines(lambda text: None, clock)
    feed = Feed(lambda view, events: None)
    for trial in range(200):
        feed.start(trial)
        feed.end(trial)
    feed.view.__class__ = Watched
    feed.view.trials = feed.view.trials
    watcher(feed.view, ())
    Watched.walked = 0
    feed.watcher = watcher
    feed.start(200)
    for step in range(1, 50):
        clock.s += 1.0
        feed.point(200, step, step / 100)
    watcher.close()
    assert Watched.walked == 0


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_which_display_fits(monkeypatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(display.display(stream=Terminal()), Screen)
    assert isinstance(display.display(stream=io.StringIO()), Lines)
    assert isinstance(display.display(quiet=True), display.Nothing)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(display.display(stream=Terminal()), Lines)


def test_trouble_is_told_by_every_display(capsys) -> None:
    told: list[str] = []
    displays: Sequence[display.Display] = (Lines(told.append), display.Nothing())
    for shown in displays:
        shown.trouble("the disk is full")
        shown.close()
    assert told == ["trouble: the disk is full"]
    assert "the disk is full" in capsys.readouterr().err
