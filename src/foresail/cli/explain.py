"""`foresail explain TRIAL [STORAGE]`."""

from __future__ import annotations

from pathlib import Path

import click

from foresail.cli.exits import Exit
from foresail.cli.output import emit, emit_json, json_option, width
from foresail.cli.storage import storage_argument
from foresail.errors import CallerError


def _trial(ctx: click.Context, param: click.Parameter, value: str) -> int:
    if not value.isdigit():
        raise CallerError(
            f"trial {value!r}",
            allowed="the number of a trial, from 0",
            do=f"write foresail explain 12 {value}" if Path(value).exists() else "foresail status lists them",
        )
    return int(value)


@click.command("explain")
@click.argument("trial", callback=_trial)
@storage_argument
@json_option
def command(trial: int, storage: Path, as_json: bool) -> Exit:
    """The story of TRIAL in the study of STORAGE.

    Its configuration, every decision with the numbers that it rested on, its attempts, points and checkpoints, how it
    ended, and where its output and its traceback are.
    """
    from foresail.api.recorded import folder_of, load_events
    from foresail.api.story import story_of, told

    story = story_of(load_events(storage), trial, storage, folder_of(storage))
    if as_json:
        emit_json(story)
    else:
        emit(told(story, width=width()))
    return Exit.DONE
