"""Foresail's policies as a scheduler of real Ray Tune."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from foresail.core import events as ev
from foresail.core.view import fold
from foresail.core.words import Outcome, Status
from foresail.errors import CallerError
from foresail.stores.sqlite import SqliteStore

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install foresail[ray]")
ray_tune = pytest.importorskip(
    "ray.tune", reason="Ray Tune is not installed: pip install 'ray[tune]'", exc_type=ImportError
)

pytestmark = [
    pytest.mark.ray,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*:UserWarning:ray"),
]
EPOCHS = 10


def train(config: dict[str, Any]) -> None:
    """A loss that falls by `lr` each epoch; it says from which step each of its lives began."""
    loss, first = 1.0, 1
    if checkpoint := ray_tune.get_checkpoint():
        with checkpoint.as_directory() as folder:
            state = json.loads(Path(folder, "state.json").read_text())
        loss, first = state["loss"], state["epoch"] + 1
    for epoch in range(first, EPOCHS + 1):
        loss *= 1.0 - config["model"]["lr"]
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "state.json").write_text(json.dumps({"loss": loss, "epoch": epoch}))
            metrics = {"loss": float("nan") if config["kind"] is None else loss, "epoch": epoch, "first": first}
            ray_tune.report(metrics, checkpoint=ray_tune.Checkpoint.from_directory(folder))


@pytest.fixture(scope="module", autouse=True)
def cluster(local_ray: None) -> None:
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])


def events_of(path: Path) -> list[ev.Event]:
    with SqliteStore.open(path, write=False) as store:
        return [event for _, event in store.read()]


@pytest.mark.parametrize("policy", ["pop", "hybrid"])
def test_ray_tune_trains_what_the_policy_wants(tmp_path: Path, policy: str) -> None:
    from foresail.tune.scheduler import Scheduler

    space = {"model": {"lr": ray_tune.loguniform(0.001, 0.2)}, "kind": ray_tune.grid_search(["plain", "plain ", None])}
    scheduler = Scheduler(policy, max_t=EPOCHS, param_space=space, log=tmp_path / "ray.db")
    tuner = ray_tune.Tuner(
        ray_tune.with_resources(train, {"cpu": 2}),  # two at a time
        param_space=space,
        tune_config=ray_tune.TuneConfig(
            metric="loss", mode="min", num_samples=2, scheduler=scheduler, reuse_actors=True
        ),
        run_config=ray_tune.RunConfig(name="t", storage_path=str(tmp_path), verbose=0),
    )
    results = tuner.fit()
    assert len(results) == 6
    assert not results.errors
    log = events_of(tmp_path / "ray.db")
    view = fold(log)
    assert [trial.config["kind"] for trial in view.trials] == ["plain", "plain ", "None"] * 2
    assert all(0.001 <= trial.config["model.lr"] <= 0.2 for trial in view.trials)
    assert view.counts[Status.DIVERGED] == 2
    assert not view.attempts
    assert all(trial.ended for trial in view.trials)
    assert any(trial.last_step == EPOCHS for trial in view.trials)
    assert all(trial.device_s > 0 for trial in view.trials)
    _nothing_was_trained_twice(log)
    told = {result.config["model"]["lr"]: result.metrics for result in results}
    for trial in view.trials:
        result = told[trial.config["model.lr"]]
        assert result["training_iteration"] == max(trial.last_step, trial.reached)
        assert result["epoch"] == result["training_iteration"], "a life begins where the one before it was saved"
    if policy == "pop":
        ends = [event.outcome for event in log if isinstance(event, ev.AttemptEnded)]
        assert Outcome.YIELDED in ends


def _nothing_was_trained_twice(log: list[ev.Event]) -> None:
    steps: dict[str, list[int]] = {}
    for event in log:
        if isinstance(event, ev.PointReported):
            steps.setdefault(event.attempt.split("-")[0], []).append(event.step)
    assert all(found == list(range(1, len(found) + 1)) for found in steps.values())


def test_a_target_ends_the_study(tmp_path: Path) -> None:
    from foresail.tune.scheduler import Scheduler

    space = {"model": {"lr": ray_tune.grid_search([0.2, 0.1, 0.01])}, "kind": "plain"}
    tuner = ray_tune.Tuner(
        train,
        param_space=space,
        tune_config=ray_tune.TuneConfig(
            metric="loss", mode="min", scheduler=Scheduler("fifo", target=0.7, slots=1), reuse_actors=True
        ),
        run_config=ray_tune.RunConfig(name="t", storage_path=str(tmp_path), verbose=0),
    )
    steps = sorted(result.metrics.get("training_iteration", 0) for result in tuner.fit())
    assert steps == [0, 0, 2]


def test_what_cannot_be_is_named() -> None:
    from foresail.tune.scheduler import Scheduler

    with pytest.raises(CallerError, match="no policy is called 'popp'"):
        Scheduler("popp")
    with pytest.raises(CallerError, match="needs a metric"):
        Scheduler("pop").set_search_properties(None, None)
