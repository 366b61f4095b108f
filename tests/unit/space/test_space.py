"""A space: activity, forbidden combinations, defaults, coordinates, counting and storage."""

import json
import subprocess
import sys
import tomllib

import pytest

from foresail.errors import CallerError
from foresail.space import Choice, Flag, Float, Int, Space

CHAINED = Space(
    nested=Flag(when={"momentum": {"at_least": 0.5}}),
    optimizer=Choice(["sgd", "adam", "rms"], default="sgd"),
    momentum=Float(0, 0.9, step=0.1, when={"optimizer": ["sgd", "rms"]}),
    layers=Int(1, 4),
    forbid=[{"optimizer": "sgd", "layers": (3, 4)}],
)


def test_conditions_chain_whatever_the_order_of_declaration():
    assert CHAINED.point([0.9, 0.0, 0.99, 0.0]) == {
        "nested": True,
        "optimizer": "sgd",
        "momentum": 0.9,
        "layers": 1,
    }
    assert CHAINED.point([0.9, 0.0, 0.1, 0.0]) == {"optimizer": "sgd", "momentum": 0.1, "layers": 1}
    assert CHAINED.point([0.9, 0.5, 0.1, 0.0]) == {"optimizer": "adam", "layers": 1}


def test_counting_agrees_with_listing():
    listed = [CHAINED.canonical(config) for config in CHAINED.grid(continuous=1)]
    # sgd: 10 momenta, 5 of them with two values of nested, 2 layers; rms the same with 4; adam: 4.
    assert CHAINED.size() == len(listed) == len(set(listed)) == 15 * 2 + 15 * 4 + 4


def test_a_wide_int_is_counted_without_a_visit_to_each_value():
    space = Space(n=Int(1, 2**40), fast=Flag(when={"n": {"at_most": 10}}), forbid=[{"n": [7, 8]}])
    assert space.size() == 2**40 + 10 - 2 * 2


def test_a_continuous_knob_makes_a_space_uncountable():
    assert Space(lr=Float(0, 1)).size() is None


def test_columns_are_one_hot_for_a_choice_and_say_what_is_active():
    config = {"optimizer": "adam", "layers": 4}
    features = dict(zip(CHAINED.columns, CHAINED.to_unit(config), strict=True))
    assert features == {
        "nested": 0.5,
        "nested:active": 0.0,
        "optimizer=sgd": 0.0,
        "optimizer=adam": 1.0,
        "optimizer=rms": 0.0,
        "momentum": 0.5,
        "momentum:active": 0.0,
        "layers": 0.875,
    }


def test_an_inactive_choice_without_a_default_is_equally_far_from_every_option():
    space = Space(on=Flag(), kind=Choice(["a", "b"], when={"on": True}))
    assert space.to_unit({"on": False}) == [0.25, 0.5, 0.5, 0.0]


def test_the_default_needs_every_active_knob_and_no_other():
    space = Space(optimizer=Choice(["adam", "sgd"], default="adam"), momentum=Float(0, 1, when={"optimizer": "sgd"}))
    assert space.default() == {"optimizer": "adam"}
    assert Space(lr=Float(0, 1)).default() is None


def test_check_writes_values_in_the_type_of_their_knob():
    space = Space(lr=Float(0, 1), layers=Int(1, 4), kind=Choice([1, 2]))
    checked = space.check({"kind": 1.0, "layers": 3.0, "lr": 1})
    assert json.dumps(checked) == '{"lr": 1.0, "layers": 3, "kind": 1}'


def test_canonical_text_is_one_for_equal_configurations():
    space = Space(lr=Float(0, 2), name=Choice(["adam w", "ä"]))
    assert space.canonical({"name": "ä", "lr": 1}) == space.canonical({"lr": 1.0, "name": "ä"})
    assert space.canonical({"name": "adam w", "lr": 0.1}) == '{"lr":0.1,"name":"adam w"}'


def test_grid_values_carry_no_rounding_dust():
    knob = Float(-1, 1, step=0.1)
    assert [knob.level(i) for i in (0, 3, 7, 10, 13, 20)] == [-1.0, -0.7, -0.3, 0.0, 0.3, 1.0]


def test_a_space_survives_json_and_toml():
    assert Space.from_dict(json.loads(json.dumps(CHAINED.to_dict()))) == CHAINED
    text = """
    [space]
    lr = {type = "float", low = 1e-4, high = 1.0, log = true}
    optimizer = {type = "choice", options = ["sgd", "adam"], touches = "both"}
    momentum = {type = "float", low = 0, high = 0.99, when = {optimizer = "sgd"}}
    [[space.forbid]]
    optimizer = "adam"
    lr = {at_least = 0.1}
    """
    assert Space.from_dict(tomllib.loads(text)["space"]) == Space(
        lr=Float(1e-4, 1.0, log=True),
        optimizer=Choice(["sgd", "adam"], touches="both"),
        momentum=Float(0, 0.99, when={"optimizer": "sgd"}),
        forbid=[{"optimizer": "adam", "lr": {"at_least": 0.1}}],
    )


@pytest.mark.parametrize("name", ["forbid", "knobs", "self", "weight-decay"])
def test_a_knob_may_have_any_name(name):
    space = Space.of({name: Flag(), "type": Flag()}, forbid=[{name: True, "type": True}])
    assert Space.from_dict(space.to_dict()) == space
    assert space.size() == 3


def test_short_form_tells_a_knob_called_forbid_from_forbidden_combinations():
    assert Space.from_dict({"forbid": {"type": "flag"}}) == Space.of({"forbid": Flag()})


def test_an_option_may_be_added_to_a_running_study():
    old = Space(optimizer=Choice(["sgd"]))
    new = Space.from_dict({"optimizer": {"type": "choice", "options": ["sgd", "adam"]}})
    assert old != new
    assert new.canonical(old.point([0.5])) == old.canonical(old.point([0.5]))


def test_the_space_needs_no_array_library():
    code = "import sys, foresail.space; print({'numpy', 'scipy', 'torch', 'optuna'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_an_error_says_what_forbids():
    with pytest.raises(CallerError, match=r"^configuration is forbidden: optimizer = 'sgd' and layers in \[3, 4\]"):
        CHAINED.check({"optimizer": "sgd", "momentum": 0.1, "layers": 3})
