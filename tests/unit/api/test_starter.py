"""`foresail init`: a study file from a script's text."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from foresail.api.script_options import read_script
from foresail.api.starter import starter
from foresail.api.study_file import load_study
from foresail.cli.main import main
from foresail.errors import CallerError
from foresail.space import Choice, Float, Int, Space

ARGPARSE = """
import argparse
import foresail
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--layers", default=2, type=int)
parser.add_argument("--hidden", default=128, type=int)
parser.add_argument("--dropout", default=0.25, type=float)
parser.add_argument("--optimizer", choices=["sgd", "adam w"], default="sgd")
parser.add_argument("-w", type=float, default=0.01)
parser.add_argument("--amp", action="store_true")
parser.add_argument("--fast", action=argparse.BooleanOptionalAction)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--data", default="/data")
parser.add_argument("--tag-line")
args = parser.parse_args()
for epoch in range(1, args.epochs + 1):
    foresail.report(step=epoch, train_loss=1.0 / epoch, val_accuracy=1.0 - args.dropout)
"""
CLICK = """
import click
@click.command()
@click.option("--lr", default=1e-3, type=click.FloatRange(1e-5, 1.0))
@click.option("--act", type=click.Choice(["relu", "gelu"]), default="relu")
@click.option("--depth", default=3)
@click.option("--fast/--slow", default=True)
def main(lr, act, depth, fast):
    perplexity = 1.0
"""
HYDRA = """
import hydra
@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(cfg):
    accuracy = 1.0
"""
DATACLASS = """
from dataclasses import dataclass, field
from typing import Literal
from transformers import HfArgumentParser
@dataclass
class Arguments:
    learning_rate: float = field(default=5e-5, metadata={"help": "peak"})
    weight_decay: float = 0.0
    schedule: Literal["linear", "cosine"] = "linear"
    fp16: bool = False
    num_train_epochs: int = 3
"""


def made(tmp_path: Path, text: str) -> tuple[str, Space]:
    script, file = tmp_path / "train.py", tmp_path / "study.toml"
    script.write_text(text)
    file.write_text(starter(read_script(script), file).text)
    study = load_study(file)
    return file.read_text(), study.space


def test_argparse(tmp_path: Path) -> None:
    text, space = made(tmp_path, ARGPARSE)
    assert list(space.knobs) == ["lr", "batch-size", "layers", "hidden", "dropout", "optimizer", "w"]
    assert space.knobs["lr"] == Float(0.003, 1.0, log=True)
    assert space.knobs["batch-size"] == Choice([32, 64, 128, 256], touches="both")
    assert space.knobs["layers"] == Int(1, 4)
    assert space.knobs["hidden"] == Int(32, 512, log=True)
    assert space.knobs["optimizer"] == Choice(["sgd", "adam w"])
    study = load_study(tmp_path / "study.toml")
    assert study.spec.entry.command == ("python", "train.py", "-w", "{w}")
    assert (study.spec.goal.metric, study.spec.goal.mode, study.spec.max_steps) == ("val_accuracy", "max", 3)
    assert "amp: a switch" in text
    assert "fast: a switch" in text
    assert "seed: not a hyperparameter" in text
    assert "tag-line: not a hyperparameter" in text


def test_click(tmp_path: Path) -> None:
    _, space = made(tmp_path, CLICK)
    assert dict(space.knobs) == {
        "lr": Float(1e-5, 1.0, log=True),
        "act": Choice(["relu", "gelu"]),
        "depth": Int(1, 6),
    }


def test_hydra(tmp_path: Path) -> None:
    pytest.importorskip("yaml", reason="PyYAML is not installed")
    (tmp_path / "conf").mkdir()
    conf = "optimizer:\n  lr: 1e-3\n  momentum: 0.9\nmodel:\n  hidden: 64\nname: ${now:}\nseed: 1\nepochs: 10\n"
    (tmp_path / "conf" / "config.yaml").write_text(conf)
    _, space = made(tmp_path, HYDRA)
    assert list(space.knobs) == ["optimizer_lr", "optimizer_momentum", "model_hidden"]
    command = load_study(tmp_path / "study.toml").spec.entry.command
    assert command[2:] == (
        "optimizer.lr={optimizer_lr}",
        "optimizer.momentum={optimizer_momentum}",
        "model.hidden={model_hidden}",
    )


def test_dataclass(tmp_path: Path) -> None:
    _, space = made(tmp_path, DATACLASS)
    assert list(space.knobs) == ["learning_rate", "weight_decay", "schedule"]
    assert space.knobs["schedule"] == Choice(["linear", "cosine"])


@pytest.mark.parametrize(
    ("text", "said"),
    [("print(1)", "has no options"), ("def (", "is no Python"), (HYDRA, "there is no file")],
)
def test_what_cannot_be_read_is_told(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "train.py").write_text(text)
    with pytest.raises(CallerError, match=said):
        read_script(tmp_path / "train.py")


def test_the_script_is_never_run(tmp_path: Path) -> None:
    made(tmp_path, ARGPARSE + "\nraise SystemExit(open('touched', 'w').write(''))\n")
    assert not (tmp_path / "touched").exists()


def test_from_a_script_to_its_best_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    Path("train.py").write_text(ARGPARSE)
    assert CliRunner().invoke(main, ["init", "train.py"]).exit_code == 0
    assert CliRunner().invoke(main, ["init", "train.py"]).exit_code == 2, "it is there already"
    told = CliRunner().invoke(main, ["init", "train.py", "--out", "-", "--json"])
    assert json.loads(told.stdout)["reports"] is True
    ran = CliRunner().invoke(main, ["run", "study.toml", "--trials", "2", "--json", "--quiet"])
    assert ran.exit_code == 0, ran.output
    result = json.loads(ran.stdout)
    assert result["best"]["value"] == 1.0 - min(t["config"]["dropout"] for t in result["trials"])


def test_what_the_script_does_not_run_without_is_told(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import argparse\n"
        "parser = argparse.ArgumentParser()\n"
        "parser.add_argument('corpus')\n"
        "parser.add_argument('extra', nargs='*')\n"
        "parser.add_argument('--out-dir', required=True)\n"
        "parser.add_argument('--lr', type=float, default=0.1, required=True)\n"
    )
    made = starter(read_script(script), tmp_path / "study.toml")
    assert made.needed == ("corpus", "out-dir")
    assert "# corpus: train.py does not run without it: add its value to the command" in made.text
    assert '# out-dir: train.py does not run without it: add "--out-dir", and its value, to the command' in made.text
    script.write_text(
        "import click\n"
        "@click.command()\n"
        "@click.option('--lr', default=0.1)\n"
        "@click.argument('name')\n"
        "@click.argument('other', default='x')\n"
        "def main(lr, name, other): ...\n"
    )
    assert starter(read_script(script), tmp_path / "study.toml").needed == ("name",)
