"""Traces from Foresail's own studies and from Optuna; throughput tables."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path

import pytest
from folders import write_folder
from made import played, random_trace

from foresail.core import events as ev
from foresail.engine.controller import Controller
from foresail.engine.verify import verify
from foresail.errors import CallerError
from foresail.replay.again import play_again
from foresail.replay.recorded import read_events
from foresail.replay.session import Contender, Setting, policy_of, replay
from foresail.replay.source import events_of, read
from foresail.replay.table import RECORDED, search_of
from foresail.replay.throughput import parse_speedup, read_speedup
from foresail.search.proposals import Proposals
from foresail.stores.export import write_jsonl
from foresail.stores.sqlite import SqliteStore

optuna = pytest.importorskip("optuna")
RECORDED_WITH = Setting(workers=3, budget_frac=0.5, start_s=0.5, restart_s=0.25, target=None)


def test_a_recorded_study_is_a_trace() -> None:
    source = random_trace(1, configs=12, diverging=0.2)
    trace = read_events(played(source, "random", setting=RECORDED_WITH), where="log")
    assert (trace.metric, trace.mode, trace.name) == ("accuracy", "max", "random-1/random/0")
    for config, curve in zip(trace.configs, trace.curves, strict=True):
        whole = source.record(config)
        assert list(curve.values) == pytest.approx(list(whole.values[: len(curve.values)]), nan_ok=True)
        assert list(curve.seconds) == pytest.approx(list(whole.seconds[: len(curve.values)]))
    assert trace.starts_s == pytest.approx([0.5] * len(trace.starts_s))


@pytest.mark.parametrize("policy", ["random", "asha", "hyperband", "median"])
def test_a_recorded_study_replays_to_itself(policy: str) -> None:
    """The same policy on the study's own curves, in its own order, with its own delays."""
    log = played(random_trace(2, configs=30), policy, setting=RECORDED_WITH)
    trace = read_events(log, where="log")
    budget_s = log[-1].at_s
    setting = Setting(workers=3, budget_frac=budget_s * 3 / trace.total_s, start_s=None, restart_s=None, target=None)
    again = played(trace, Contender(policy, policy, {}, RECORDED), setting=setting)

    def grants(events: list[ev.Event]) -> list[tuple[int, int]]:
        return [(e.trial, e.resume_step) for e in events if isinstance(e, ev.AttemptGranted)]

    same = min(len(grants(log)), len(grants(again)))
    assert same >= 0.8 * len(grants(log))
    assert grants(again)[: same - 3] == grants(log)[: same - 3]
    assert again[-1].at_s == pytest.approx(log[-1].at_s, rel=0.05)


@pytest.mark.parametrize("policy", ["random", "asha", "asha-stop", "hyperband"])
def test_a_study_played_again_takes_the_time_that_it_took(policy: str) -> None:
    """Delays of starts, restarts and ends are those of the study itself, attempt by attempt."""
    setting = Setting(
        workers=3, budget_frac=0.4, start_s=0.7, restart_s=0.4, leave_s=0.2, straggler_frac=0.3, target=None
    )
    found = play_again(played(random_trace(5, configs=30), policy, setting=setting), where="log")
    assert found.error_frac < 0.02
    assert found.same_grants_frac > 0.95


def test_stored_studies_are_read_from_sqlite_and_from_lines(tmp_path: Path) -> None:
    log = played(random_trace(3, configs=10), "asha")
    with SqliteStore.open(tmp_path / "study.db") as store:
        store.append(log, durable=True)
    write_jsonl(log, tmp_path / "study.jsonl")
    one, other = read(tmp_path / "study.db"), read(tmp_path / "study.jsonl")
    assert one.configs == other.configs
    assert one.targets == other.targets
    fresh = Controller(
        policy_of(one, Contender("asha", "asha")), Proposals(search_of(random_trace(3, configs=10), "random", 0))
    )
    assert verify(events_of(tmp_path / "study.db"), fresh) is None


def test_a_study_without_points_is_refused() -> None:
    log = [e for e in played(random_trace(4, configs=4), "random") if not isinstance(e, ev.PointReported)]
    with pytest.raises(CallerError, match="no trial has reported a point"):
        read_events(log, where="x.db")


def journal(path: Path) -> object:
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    return JournalStorage(JournalFileBackend(str(path)))


def sqlite(path: Path) -> object:
    return optuna.storages.RDBStorage(f"sqlite:///{path}")


def objective(trial: object) -> float:
    lr = trial.suggest_float("lr", 1e-4, 1.0, log=True)  # type: ignore[attr-defined]
    kind = trial.suggest_categorical("kind", ["a", "b"])  # type: ignore[attr-defined]
    depth = trial.suggest_int("depth", 1, 3) if kind == "a" else 0  # type: ignore[attr-defined]
    for step in range(1, 5):
        trial.report(lr * step + depth, step)  # type: ignore[attr-defined]
    return float(lr * 4 + depth)


