"""`foresail resume STORAGE`."""

from __future__ import annotations

from pathlib import Path

import click

from foresail.cli.ending import carry_out
from foresail.cli.exits import Exit
from foresail.cli.output import json_option
from foresail.cli.storage import storage_argument


@click.command("resume")
@storage_argument
@click.option("--on", default="", help="ray, ray://HOST:PORT or ray:HOST:PORT: on the machines of a Ray cluster.")
@click.option("--track", multiple=True, metavar="KIND[:PLACE]", help="Tell tensorboard, mlflow, wandb, csv or parquet.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")
@json_option
def command(storage: Path, on: str, track: tuple[str, ...], quiet: bool, as_json: bool) -> Exit:
    """Continue the study in STORAGE, whatever stopped it: Ctrl-C, kill -9, a reboot.

    What is finished is not done again; a trial goes on from its last checkpoint. A study that has ended is told again
    and not continued.
    """
    from foresail.api.drive import drive
    from foresail.api.tracking import tracked

    with tracked(storage, track):
        return carry_out(
            lambda shown: drive(storage, watch=shown, trouble=shown.trouble, on=on),
            storage=storage,
            quiet=quiet,
            as_json=as_json,
        )
