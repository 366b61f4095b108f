"""Searches: determinism, no repeats, forbidden combinations, exhaustion, caches, and that models learn."""

import importlib.util
import math
import sys

import pytest

from foresail import search
from foresail.errors import CallerError, MissingExtraError
from foresail.search import Cache, Exhausted, Observed
from foresail.space import Choice, Flag, Float, Int, Space

SPACE = Space(
    lr=Float(1e-4, 1.0, log=True, default=0.1),
    optimizer=Choice(["sgd", "adam", "rms"], default="sgd"),
    momentum=Float(0, 0.99, when={"optimizer": ["sgd", "rms"]}, default=0.9),
    dropout=Float(0, 0.5, step=0.1, default=0.0),
    layers=Int(1, 4, default=2),
    width=Int(16, 512, log=True, default=64),
    bias=Flag(True),
    forbid=[{"optimizer": "sgd", "layers": (3, 4)}],
)
SMALL = Space(
    optimizer=Choice(["sgd", "adam"]),
    momentum=Float(0, 0.9, step=0.3, when={"optimizer": "sgd"}),
    layers=Int(1, 4),
    forbid=[{"optimizer": "sgd", "layers": (3, 4)}],
)


def mark(name):
    if name == "gp":
        lacks = importlib.util.find_spec("torch") is None or importlib.util.find_spec("optuna") is None
        return pytest.param(
            name, marks=[pytest.mark.torch, pytest.mark.slow, pytest.mark.skipif(lacks, reason="extra")]
        )
    module = {"tpe": "optuna", "cmaes": "cmaes"}.get(name)
    lacks = module is not None and importlib.util.find_spec(module) is None
    return pytest.param(name, marks=pytest.mark.skipif(lacks, reason="extra not installed"))


EVERY = [mark(name) for name in search.NAMES]
MODELS = [mark(name) for name in ("tpe", "gp", "cmaes")]


def loss(config):
    wrong = 0.0 if config.get("optimizer") == "adam" else 0.5
    return abs(math.log10(config.get("lr", 1) / 0.03)) + 0.2 * abs(config["layers"] - 2) + wrong


def played(name, space, many, *, seed=1, mode="min", cache=None, check=lambda *_: None):
    """A study of `many` proposals whose last two values are not known yet when the next is asked for."""
    sign = 1 if mode == "min" else -1
    history = []
    for k in range(many):
        shown = history[:-2] + [Observed(o.config, None, 0) for o in history[-2:]]
        config = search.get(name).propose(space, seed=seed, k=k, history=shown, mode=mode, cache=cache)
        check(k, shown, config)
        if isinstance(config, Exhausted):
            break
        history.append(Observed(config, sign * loss(config), 1))
    return history


@pytest.mark.parametrize("name", EVERY)
def test_a_proposal_is_the_same_with_and_without_a_cache_and_no_two_are_equal(name):
    def same_again(k, shown, config):
        alone = search.get(name).propose(SPACE, seed=1, k=k, history=shown, mode="min")
        assert SPACE.canonical(alone) == SPACE.canonical(config)

    history = played(name, SPACE, 13 if name == "gp" else 30, cache=Cache(), check=same_again)
    assert history[0].config == SPACE.default()
    assert len({SPACE.canonical(o.config) for o in history}) == len(history)


@pytest.mark.parametrize("name", EVERY)
def test_an_exhausted_space_ends_with_that_reason(name):
    ends = []
    history = played(name, SMALL, 20, check=lambda k, shown, config: ends.append(config))
    assert len(history) == SMALL.size() == 12
    assert isinstance(ends[-1], Exhausted)
    assert ends[-1].size == 12
    assert f"{name}: all " in str(ends[-1])


@pytest.mark.parametrize("name", EVERY)
def test_repeats_come_only_when_asked_for(name):
    space = Space(layers=Int(1, 2))
    history = [Observed({"layers": 1}, 0.5, 1), Observed({"layers": 2}, 0.2, 1)]
    asked = search.get(name).propose(space, seed=0, k=2, history=history, mode="max", repeats=True)
    assert asked in ({"layers": 1}, {"layers": 2})
    assert isinstance(search.get(name).propose(space, seed=0, k=2, history=history, mode="max"), Exhausted)


@pytest.mark.parametrize("name", ["random", "sobol"])
def test_the_seed_and_the_number_decide(name):
    space = Space(x=Float(0, 1), y=Float(0, 1))
    get = search.get(name).propose
    texts = {space.canonical(get(space, seed=s, k=k, mode="max")) for s in range(5) for k in range(5)}
    assert len(texts) == 25


