"""One clear error for each kind of wrong space or configuration: what, what is allowed, what to do."""

import math

import pytest

from foresail.errors import CallerError
from foresail.space import Choice, Flag, Float, Int, Space

SPACE = Space(
    lr=Float(1e-4, 1.0, log=True),
    optimizer=Choice(["sgd", "adam"]),
    momentum=Float(0, 0.99, when={"optimizer": "sgd"}),
    layers=Int(1, 7, step=2),
    fast=Flag(),
)
GOOD = {"lr": 0.1, "optimizer": "adam", "layers": 3, "fast": True}


def space(**knobs):
    return lambda: Space(**knobs)


def table(data):
    return lambda: Space.from_dict(data)


def config(**changes):
    return lambda: SPACE.check({k: v for k, v in {**GOOD, **changes}.items() if v is not None})


CASES = [
    (space(lr=Float(0.1, 0.01)), "Float('lr', 0.1, 0.01): low must be below high; swap them"),
    (
        space(n=Int(3, 3)),
        "Int('n', 3, 3): low and high are equal; leave the knob out and set the value in your code",
    ),
    (
        space(lr=Float(0, 1, log=True)),
        "Float('lr', 0, 1): a log scale needs low above 0; raise low or drop log",
    ),
    (space(n=Int(0, 8, log=True)), "Int('n', 0, 8): a log scale needs low at least 1; raise low or drop log"),
    (space(lr=Float(math.nan, 1)), "Float('lr', nan, 1): low must be a finite number, not nan; give it one"),
    (space(lr=Float(0, math.inf)), "Float('lr', 0, inf): high must be a finite number, not inf; give it one"),
    (space(lr=Float("0", 1)), "Float('lr', '0', 1): low must be a finite number, not '0'; give it one"),
    (
        space(n=Int(1, 2.5)),
        "Int('n', 1, 2.5): high must be a whole number within +-2**40 (1099511627776), not 2.5; give it one",
    ),
    (
        space(lr=Float(-1e308, 1e308)),
        "Float('lr', -1e+308, 1e+308): the range is too wide for a double; narrow it",
    ),
    (
        space(lr=Float(0, 1, step=0.3)),
        "Float('lr', 0, 1): step 0.3 does not divide the range; use high=0.9",
    ),
    (space(n=Int(1, 9, step=3)), "Int('n', 1, 9): step 3 does not divide the range; use high=7"),
    (
        space(lr=Float(0, 1, step=-0.1)),
        "Float('lr', 0, 1): step must be above 0, not -0.1; give the distance between neighbours",
    ),
    (
        space(lr=Float(0, 1, step=1e-12)),
        "Float('lr', 0, 1): step 1e-12 is too fine for its bounds; drop step, or make it larger",
    ),
    (
        space(n=Int(1, 9, step=2, log=True)),
        "Int('n', 1, 9): log and step exclude each other; drop one of them",
    ),
    (
        space(lr=Float(0, 1, log="yes")),
        "Float('lr', 0, 1): log must be true or false, not 'yes'; write log=True for a logarithmic scale",
    ),
    (
        space(lr=Float(0, 1, default=3)),
        "Float('lr', 0, 1): default 3.0 is outside 0 to 1; choose one that the knob can take",
    ),
    (
        space(lr=Float(0, 1, touches="sped")),
        "Float('lr', 0, 1): touches must not be 'sped'; did you mean 'speed'? allowed: both, learning, speed",
    ),
    (space(o=Choice([])), "Choice('o', []): there are no options; give at least one"),
    (space(o=Choice("sgd")), "Choice('o', 'sgd'): options must be a list, not str; write Choice(['a', 'b'])"),
    (space(o=Choice([1, True])), "Choice('o', [1, True]): option True equals an earlier one; drop it"),
    (
        space(o=Choice(["a", None])),
        "Choice('o', ['a', None]): None cannot be an option (it means 'not known'); write the string 'none'",
    ),
    (
        space(o=Choice([[64, 64]])),
        "Choice('o', [[64, 64]]): option [64, 64] is neither text, a finite number nor a truth value; "
        "name it by a string and look it up in your code",
    ),
    (
        space(lr=0.1),
        "knob 'lr' is 0.1; Float, Int, Choice or Flag; leave a fixed value out of the space and set it in your code",
    ),
    (space(), "the space has no knobs; name at least one, Space(lr=Float(1e-4, 1.0, log=True))"),
    (
        lambda: Space.of({"a b": Flag()}),
        "knob 'a b': not a name; letters, digits, '_', '-' and '.', a letter or '_' first; rename it",
    ),
    (
        space(a=Flag(when={"b": True}), b=Flag(when={"a": True})),
        "the conditions form a circle: a -> b -> a; drop one of them",
    ),
    (
        space(optimizer=Choice(["a"]), b=Flag(when={"optimiser": "a"})),
        "knob 'b': when names 'optimiser', which is no knob; did you mean 'optimizer'? allowed: b, optimizer",
    ),
    (
        space(o=Choice(["sgd", "adam"]), b=Flag(when={"o": "sdg"})),
        "knob 'b': when o can never hold: 'sdg' is not an option; did you mean 'sgd'? allowed: adam, sgd",
    ),
    (
        space(lr=Float(0, 1), b=Flag(when={"lr": 0.5})),
        "knob 'b': when lr = 0.5: a continuous knob hardly ever equals a value; "
        "write bounds, {'at_least': 0.1}, or give the knob a step",
    ),
    (
        space(lr=Float(0, 1), b=Flag(when={"lr": {"above": 0.5}})),
        "knob 'b': when lr: unknown bound 'above'; allowed: at_least, at_most",
    ),
    (
        space(n=Int(1, 4), b=Flag(when={"n": {"at_least": 5}})),
        "knob 'b': when n can never hold: no value is >= 5; 1 to 4",
    ),
    (
        space(o=Choice(["a"]), b=Flag(when={"o": {"at_least": 5}})),
        "knob 'b': when o: bounds are for Float and Int; write a value or a list of values",
    ),
    (
        space(n=Int(1, 4), b=Flag(when={"n": []})),
        "knob 'b': when n is an empty list; list at least one value",
    ),
    (
        space(a=Flag(), b=Flag(when=["a"])),
        "knob 'b': when is ['a']; a mapping from knob to value, list of values or bounds; write {'optimizer': 'sgd'}",
    ),
    (
        space(a=Flag(), forbid=[{"a": [True, False]}]),
        "every configuration is forbidden; drop a combination from forbid",
    ),
    (
        space(a=Flag(True), forbid=[{"a": True}]),
        "the default configuration is forbidden: a = True; change a default",
    ),
    (
        space(a=Flag(), forbid={"a": True}),
        "forbid is {'a': True}; a list of mappings; write forbid=[{...}], or Space.of({...}) for a knob of that name",
    ),
    (
        table({"lr": {"type": "float", "lwo": 1, "high": 2}}),
        "space.lr.lwo is unknown; did you mean 'low'? allowed: default, high, log, low, step, touches, type, when",
    ),
    (table({"lr": {"type": "float", "high": 2}}), "space.lr.low is missing; a float needs it"),
    (table({"lr": {"low": 1, "high": 2}}), "space.lr.type is missing; float, int, choice, flag"),
    (
        table({"lr": {"type": "flaot"}}),
        "space.lr.type is 'flaot'; did you mean 'float'? allowed: choice, flag, float, int",
    ),
    (
        table({"lr": 0.1}),
        "space.lr is 0.1; a table with a type; "
        'write {type = "float", low = 0.0, high = 1.0}; set a fixed value in your code',
    ),
    (
        table({"knobs": {"a": {"type": "flag"}}, "forbit": []}),
        "space.forbit is unknown; did you mean 'forbid'? allowed: forbid, knobs",
    ),
    (
        table({"lr": {"type": "float", "low": 2, "high": 1}}),
        "Float('lr', 2, 1): low must be below high; swap them",
    ),
    (
        config(optimiser="adam"),
        "configuration has 'optimiser', which is no knob; did you mean 'optimizer'? "
        "allowed: fast, layers, lr, momentum, optimizer",
    ),
    (config(lr=None), "configuration lacks 'lr'; give it a value"),
    (config(lr=3), "configuration 'lr': 3.0 is outside 0.0001 to 1.0"),
    (config(lr="0.1"), "configuration 'lr': '0.1' is not a number"),
    (config(lr=math.nan), "configuration 'lr': nan is outside 0.0001 to 1.0"),
    (config(layers=2), "configuration 'layers': 2 is off the grid; nearest: 1"),
    (config(layers=2.5), "configuration 'layers': 2.5 is not a whole number"),
    (config(fast=1), "configuration 'fast': 1 is neither true nor false"),
    (
        config(optimizer="adm"),
        "configuration 'optimizer': 'adm' is not an option; did you mean 'adam'? allowed: adam, sgd",
    ),
    (
        config(momentum=0.5),
        "configuration has 'momentum', which exists only where optimizer = 'sgd'; leave it out",
    ),
    (lambda: SPACE.point([0.5]), "1 quantiles for a space of 5; give 5"),
    (lambda: Space(a=Flag()).from_unit([math.nan]), "columns[0] is nan; numbers from 0 to 1"),
]


@pytest.mark.parametrize(("act", "message"), CASES, ids=[message[:40] for _, message in CASES])
def test_each_kind_of_bad_input_has_its_sentence(act, message):
    with pytest.raises(CallerError) as caught:
        act()
    assert str(caught.value) == message
