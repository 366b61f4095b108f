"""Objectives written for Optuna, run by Foresail."""

from __future__ import annotations

import math
from pathlib import Path

import objectives
import pytest
from optuna.trial import TrialState

import foresail.optuna as optuna
from foresail.api.recorded import load_events, load_view
from foresail.core import events as ev
from foresail.errors import CallerError, TrainingError
from foresail.optuna.discover import discover
from foresail.replay.optuna import read_optuna
from foresail.space import Float, Int, Space
from foresail.space.options import options_of

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    monkeypatch.chdir(tmp_path)


def test_the_space_of_a_branching_objective_is_found_with_its_conditions() -> None:
    space, runs = discover(objectives.branching, ["maximize"])
    assert set(space.knobs) >= {"layers", "units_0", "units_1", "units_2", "optimizer", "lr", "momentum"}
    assert space.knobs["units_1"].when == {"layers": {"at_least": 2}}
    assert space.knobs["units_2"].when == {"layers": {"at_least": 3}}
    assert space.knobs["momentum"].when == {"optimizer": ["sgd"]}
    assert space.knobs["lr"].when is None
    assert runs <= 20


def test_a_branching_objective_runs_to_the_end(tmp_path: Path) -> None:
    study = optuna.create_study(direction="maximize", study_name="branching", quiet=True, seed=1, policy="fifo")
    seen: list[int] = []
    study.optimize(
        objectives.branching, n_trials=12, n_jobs=2, callbacks=[lambda study, trial: seen.append(trial.number)]
    )
    trials = study.get_trials(deepcopy=False)
    assert [trial.number for trial in trials] == list(range(12))
    assert sorted(seen) == list(range(12))
    assert study.best_trial.user_attrs["units"]
    for trial in trials:
        assert trial.state is TrialState.COMPLETE
        assert list(trial.intermediate_values) == [0, 1, 2, 3, 4, 5]
        assert trial.value == trial.intermediate_values[5]
        asked = {"layers", "optimizer", "lr", *(f"units_{i}" for i in range(trial.params["layers"]))}
        asked |= {"momentum"} if trial.params["optimizer"] == "sgd" else set()
        asked |= {"late"} if trial.params["lr"] > 0.001 and trial.params["layers"] > 1 else set()
        assert set(trial.params) == asked
    assert study.best_value == max(trial.value for trial in trials)
    view = load_view(tmp_path / "branching.db")
    assert view.best is not None
    assert view.best[2] == pytest.approx(study.best_value)


def test_a_policy_that_ends_trials_prunes_them() -> None:
    study = optuna.create_study(direction="maximize", quiet=True, policy={"name": "asha-stop", "eta": 2}, max_steps=6)
    study.optimize(objectives.branching, n_trials=10, n_jobs=1)
    states = [trial.state for trial in study.trials]
    assert TrialState.PRUNED in states
    assert set(states) <= {TrialState.PRUNED, TrialState.COMPLETE}


def test_later_trials_expect_the_length_of_earlier_ones(tmp_path: Path) -> None:
    study = optuna.create_study(direction="maximize", study_name="long", quiet=True, policy="fifo", workers=1)
    study.optimize(objectives.branching, n_trials=3)
    said = [e for e in load_events(tmp_path / "long.db") if isinstance(e, ev.HorizonDeclared)]
    assert [(e.attempt, e.max_steps) for e in said] == [("1-1", 6), ("2-1", 6)]


def test_a_trial_that_prunes_itself_is_pruned() -> None:
    study = optuna.create_study(quiet=True, sampler=optuna.samplers.RandomSampler())
    study.optimize(objectives.parabola, n_trials=30, n_jobs=2)
    for trial in study.trials:
        assert trial.state is (TrialState.PRUNED if trial.params["x"] > 9.0 else TrialState.COMPLETE)
    assert study.best_value == min(trial.value for trial in study.trials if trial.value is not None)


@pytest.mark.parametrize(
    ("objective", "needs"), [("torch_net", "torch"), ("linear_model", "sklearn"), ("boosted", "lightgbm")]
)
def test_objectives_of_frameworks_run_to_the_end(objective: str, needs: str) -> None:
    pytest.importorskip(needs)
    study = optuna.create_study(direction="maximize", quiet=True)
    study.optimize(getattr(objectives, objective), n_trials=3)
    assert len(study.trials) == 3
    assert all(trial.state in (TrialState.COMPLETE, TrialState.PRUNED) for trial in study.trials)
    assert 0.3 < study.best_value <= 1.0


def test_several_objectives() -> None:
    study = optuna.create_study(directions=["minimize", "minimize"], quiet=True)
    study.optimize(objectives.two_goals, n_trials=8, n_jobs=2)
    assert all(trial.state is TrialState.COMPLETE for trial in study.trials)
    for trial in study.trials:
        x, y = trial.params["x"], trial.params["y"]
        assert trial.values == [4 * x**2 + 4 * y**2, (x - 5) ** 2 + (y - 5) ** 2]
    assert 1 <= len(study.best_trials) <= 8


