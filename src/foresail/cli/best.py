"""`foresail best STORAGE`."""

from __future__ import annotations

from pathlib import Path

import click

from foresail.cli.exits import Exit
from foresail.cli.output import emit, emit_json, json_option, say
from foresail.cli.storage import storage_argument


@click.command("best")
@storage_argument
@json_option
def command(storage: Path, as_json: bool) -> Exit:
    """The best trial of the study in STORAGE: its step, value, configuration and checkpoint.

    The four belong together: the value was reported at that step, and the checkpoint is of that step. Exit code 4 if
    there is no result yet.
    """
    from foresail.api.json_form import best_data
    from foresail.api.recorded import folder_of, load_result
    from foresail.api.summary import best_lines

    result = load_result(storage)
    if as_json:
        emit_json(None if result.best is None else best_data(result.best))
    elif result.best is not None:
        emit("\n".join(best_lines(result.best, result.view, folder_of(storage))))
    if result.best is None:
        say(f"{result.name} has no result yet: no trial has reported a finite {result.view.spec.goal.metric!r}")
        return Exit.UNREACHED
    return Exit.DONE
