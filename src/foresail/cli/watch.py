"""`foresail watch STORAGE`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from foresail.cli.exits import Exit
from foresail.cli.output import emit, json_option, say, width
from foresail.cli.storage import storage_argument

if TYPE_CHECKING:
    from foresail.api.display import Display


@click.command("watch")
@storage_argument
@json_option
def command(storage: Path, as_json: bool) -> Exit:
    """Follow the study in STORAGE until it ends. Ctrl-C stops the watching, not the study.

    --json gives each new event as one line of JSON. Exit code 0 when the study has ended, 4 when nobody drives it.
    """
    from foresail.api.display import showing
    from foresail.api.json_form import JsonLines
    from foresail.api.summary import summary
    from foresail.api.watching import follow
    from foresail.api.wording import program, shell

    shown: Display
    try:
        if as_json:
            shown = JsonLines(emit)
            result = follow(storage, shown)
        else:
            with showing() as shown:
                result = follow(storage, shown)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    if result.view.ended is None:
        say(f"nobody is at work on this study, and it has not ended\n  {program()} resume {shell(storage)}")
        return Exit.UNREACHED
    if not as_json:
        emit(summary(result, width=width()))
    return Exit.DONE
