"""Laws of spaces that hypothesis draws: round trips, bounds, activity, canonical text, counting."""

import json
import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from foresail.errors import CallerError
from foresail.space import Choice, Flag, Float, Int, Space

UNIT = st.floats(0, 1)
LAW = settings(deadline=None)


@st.composite
def floats(draw, **more):
    low = draw(st.floats(-1e6, 1e6))
    return Float(low, low + draw(st.floats(1e-3, 1e6)), **more)


@st.composite
def logs(draw, **more):
    low = draw(st.floats(1e-12, 1e6))
    return Float(low, low * draw(st.floats(1.01, 1e9)), log=True, **more)


@st.composite
def stepped(draw, **more):
    step = draw(st.sampled_from([0.1, 0.25, 0.05, 3.0, 1e-3, 1 / 3]))
    start, many = draw(st.integers(-20, 20)), draw(st.integers(1, 50))
    return Float(float(f"{start * step:.12g}"), float(f"{(start + many) * step:.12g}"), step=step, **more)


@st.composite
def ints(draw, **more):
    low, step = draw(st.integers(-1000, 1000)), draw(st.integers(1, 7))
    return Int(low, low + step * draw(st.integers(1, 1000)), step=step, **more)


@st.composite
def log_ints(draw, **more):
    low = draw(st.integers(1, 2**20))
    return Int(low, low + draw(st.integers(1, 2**39)), log=True, **more)


@st.composite
def choices(draw, **more):
    return Choice(draw(st.lists(st.text("ab 'ü=", max_size=4), min_size=1, max_size=5, unique=True)), **more)


def counted(**more):
    return st.one_of(stepped(**more), ints(**more), log_ints(**more), choices(**more), st.just(Flag(**more)))


def knobs(**more):
    return st.one_of(counted(**more), floats(**more), logs(**more))


@st.composite
def spaces(draw, kind=knobs):
    """Three free knobs, a flag and a chain of two conditions, and at times a forbidden combination."""
    free = {f"k{i}": draw(kind()) for i in range(3)}
    parents = {"flag": Flag(), "child": Choice(["a", "b", "c"], when={"flag": True})}
    child = draw(kind(when={"child": draw(st.sampled_from(["a", ["b", "c"]]))}))
    every = draw(st.permutations(list({**free, **parents, "grandchild": child}.items())))
    forbid = draw(st.sampled_from([(), [{"flag": True, "child": "c"}], [{"flag": False}]]))
    return Space.of(dict(every), forbid=forbid)


@st.composite
def configured(draw, kind=knobs):
    space = draw(spaces(kind))
    config = space.point(draw(st.lists(UNIT, min_size=6, max_size=6)))
    assume(space.forbidding(config) is None)
    return space, config


@LAW
@given(knobs(), UNIT)
def test_values_stay_inside_and_are_their_own_parse(knob, u):
    value = knob.at(u)
    assert knob.parse(value) == value
    assert 0 <= knob.unit(value) <= 1


@LAW
@given(st.one_of(floats(), logs()))
def test_the_ends_of_the_unit_interval_are_the_bounds(knob):
    assert (knob.at(0), knob.at(1)) == (knob.low, knob.high)


@LAW
@given(counted(), st.data())
def test_levels_go_to_the_unit_interval_and_back_exactly(knob, data):
    index = data.draw(st.integers(0, knob.levels - 1))
    value = knob.level(index)
    assert knob.index(value) == index
    assert knob.at(knob.unit(value)) == value


@LAW
@given(st.one_of(floats(), logs()), UNIT)
def test_continuous_values_come_back_to_rounding(knob, u):
    value = knob.at(u)
    assert math.isclose(knob.at(knob.unit(value)), value, rel_tol=1e-9, abs_tol=1e-9 * (knob.high - knob.low))


@LAW
@given(st.one_of(floats(), logs(), stepped(), ints(), log_ints()), UNIT, UNIT)
def test_a_higher_quantile_is_no_lower_value(knob, u, v):
    assert knob.at(min(u, v)) <= knob.at(max(u, v))


@LAW
@given(configured(counted))
def test_features_of_a_countable_space_lead_back_exactly(drawn):
    space, config = drawn
    unit = space.to_unit(config)
    assert len(unit) == len(space.columns)
    assert all(0 <= u <= 1 for u in unit)
    assert space.from_unit(unit) == config
    assert space.point(space.quantiles(config)) == config


@LAW
@given(configured())
def test_features_are_a_fixed_point_after_one_round(drawn):
    space, config = drawn
    once = space.from_unit(space.to_unit(config))
    assert once.keys() == config.keys()
    assert all(
        math.isclose(a, b, abs_tol=1e-9) for a, b in zip(space.to_unit(once), space.to_unit(config), strict=True)
    )


@LAW
@given(configured())
def test_a_knob_is_there_exactly_where_its_condition_holds(drawn):
    _, config = drawn
    assert ("child" in config) == config["flag"]
    if "grandchild" in config:
        assert "child" in config


@LAW
@given(configured(), st.randoms(use_true_random=False))
def test_canonical_text_ignores_order_and_survives_json(drawn, shuffle):
    space, config = drawn
    items = list(config.items())
    shuffle.shuffle(items)
    text = space.canonical(config)
    assert space.canonical(dict(items)) == text
    assert json.loads(text) == config
    assert space.canonical(json.loads(text)) == text


@LAW
@given(configured(), st.sampled_from(["flag", "k0", "k1", "k2"]))
def test_a_configuration_lacking_an_active_knob_is_refused(drawn, name):
    space, config = drawn
    lacking = {key: value for key, value in config.items() if key != name}
    with pytest.raises(CallerError, match=r"lacks|exists only where"):
        space.check(lacking)


@LAW
@given(spaces())
def test_a_space_is_its_dictionary(space):
    assert Space.from_dict(json.loads(json.dumps(space.to_dict()))) == space


@st.composite
def tiny(draw, **more):
    return draw(st.sampled_from([Int(1, 3, **more), Choice(["x", "y"], **more), Float(0, 1, step=0.5, **more)]))


@LAW
@given(spaces(tiny))
def test_the_grid_lists_each_allowed_configuration_once(space):
    listed = [space.canonical(config) for config in space.grid(continuous=1)]
    assert len(listed) == len(set(listed)) == space.size()