def test_a_study_in_a_storage_is_continued(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'optuna.sqlite'}"
    study = optuna.create_study(storage=storage, study_name="s", quiet=True)
    study.optimize(objectives.parabola, n_trials=4, n_jobs=2)
    again = optuna.create_study(storage=storage, study_name="s", quiet=True, load_if_exists=True)
    again.optimize(objectives.parabola, n_trials=4, n_jobs=2)
    assert len(again.trials) == 4, "it had ended"
    again.optimize(objectives.parabola, n_trials=3, n_jobs=2)
    assert [trial.number for trial in again.trials] == list(range(7))
    assert (tmp_path / "s-2.db").exists()
    with pytest.raises(CallerError, match="holds a study already"):
        optuna.create_study(storage="sqlite://", study_name="s", quiet=True)


def test_a_storage_that_refuses_does_not_end_the_study(monkeypatch: pytest.MonkeyPatch) -> None:
    study = optuna.create_study(direction="maximize", quiet=True, policy="fifo")
    write, refused = study._storage.set_trial_intermediate_value, []

    def refusing(trial: int, step: int, value: float) -> None:
        if trial == 1 and not refused:
            refused.append(trial)
            raise optuna.exceptions.StorageInternalError("database is locked")
        write(trial, step, value)

    monkeypatch.setattr(study._storage, "set_trial_intermediate_value", refusing)
    study.optimize(objectives.branching, n_trials=3, n_jobs=2)
    assert refused
    assert [len(trial.intermediate_values) for trial in study.trials] == [6, 6, 6]
    assert all(trial.state is TrialState.COMPLETE for trial in study.trials)


def test_a_callback_stops_the_study() -> None:
    study = optuna.create_study(quiet=True)
    study.optimize(objectives.parabola, n_trials=500, n_jobs=1, callbacks=[optuna.study.MaxTrialsCallback(3)])
    assert 3 <= len([t for t in study.trials if t.state.is_finished()]) < 100


def test_what_the_configuration_lacks_is_drawn_by_seed_and_noted(tmp_path: Path) -> None:
    space = Space(layers=Int(2, 3), lr=Float(0.01, 0.1))
    told = []
    for name in ("one", "two"):
        study = optuna.create_study(direction="maximize", study_name=name, quiet=True, space=space, policy="fifo")
        study.optimize(objectives.branching, n_trials=3, n_jobs=2)
        assert all({"late", "units_0", "optimizer"} <= set(trial.params) for trial in study.trials)
        assert len({trial.params["late"] for trial in study.trials}) == 3
        notes = [e for e in load_events(tmp_path / f"{name}.db") if isinstance(e, ev.Noted)]
        told.append(sorted(f"{e.attempt} {e.notes}" for e in notes))
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("objective", "error", "said"),
    [
        (objectives.broken_at_once, TrainingError, "no data"),
        (objectives.without_parameters, CallerError, "asks for no parameter"),
        (objectives.broken, TrainingError, "no data"),
    ],
)
def test_an_objective_that_cannot_be_searched_is_told(objective: object, error: type[Exception], said: str) -> None:
    study = optuna.create_study(quiet=True)
    with pytest.raises(error, match=said):
        study.optimize(objective, n_trials=5)


def test_a_sampler_without_a_counterpart_is_refused() -> None:
    with pytest.raises(CallerError, match="NSGAII"):
        optuna.create_study(sampler=optuna.samplers.NSGAIISampler())


def test_options_keep_their_places() -> None:
    assert options_of(["a", 1, 2.5, False]) == ("a", 1, 2.5, False)
    assert options_of([1, True]) == ("0: 1", "1: True")
    assert options_of([None, (3, 4), math.inf]) == ("None", "(3, 4)", "inf")


def test_what_foresail_does_not_have_is_optunas_own() -> None:
    import optuna as theirs

    assert optuna.TrialPruned is theirs.TrialPruned
    assert optuna.visualization is theirs.visualization


def test_an_exported_study_opens_in_optuna(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from foresail.cli.main import main

    study = optuna.create_study(direction="maximize", study_name="made", quiet=True)
    study.optimize(objectives.branching, n_trials=5, n_jobs=2)
    for name in ("out.sqlite", "out.journal"):
        done = CliRunner().invoke(main, ["export", "made.db", "--to", name])
        assert done.exit_code == 0, done.output
        trace = read_optuna(Path(name))
        assert trace.mode == "max"
        assert [len(curve.steps) for curve in trace.curves] == [6] * 5
    loaded = optuna.load_study(study_name="made", storage="sqlite:///out.sqlite")
    assert [t.params for t in loaded.trials] == [t.params for t in study.trials]
    assert [t.values for t in loaded.trials] == [t.values for t in study.trials]
    assert [t.intermediate_values for t in loaded.trials] == [t.intermediate_values for t in study.trials]
    assert loaded.trials[0].user_attrs["foresail_status"] == "completed"
