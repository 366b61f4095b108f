"""Goals: ends, directions, durations, and the sentence for each kind of bad input."""

# ruff: noqa: E501 - each message stands whole on its line, so that a search finds it

import math

import msgspec
import pytest

from foresail.core.goal import Goal, maximize, minimize, seconds
from foresail.errors import CallerError


def test_ends_combine():
    goal = maximize("accuracy", target=0.985, within="20 min", trials=50, device_time="8 h")
    assert goal == Goal("accuracy", "max", target=0.985, within_s=1200, trials=50, device_s=28800)
    assert goal.is_bounded


def test_a_target_alone_is_a_goal_without_bound():
    assert not minimize("loss", target=0.1).is_bounded


def test_better_is_strict_and_no_result_is_never_better():
    up, down = maximize("a", trials=1), minimize("a", trials=1)
    assert up.better(2, 1)
    assert not up.better(1, 1)
    assert down.better(1, 2)
    for nothing in (None, math.nan, math.inf, -math.inf):
        for goal in (up, down):
            assert goal.better(0, nothing)
            assert not goal.better(nothing, 0)
            assert not goal.better(nothing, nothing)


def test_a_target_is_reached_at_it_or_beyond():
    up, down = maximize("a", target=0.9), minimize("a", target=0.9)
    assert (up.reached(0.9), up.reached(0.89), up.reached(math.inf), up.reached(None)) == (
        True,
        False,
        False,
        False,
    )
    assert (down.reached(0.9), down.reached(0.91), down.reached(math.nan)) == (True, False, False)
    assert not maximize("a", trials=3).reached(1e9)


@pytest.mark.parametrize(
    ("text", "wanted_s"),
    [
        (90, 90),
        (0.5, 0.5),
        ("90s", 90),
        ("20 min", 1200),
        ("1.5 h", 5400),
        ("2 days", 172800),
        ("1 h 30 min", 5400),
        ("1h30m", 5400),
        ("1 Week", 604800),
        (" .5 hours ", 1800),
    ],
)
def test_durations(text, wanted_s):
    assert seconds(text) == wanted_s


def test_a_goal_survives_json_and_reads_from_a_table():
    goal = minimize("val/loss", target=0.1, within="1 day")
    assert msgspec.json.decode(msgspec.json.encode(goal), type=Goal) == goal
    assert Goal.from_dict({"minimize": "val/loss", "target": 0.1, "within": "1 day"}) == goal


CASES = [
    (
        lambda: maximize("accuracy"),
        "goal 'accuracy' has no end; target, within, trials, device_time, or several; give one, within='20 min'",
    ),
    (
        lambda: maximize("val acc", trials=1),
        "metric 'val acc': not a name; letters, digits and '_./@-', a letter or '_' first; report it under such a name",
    ),
    (
        lambda: maximize("", trials=1),
        "metric '': not a name; letters, digits and '_./@-', a letter or '_' first; report it under such a name",
    ),
    (lambda: Goal("a", "maximum", trials=1), "goal mode 'maximum'; max or min; say which way is better"),
    (
        lambda: maximize("a", target=math.nan),
        "target nan: must be a finite number; give a number, or leave target out",
    ),
    (
        lambda: maximize("a", target=math.inf),
        "target inf: must be a finite number; give a number, or leave target out",
    ),
    (
        lambda: maximize("a", target="0.9"),
        "target '0.9': must be a finite number; give a number, or leave target out",
    ),
    (lambda: maximize("a", within=0), "within 0: must be above 0; give a longer one, or leave within out"),
    (
        lambda: maximize("a", within=math.inf),
        "within inf: must be a finite number; give a number, or leave within out",
    ),
    (
        lambda: maximize("a", within="0 s"),
        "within 0.0: must be above 0; give a longer one, or leave within out",
    ),
    (
        lambda: maximize("a", within="20"),
        "within '20' is no duration; a number and a unit; write '90 s', '20 min' or '1.5 h'",
    ),
    (
        lambda: maximize("a", within="soon"),
        "within 'soon' is no duration; a number and a unit; write '90 s', '20 min' or '1.5 h'",
    ),
    (
        lambda: maximize("a", within=" "),
        "within ' ' is no duration; a number and a unit; write '90 s', '20 min' or '1.5 h'",
    ),
    (
        lambda: maximize("a", within="20 mn"),
        "within '20 mn': unknown unit 'mn'; did you mean 'min'? allowed: days, h, min, s, weeks",
    ),
    (
        lambda: maximize("a", device_time=-3),
        "device_time -3: must be above 0; give a longer one, or leave device_time out",
    ),
    (
        lambda: maximize("a", trials=0),
        "trials 0: must be a whole number above 0; give one, or leave trials out",
    ),
    (
        lambda: maximize("a", trials=2.5),
        "trials 2.5: must be a whole number above 0; give one, or leave trials out",
    ),
    (
        lambda: maximize("a", trials=True),
        "trials True: must be a whole number above 0; give one, or leave trials out",
    ),
    (
        lambda: Goal.from_dict({"target": 1}),
        'goal has no direction; write maximize = "accuracy", or minimize = "loss"',
    ),
    (
        lambda: Goal.from_dict({"maximize": "a", "minimize": "a"}),
        'goal has both maximize and minimize; write maximize = "accuracy", or minimize = "loss"',
    ),
    (
        lambda: Goal.from_dict({"maximise": "a"}),
        "goal.maximise is unknown; did you mean 'maximize'? allowed: device_time, maximize, minimize, target, trials, within",
    ),
    (
        lambda: seconds(math.nan),
        "duration nan: must be a finite number; give a number, or leave duration out",
    ),
]


@pytest.mark.parametrize(("act", "message"), CASES, ids=[message[:40] for _, message in CASES])
def test_each_kind_of_bad_input_has_its_sentence(act, message):
    with pytest.raises(CallerError) as caught:
        act()
    assert str(caught.value) == message