@pytest.mark.parametrize("storage", [journal, sqlite])
@pytest.mark.filterwarnings("ignore")
def test_an_optuna_storage_is_a_trace(tmp_path: Path, storage: object) -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    file = tmp_path / "study.storage"
    study = optuna.create_study(
        study_name="mine", storage=storage(file), direction="minimize", sampler=optuna.samplers.RandomSampler(seed=0)
    )  # type: ignore[operator]
    study.optimize(objective, n_trials=20)
    trace = read(file)
    assert (trace.name, trace.mode, len(trace.configs)) == ("mine", "min", 20)
    for trial, config, curve in zip(study.trials, trace.configs, trace.curves, strict=True):
        assert config["lr"] == trial.params["lr"]
        assert config.get("depth") == trial.params.get("depth")
        assert config["depth_given"] is ("depth" in trial.params)
        assert list(curve.values) == list(trial.intermediate_values.values())
        assert curve.seconds[-1] == pytest.approx(trial.duration.total_seconds())
        assert trace.space.check(config) == config
    record = replay(trace, Contender("asha", "asha"), 0, Setting(workers=2, budget_frac=1.0, target="best"))
    assert record.targets["best"] is not None


@pytest.mark.filterwarnings("ignore")
def test_of_several_optuna_studies_one_must_be_named(tmp_path: Path) -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    file = tmp_path / "two.db"
    for name in ("first", "second"):
        optuna.create_study(study_name=name, storage=f"sqlite:///{file}").optimize(
            lambda t: t.suggest_float("x", 0, 1), 3
        )
    with pytest.raises(CallerError, match="holds 2 studies"):
        read(file)
    assert read(f"{file}::second").name == "second"
    with pytest.raises(CallerError, match="did you mean 'second'"):
        read(f"{file}::secnd")


def test_what_is_no_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CallerError, match="there is no such trace"):
        read(tmp_path / "nothing")
    (tmp_path / "text").write_text("hello\n")
    with pytest.raises(CallerError, match="is no trace"):
        read(tmp_path / "text")
    assert read(write_folder(tmp_path / "tiny")).name == "tiny"


def table(folder: Path, *lines: str, columns: tuple[str, ...] = ("workload", "devices", "step_seconds")) -> Path:
    folder.mkdir()
    about = {"name": "t", "columns": {name: {"unit": "", "meaning": ""} for name in columns}}
    (folder / "table.json").write_text(json.dumps(about))
    with gzip.open(folder / "table.csv.gz", "wt") as file:
        file.write("\n".join((",".join(columns), *lines)) + "\n")
    return folder


def test_a_speedup_is_read_from_a_throughput_table(tmp_path: Path) -> None:
    folder = table(tmp_path / "t", "lm,1,8.0", "lm,2,5.0", "lm,2,4.0", "lm,8,inf", "cnn,1,1.0", "lm,4,2.5")
    speedup = read_speedup(folder, {"workload": "lm"})
    assert [speedup(n) for n in (1, 2, 3, 4, 8)] == pytest.approx([1.0, 2.0, 2.6, 3.2, 3.2])


@pytest.mark.parametrize(
    ("lines", "where", "message"),
    [
        (("lm,1,8.0",), {"workload": "ml"}, "there are workload: lm"),
        (("lm,1,8.0",), {"job": "lm"}, "there is no column 'job'"),
        (("lm,1,fast",), {"workload": "lm"}, r"table\.csv\.gz:2: step_seconds is 'fast'"),
        (("lm,1,8.0", "lm,0,1.0"), {"workload": "lm"}, r"table\.csv\.gz:3: devices is '0'"),
        (("lm,1",), {"workload": "lm"}, r"table\.csv\.gz:2: 2 fields"),
        (("lm,1,",), {"workload": "lm"}, r"table\.csv\.gz:2: no speed"),
    ],
)
def test_a_broken_throughput_table_is_refused(
    tmp_path: Path, lines: tuple[str, ...], where: dict[str, str], message: str
) -> None:
    with pytest.raises(CallerError, match=message):
        read_speedup(table(tmp_path / "t", *lines), where)


def test_throughput_in_samples_is_read_too(tmp_path: Path) -> None:
    columns = ("workload", "devices", "samples_per_second")
    speedup = read_speedup(table(tmp_path / "t", "a,1,10", "a,2,15", columns=columns), {"workload": "a"})
    assert speedup(2) == 1.5
    assert not math.isnan(speedup(1))


def test_a_speedup_on_the_command_line_is_an_exponent_or_a_table(tmp_path: Path) -> None:
    assert parse_speedup("0.5")(4) == 2.0
    folder = table(tmp_path / "t", "lm,1,8.0", "lm,2,4.0", "cnn,1,1.0")
    assert parse_speedup(f"{folder},workload=lm")(2) == 2.0
    for wrong in ("1.5", "0.5,workload=lm", "nan"):
        with pytest.raises(CallerError, match="an exponent from 0 to 1"):
            parse_speedup(wrong)
