"""`foresail status STORAGE`."""

from __future__ import annotations

from pathlib import Path

import click

from foresail.cli.exits import Exit
from foresail.cli.output import emit, emit_json, json_option, width
from foresail.cli.storage import storage_argument


@click.command("status")
@storage_argument
@click.option("--all", "everything", is_flag=True, help="All trials; without it, the best 20.")
@json_option
def command(storage: Path, everything: bool, as_json: bool) -> Exit:
    """Where the study in STORAGE stands; best trials first. A running study is not disturbed."""
    from foresail.api.json_form import result_data
    from foresail.api.recorded import driver_of, load_paced
    from foresail.api.status import status

    driver = driver_of(storage)  # asked before the look: who has left by then, has recorded the end
    result, pace = load_paced(storage)
    if as_json:
        emit_json({**result_data(result), "speed": pace, "driver": driver})
    else:
        emit(status(result, driver, pace=pace, most=None if everything else 20, width=width()))
    return Exit.DONE
