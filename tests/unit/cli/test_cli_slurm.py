"""The script for sbatch, run by bash among stand-ins for Slurm, Ray and Foresail that keep what they are asked."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from foresail.cli.main import main

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")

STAND_INS = {
    "scontrol": "printf 'one\\ntwo\\nthree\\n'",
    "srun": 'echo "srun $*" >> "$ASKED"',
    "ray": 'echo "ray $*" >> "$ASKED"',
    "foresail": 'echo "foresail $*" >> "$ASKED"; exit ${CODE:-0}',
}


def script_of(folder: Path) -> str:
    (folder / "train.py").write_text("")
    study = folder / "my study.toml"
    study.write_text(
        '[study]\ncommand = ["python", "train.py"]\n[goal]\nmaximize = "accuracy"\ntrials = 2\n'
        '[space]\nlr = {type = "float", low = 0.1, high = 1.0}\n'
    )
    options = ["slurm", str(study), "--nodes", "3", "--cpus", "8", "--time", "02:00:00"]
    answer = CliRunner().invoke(main, options, standalone_mode=False)
    assert answer.exception is None, answer.output
    return answer.output


@pytest.mark.parametrize("code", [0, 130])
def test_it_starts_ray_on_each_machine_and_the_study_on_it(tmp_path, code):
    script = script_of(tmp_path)
    assert "#SBATCH --nodes=3\n" in script
    assert "#SBATCH --time=02:00:00\n" in script
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, body in STAND_INS.items():
        (tools / name).write_text(f"#!/bin/bash\n{body}\n")
        (tools / name).chmod(0o755)
    asked = tmp_path / "asked"
    slurm = {"SLURM_JOB_NODELIST": "[one-three]", "SLURM_JOB_ID": "7", "ASKED": str(asked), "CODE": str(code)}
    environment = {**os.environ, **slurm, "PATH": f"{tools}:{os.environ['PATH']}"}
    ran = subprocess.run(
        ["bash", "-c", script], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == code, ran.stderr
    lines = asked.read_text().splitlines()
    heads = [line for line in lines if line.startswith("srun") and "--head" in line]
    workers = [line for line in lines if line.startswith("srun") and "--address=one:20007" in line]
    (study,) = [line for line in lines if line.startswith("foresail")]
    assert len(heads) == 1
    assert sorted("two" in line for line in workers) == [False, True]
    assert study == f"foresail run {tmp_path / 'my study.toml'} --on ray:one:20007 --quiet"
