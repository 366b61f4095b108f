"""`foresail demo`: the study itself is in `foresail.demo`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click

from foresail.cli.ending import carry_out
from foresail.cli.exits import Exit
from foresail.cli.output import json_option


@click.command("demo")
@click.option("--seed", type=int, default=0, show_default=True, help="Of everything that is drawn.")
@click.option(
    "--storage", type=click.Path(path_type=Path), default="demo.db", show_default=True, help="File of its log."
)
@click.option("--policy", default="hybrid", show_default=True, help="hybrid, pop, asha, asha-stop, median or fifo.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")
@json_option
def command(seed: int, storage: Path, policy: str, quiet: bool, as_json: bool) -> Exit:
    """Tune a convolutional network on handwritten digits, on this machine, for real."""
    made = import_module("foresail.demo").study(seed=seed, storage=storage, policy=policy)
    return carry_out(lambda shown: made.run(watch=shown), storage=made.storage, quiet=quiet, as_json=as_json)
