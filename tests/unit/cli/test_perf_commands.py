"""`plan` and `profile` as commands: data on standard output, talk on standard error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from foresail.cli.plan import plan
from foresail.cli.profile import profile
from foresail.errors import CallerError
from foresail.perf.keeping import load_measurements

PLAN = ["--layers", "24", "--hidden", "2048", "--heads", "16", "--seq-len", "1024", "--devices", "8"]


def test_plan_prints_ranked_layouts_as_json() -> None:
    ran = CliRunner().invoke(plan, [*PLAN, "--device", "A100", "--global-batch", "64", "--top", "5", "--json"])
    assert ran.exit_code == 0
    found = json.loads(ran.stdout)
    assert len(found) == 5
    assert found[0]["step_s"] <= found[-1]["step_s"]
    assert "layouts" in ran.stderr


def test_plan_prints_a_table() -> None:
    ran = CliRunner().invoke(plan, [*PLAN, "--device", "A100", "--global-batch", "64"])
    assert ran.exit_code == 0
    assert "layouts, fastest first" in ran.stdout


def test_plan_names_the_nearest_device() -> None:
    with pytest.raises(CallerError, match="did you mean 'A100'"):
        CliRunner().invoke(plan, [*PLAN, "--device", "A1000", "--global-batch", "64"], catch_exceptions=False)


def test_profile_measures_a_script(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text("def make(system):\n    return lambda: sum(range(2000 * system.micro_batch))\n")
    asked = ["--global-batch", "4", "--threads", "1", "--replicas", "1", "--probes", "2", "--seconds", "0.01"]
    history = tmp_path / "kept" / "steps.json"
    asked += ["--history", str(history)]
    ran = CliRunner().invoke(profile, [f"{script}:make", *asked, "--json"])
    assert ran.exit_code == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["probes"] <= 2
    assert {line["system"]["micro_batch"] for line in found["lines"]} == {1, 2, 4}
    shown = CliRunner().invoke(profile, [f"{script}:make", *asked])
    assert shown.exit_code == 0
    assert "measured" in shown.stdout
    kept, seconds = load_measurements(history.read_bytes())
    assert len(kept) == len(seconds) >= 2, "both profiles are kept"
    assert len(set(kept.job_id.tolist())) == 1
    before = history.read_bytes()
    history.write_text("not what it was")
    assert CliRunner().invoke(profile, [f"{script}:make", *asked, "--forget"]).exit_code == 0
    assert history.read_text() == "not what it was"
    assert CliRunner().invoke(profile, [f"{script}:make", *asked]).exit_code == 0
    assert 0 < len(history.read_bytes()) < len(before), "begun anew"


def test_plan_takes_a_module(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    script = tmp_path / "net.py"
    script.write_text(
        "import torch\n"
        "def build():\n"
        "    with torch.device('meta'):\n"
        "        layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)\n"
        "        model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)\n"
        "        return model, torch.empty(2, 128, 256)\n"
        "def alone():\n"
        "    return build()[0]\n"
    )
    asked = ["--device", "A100", "--devices", "4", "--global-batch", "16", "--json"]
    ran = CliRunner().invoke(plan, ["--module", f"{script}:build", *asked])
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.stdout)
    assert found[0]["step_s"] <= found[-1]["step_s"]
    assert "3.16 million parameters" in ran.stderr
    for wrong, said in (
        (["--module", f"{script}:alone"], "a model and one batch"),
        (["--module", "no_such_package.net:build"], "no_such_package"),
        (["--module", f"{script}:build", "--layers", "4"], "both --module and --layers"),
        (["--layers", "4"], "--hidden"),
    ):
        with pytest.raises(CallerError, match=said):
            CliRunner().invoke(plan, [*wrong, *asked], catch_exceptions=False)
