"""`foresail run study.toml`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from foresail.cli.ending import carry_out
from foresail.cli.exits import Exit
from foresail.cli.output import json_option, say

_GOAL = ("target", "within", "trials")


@click.command("run")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--storage", help="File of the study's log, in place of study.storage.")
@click.option("--policy", help="pop, asha, asha-stop, median or fifo.")
@click.option("--search", help="random, sobol, grid, tpe, gp or cmaes.")
@click.option("--workers", type=int, help="Trials at a time.")
@click.option("--cores-per-trial", type=int, help="Cores, and so threads, of each.")
@click.option("--seed", type=int, help="Of everything that is drawn.")
@click.option("--max-steps", type=int, help="Steps of a full training.")
@click.option("--target", type=float, help="Value to reach, in place of goal.target.")
@click.option("--within", help="Deadline such as '20 min', in place of goal.within.")
@click.option("--trials", type=int, help="Budget in trials, in place of goal.trials.")
@click.option("--on", default="", help="ray, ray://HOST:PORT or ray:HOST:PORT: on the machines of a Ray cluster.")
@click.option("--track", multiple=True, metavar="KIND[:PLACE]", help="Tell tensorboard, mlflow, wandb, csv or parquet.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")
@json_option
def command(file: Path, on: str, track: tuple[str, ...], quiet: bool, as_json: bool, **given: Any) -> Exit:
    """Start the study of FILE, or continue it if its storage holds it already.

    \b
    FILE is TOML:
      [study]
      command = ["python", "train.py"]   # or function = "train.py:train"
      [goal]
      maximize = "accuracy"
      target = 0.985
      within = "20 min"
      [space]
      lr = {type = "float", low = 1e-4, high = 1.0, log = true}

    Ctrl-C: no new starts, what runs saves its state, a summary, exit code 130. Ctrl-C again: at once.
    """
    from foresail.api.drive import drive
    from foresail.api.study_file import load_study
    from foresail.api.tracking import tracked

    over = {name: value for name, value in given.items() if value is not None}
    goal = {name: over.pop(name) for name in _GOAL if name in over}
    study = load_study(file, study=over, goal=goal)
    if not study.spec.goal.is_bounded:
        say("note:    the goal has a target and no budget: the study runs until the target is reached or Ctrl-C")
    with tracked(study.storage, [*study.track, *track]):
        return carry_out(
            lambda shown: drive(study.storage, spec=study.spec, watch=shown, trouble=shown.trouble, on=on),
            storage=study.storage,
            quiet=quiet,
            as_json=as_json,
        )
