"""What others are told of a study, read back with their own libraries."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
import small_study

from foresail.api import frames
from foresail.api.recorded import load_events, load_view
from foresail.core import events as ev
from foresail.core.words import trial_of
from foresail.errors import CallerError, HostError
from foresail.trackers import follow, tables


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tracked") / "small.db"
    small_study.study(path).run(quiet=True)
    return path


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def curves(storage: Path) -> dict[int, dict[int, float]]:
    """Scores by trial and step, from the log."""
    found: dict[int, dict[int, float]] = {}
    for event in load_events(storage):
        if isinstance(event, ev.PointReported):
            found.setdefault(trial_of(event.attempt), {})[event.step] = event.metrics["score"]
    return found


def test_a_table_has_every_point(storage: Path) -> None:
    told = follow(storage, "csv:points.csv")
    assert told == len(load_events(storage))
    with open("points.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {(int(r["trial"]), int(r["step"])): float(r["score"]) for r in rows} == {
        (trial, step): value for trial, curve in curves(storage).items() for step, value in curve.items()
    }


def test_parquet_has_every_point_and_every_trial(storage: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    follow(storage, "parquet:points.parquet")
    points = parquet.read_table("points.parquet").to_pydict()
    assert len(points["score"]) == 12
    frames.write_table(frames.trial_rows(load_view(storage)), Path("trials.parquet"), parquet=True)
    trials = parquet.read_table("trials.parquet").to_pydict()
    assert trials["trial"] == [0, 1, 2, 3]
    assert {type(kind) for kind in trials["config.kind"]} == {str}, "options of several types are text"


def test_pandas_frames(storage: Path) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")
    result = small_study.study(storage).result()
    points, trials = result.points_frame(), result.trials_frame()
    assert points.groupby("trial").score.max().to_dict() == {t: max(c.values()) for t, c in curves(storage).items()}
    assert list(trials.status) == ["completed"] * 4
    assert set(trials.columns) >= {"best", "config.x", "config.kind", "why"}


@pytest.mark.filterwarnings("ignore")
def test_tensorboard(storage: Path) -> None:
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    follow(storage, "tensorboard:board")
    assert follow(storage, "tensorboard:board") == 0, "it is not told twice"
    for trial, curve in curves(storage).items():
        board = EventAccumulator(f"board/small/trial-{trial}")
        board.Reload()
        assert {e.step: e.value for e in board.Scalars("score")} == pytest.approx(curve, rel=1e-6)
        assert {"_hparams_/experiment", "_hparams_/session_start_info"} <= set(board.summary_metadata)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_mlflow(storage: Path, tmp_path: Path) -> None:
    pytest.importorskip("mlflow", reason="MLflow is not installed")
    from mlflow import MlflowClient

    uri = f"sqlite:///{tmp_path / 'mlflow.sqlite'}"
    follow(storage, f"mlflow:{uri}")
    client = MlflowClient(tracking_uri=uri)
    runs = client.search_runs([client.get_experiment_by_name("small").experiment_id])
    assert len(runs) == 4
    for run in runs:
        curve = curves(storage)[int(run.data.tags["foresail.trial"])]
        assert {m.step: m.value for m in client.get_metric_history(run.info.run_id, "score")} == curve
        assert set(run.data.params) == {"x", "kind"}
        assert run.info.status == "FINISHED"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_wandb_offline(storage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb", reason="Weights & Biases is not installed")
    monkeypatch.setenv("WANDB_MODE", "offline")
    follow(storage, "wandb")
    runs = [path.name.rpartition("-")[2] for path in (tmp_path / "wandb").glob("offline-run-*-small-*")]
    assert sorted(runs) == ["0", "1", "2", "3"]


def test_a_tracker_that_fails_is_told_once_and_the_study_goes_on(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    storage = tmp_path / "small.db"
    result = small_study.study(storage, track=["csv:nowhere/points.csv", "csv:points.csv"]).run(quiet=True)
    assert result.end == "trials"
    assert (tmp_path / "points.csv").exists()
    told = capfd.readouterr().err
    assert told.count("tracking to csv has ended") == 1


def test_whatever_a_library_raises_is_one_sentence(storage: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def take(self: object, view: object, events: object) -> None:
        raise ZeroDivisionError("of theirs")

    monkeypatch.setattr(tables.Table, "take", take)
    with pytest.raises(HostError, match="tracking to csv has ended: ZeroDivisionError: of theirs"):
        follow(storage, "csv")


def test_a_wrong_name_is_told_before_anything_starts(storage: Path) -> None:
    with pytest.raises(CallerError, match="did you mean 'tensorboard'"):
        small_study.study(storage, track=["tensorbord"])
    with pytest.raises(CallerError, match="no tracker"):
        follow(storage, "")
    with pytest.raises(CallerError, match="no study"):
        follow(Path("none.db"), "csv", wait=True, sleep=lambda s: None)
