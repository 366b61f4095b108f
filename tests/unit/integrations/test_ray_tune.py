"""Functions written for Ray Tune, run by Foresail."""

from __future__ import annotations

from pathlib import Path

import pytest
import tuned

from foresail import tune
from foresail.errors import CallerError
from foresail.space import Choice, Float, Int
from foresail.tune.spaces import ParamSpace
from foresail.tune.tuner import _policy, _training

SPACE = {"lr": tune.loguniform(0.01, 1.0), "model": {"width": tune.choice([(8, 8), (16, 4)])}, "epochs": 4}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_space_is_what_ray_draws() -> None:
    params = ParamSpace({**SPACE, "n": tune.randint(1, 9), "q": tune.quniform(0.0, 1.0, 0.25), "one": tune.choice([7])})
    assert dict(params.space().knobs) == {
        "lr": Float(0.01, 1.0, log=True),
        "model.width": Choice(["(8, 8)", "(16, 4)"]),
        "n": Int(1, 8),
        "q": Float(0.0, 1.0, step=0.25),
    }
    filled = params.filled({"lr": 0.1, "model.width": "(16, 4)", "n": 3, "q": 0.5})
    assert filled == {"lr": 0.1, "model": {"width": (16, 4)}, "epochs": 4, "n": 3, "q": 0.5, "one": 7}


def test_a_function_that_reports_runs_to_its_end() -> None:
    config = tune.TuneConfig(metric="score", mode="max", num_samples=3, policy="fifo")
    grid = tune.Tuner(tuned.climbing, param_space=SPACE, tune_config=config).fit(quiet=True)
    assert len(grid) == 3
    assert grid.num_errors == 0
    best = grid.get_best_result()
    assert best.metrics["score"] == max(result.metrics["score"] for result in grid)
    assert best.metrics["score"] == pytest.approx(best.config["model"]["width"][0] * best.config["lr"] * 4)
    assert best.config["epochs"] == best.metrics["training_iteration"] == 4
    assert best.checkpoint is not None
    assert Path(best.checkpoint.path, "state.json").read_text() == '{"epoch": 4}'


def test_a_grid_with_what_the_function_returns() -> None:
    space = {"x": tune.grid_search([1, 2, 3]), "y": tune.grid_search([0, 5])}
    config = tune.TuneConfig(metric="loss", mode="min")
    trainable = tune.with_parameters(tuned.once, offset=1.0)
    grid = tune.Tuner(trainable, param_space=space, tune_config=config).fit(quiet=True)
    assert sorted((r.config["x"], r.config["y"]) for r in grid) == [(1, 0), (1, 5), (2, 0), (2, 5), (3, 0), (3, 5)]
    best = grid.get_best_result()
    assert (best.config, best.metrics["loss"]) == ({"x": 2, "y": 0}, 1.0)


def test_stop_ends_an_endless_function_and_a_named_study_goes_on() -> None:
    settings = {
        "param_space": {"lr": tune.uniform(0.1, 1.0)},
        "tune_config": tune.TuneConfig(metric="score", mode="max", num_samples=2, policy="fifo"),
        "run_config": tune.RunConfig(name="endless", stop={"training_iteration": 5}),
    }
    grid = tune.Tuner(tuned.endless, **settings).fit(quiet=True)
    assert [len(result.history) for result in grid] == [5, 5]
    again = tune.Tuner(tuned.endless, **settings).fit(quiet=True)
    assert again.result.seconds == grid.result.seconds, "nothing was done again"


def test_suspending_needs_a_function_that_looks_for_its_checkpoint() -> None:
    assert _policy(None, tuned.climbing) == "pop"
    assert _policy(None, tune.with_parameters(tuned.once, offset=1.0)) == {"name": "pop", "pause": False}


def test_mistakes_are_told() -> None:
    with pytest.raises(CallerError, match="mode = None"):
        tune.Tuner(tuned.once, param_space={"x": tune.uniform(0, 1)}).fit()
    with pytest.raises(CallerError, match="nothing to search"):
        tune.Tuner(tuned.once, param_space={"x": 1}, tune_config=tune.TuneConfig(metric="a", mode="max")).fit()
    with pytest.raises(CallerError, match="no trial runs here"):
        tune.report({"a": 1})
    with pytest.raises(CallerError, match="a function"):
        tune.Tuner(dict)


def test_it_suspends_and_resumes_through_its_own_checkpoints(suspended) -> None:  # type: ignore[no-untyped-def]
    params = ParamSpace({"lr": tune.uniform(0.0, 1.0), "model": {"width": (8, 8)}, "epochs": 5})
    whole, parts = suspended(_training(tuned.climbing, params, 5), "score", steps=5)
    assert parts == whole