@pytest.mark.parametrize("name", ["random", "sobol", "grid"])
def test_a_set_of_seen_texts_stands_for_the_history(name):
    history = played(name, SMALL, 6)
    seen = search.seen_in(SMALL, history)
    propose = search.get(name).propose
    assert propose(SMALL, seed=1, k=6, seen=seen, mode="min") == propose(
        SMALL, seed=1, k=6, history=history, mode="min"
    )


def test_sobol_fills_every_slice_of_every_dimension_once():
    space = Space(**{f"x{i}": Float(0, 1) for i in range(64)})
    points = [list(search.get("sobol").propose(space, seed=7, k=k, mode="max").values()) for k in range(64)]
    for axis in zip(*points, strict=True):
        assert sorted(int(x * 64) for x in axis) == list(range(64))


def test_sobol_without_scrambling_is_the_published_sequence():
    qmc = pytest.importorskip("scipy.stats").qmc
    from foresail.search.sobol import DIMENSIONS, _directions

    wanted = qmc.Sobol(DIMENSIONS, scramble=False, bits=32).random_base2(6)
    for k in range(64):
        gray = k ^ k >> 1  # the library visits the points in Gray-code order
        for d in range(DIMENSIONS):
            bits = 0
            for i, direction in enumerate(_directions(d)):
                bits ^= direction * (gray >> i & 1)
            assert bits / 2**32 == wanted[k][d]


def test_more_knobs_than_sobol_dimensions():
    space = Space(**{f"x{i}": Float(0, 1) for i in range(70)})
    assert len(search.get("sobol").propose(space, seed=7, k=3, mode="max")) == 70


def test_grid_visits_the_ends_of_a_continuous_knob():
    history = played("grid", Space(lr=Float(1e-4, 1.0, log=True), layers=Int(1, 1000)), 100)
    assert len(history) == 25
    assert {o.config["lr"] for o in history} >= {1e-4, 1.0}
    assert {o.config["layers"] for o in history} >= {1, 1000}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("mode", ["min", "max"])
def test_a_model_proposes_better_than_chance_in_either_direction(name, mode):
    many = 20 if name == "gp" else 60
    late = [loss(o.config) for o in played(name, SPACE, many, seed=3, mode=mode)[-8:]]
    chance = [loss(o.config) for o in played("random", SPACE, 60, seed=3)]
    assert sorted(late)[4] < sorted(chance)[30]


@pytest.mark.parametrize("name", MODELS)
def test_unusable_values_and_foreign_configurations_do_no_harm(name):
    history = played("random", SPACE, 12)
    history[3] = Observed(history[3].config, math.nan, 1)
    history[4] = Observed(history[4].config, math.inf, 1)
    history.append(Observed({"removed_knob": 3}, 0.1, 1))
    SPACE.check(search.get(name).propose(SPACE, seed=1, k=13, history=history, mode="min"))


@pytest.mark.parametrize("name", [mark("tpe"), mark("cmaes")])
def test_a_long_history_is_capped_and_still_gives_the_same_with_a_cache(name):
    space = Space(x=Float(0, 1), y=Float(0, 1))
    history = [Observed(space.point([k / 1100, k * 7 % 1100 / 1100]), k % 13 / 13, 1) for k in range(1100)]
    cache = Cache()
    for known in (1098, 1100):
        propose = search.get(name).propose
        first = propose(space, seed=1, k=known, history=history[:known], mode="max", cache=cache)
        assert first == propose(space, seed=1, k=known, history=history[:known], mode="max")


def test_an_option_added_to_a_running_study_is_proposed():
    new = Space(o=Choice(["a", "b"]), n=Int(1, 2))
    history = [Observed({"o": "a", "n": n}, 0.0, 1) for n in (1, 2)]
    fresh = search.get("random").propose(new, seed=0, k=2, history=history, mode="max")
    assert fresh["o"] == "b"


def test_a_space_that_is_all_but_forbidden_gives_its_last_configuration():
    space = Space(n=Int(1, 5000), x=Flag(), forbid=[{"n": {"at_most": 4999}}, {"x": True}])
    assert search.get("random").propose(space, seed=0, k=0, mode="max") == {"n": 5000, "x": False}


def test_a_misspelt_search_is_answered_with_the_nearest():
    with pytest.raises(CallerError) as caught:
        search.get("soboll")
    assert str(caught.value) == (
        "no search is called 'soboll'; did you mean 'sobol'? allowed: cmaes, gp, grid, random, sobol, tpe"
    )


@pytest.mark.parametrize(("name", "module"), [("tpe", "optuna"), ("cmaes", "cmaes")])
def test_a_missing_library_is_named_with_its_install_command(name, module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'foresail\[optuna\]'"):
        search.get(name).propose(Space(x=Float(0, 1)), seed=0, k=0, mode="max")


def test_a_negative_number_is_refused():
    with pytest.raises(CallerError, match="proposal number k = -1"):
        search.get("random").propose(SMALL, seed=0, k=-1, mode="max")
