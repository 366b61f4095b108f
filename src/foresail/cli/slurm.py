"""`foresail slurm study.toml`: a script for `sbatch` that runs the study on the machines of one allocation."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from foresail.cli.exits import Exit
from foresail.cli.output import emit, emit_json, json_option

SCRIPT = r"""#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --nodes={nodes}
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task={cpus}
#SBATCH --time={time}
#SBATCH --signal=B:TERM@{notice_s}
set -euo pipefail

machines=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
port=$((20000 + SLURM_JOB_ID % 20000))
address="${{machines[0]}}:$port"
export RAY_USAGE_STATS_ENABLED=0

on() {{ srun --overlap --nodes=1 --ntasks=1 --cpus-per-task={cpus} --nodelist="$1" "${{@:2}}"; }}
on "${{machines[0]}}" ray start --head --node-ip-address="${{machines[0]}}" --port="$port" \
    --num-cpus={cpus} --include-dashboard=false --block &
for try in $(seq 60); do
    ray status --address="$address" >/dev/null 2>&1 && break
    sleep {pause_s}
done
for machine in "${{machines[@]:1}}"; do
    on "$machine" ray start --address="$address" --num-cpus={cpus} --block &
done

foresail run {file} --on "ray:$address" --quiet &
driver=$!
trap 'kill -INT "$driver" 2>/dev/null || true' TERM  # time is nearly up: save everything; submit again to go on
code=0
wait "$driver" || code=$?
if kill -0 "$driver" 2>/dev/null; then code=0; wait "$driver" || code=$?; fi
trap - TERM
kill $(jobs -p) 2>/dev/null || true
exit "$code"
"""


@click.command("slurm")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--nodes", type=click.IntRange(1), default=1, show_default=True, help="Machines.")
@click.option("--cpus", type=click.IntRange(1), default=1, show_default=True, help="CPUs of each.")
@click.option("--time", default="01:00:00", show_default=True, help="Time limit, as sbatch takes it.")
@click.option(
    "--notice", type=click.IntRange(1), default=120, show_default=True, help="Seconds before the limit to save in."
)
@json_option
def command(file: Path, nodes: int, cpus: int, time: str, notice: int, as_json: bool) -> Exit:
    """Print a script for sbatch that runs the study of FILE on Ray, on the machines of one allocation.

    The folder of FILE must be one that all machines see. Submit the script again to go on after its time limit.
    """
    from foresail.api.study import file_name
    from foresail.api.study_file import load_study

    name = file_name(load_study(file).spec.name)
    script = SCRIPT.format(
        name=f"foresail-{name}",
        nodes=nodes,
        cpus=cpus,
        time=shlex.quote(time),
        notice_s=notice,
        pause_s=1,
        file=shlex.quote(str(file.resolve())),
    ).rstrip()
    if as_json:
        emit_json({"script": script})
    else:
        emit(script)
    return Exit.DONE
