"""Laws of the searches that need no library: allowed, new, and a function of (space, seed, k, history)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail import search
from foresail.search import Exhausted, Observed
from foresail.space import Choice, Flag, Float, Int, Space

SPACES = [
    Space(
        x=Float(0, 1),
        on=Flag(),
        n=Int(1, 9, when={"on": True}),
        forbid=[{"on": False, "x": {"at_most": 0.5}}],
    ),
    Space(o=Choice(["a", "b", "c"]), n=Int(1, 3, when={"o": ["a", "b"]}), forbid=[{"o": "a", "n": 2}]),
]


@pytest.mark.parametrize("name", ["random", "sobol", "grid"])
@settings(max_examples=25, deadline=None)
@given(space=st.sampled_from(SPACES), seed=st.integers(0, 2**64))
def test_proposals_are_allowed_new_and_repeatable(name, space, seed):
    propose, history = search.get(name).propose, []
    for k in range(12):
        config = propose(space, seed=seed, k=k, history=history, mode="max")
        assert propose(space, seed=seed, k=k, history=list(history), mode="max") == config
        if isinstance(config, Exhausted):
            assert k == space.size() or name == "grid"
            break
        assert space.check(config) == config
        assert all(config != observed.config for observed in history)
        history.append(Observed(config, None, 0))
