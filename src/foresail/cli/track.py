"""`foresail track STORAGE`."""

from __future__ import annotations

from pathlib import Path

import click

from foresail.cli.exits import Exit
from foresail.cli.output import emit_json, json_option, say
from foresail.cli.storage import find_storage


@click.command("track")
@click.argument("storage", required=False)
@click.option("--to", required=True, metavar="KIND[:PLACE]", help="tensorboard, mlflow, wandb, csv or parquet.")
@click.option("--wait", is_flag=True, help="The study may not have begun yet.")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing unless it fails.")
@json_option
def command(storage: str | None, to: str, wait: bool, quiet: bool, as_json: bool) -> Exit:
    """Tell others of the study in STORAGE: all of it, then what comes, until it ends.

    \b
      tensorboard[:runs]     a run for each trial, with its hyperparameters
      mlflow[:URI]           an experiment, a run for each trial
      wandb[:PROJECT]        a run for each trial; WANDB_MODE=offline writes to ./wandb
      csv[:FILE], parquet[:FILE]   the points as one table

    It reads the log and disturbs nobody. `foresail run --track KIND[:PLACE]` starts it beside the study.
    """
    from foresail.trackers import follow

    path = Path(storage) if wait and storage else find_storage(storage)
    told = follow(path, to, wait=wait)
    if as_json:
        emit_json({"storage": str(path), "to": to, "events": told})
    elif not quiet:
        say(f"told {to} of {told} events")
    return Exit.DONE
