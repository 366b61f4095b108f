"""Data on stdout, talk on stderr; JSON where it is asked for; an error as one block."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from foresail.cli.exits import Exit
from foresail.errors import CallerError, ForesailError, HostError, InternalError, TrainingError

json_option = click.option("--json", "as_json", is_flag=True, help="JSON on stdout in place of text.")


def emit_json(data: object) -> None:
    """Indented JSON; numbers that are not finite become null."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(data, enc_hook=str), indent=2).decode())


def emit(text: str) -> None:
    click.echo(text)


def say(text: str) -> None:
    """Talk: never on stdout."""
    click.echo(text, err=True)


def width() -> int:
    """Columns of a table: those of the terminal; 120 where there is none."""
    if not sys.stdout.isatty():
        return int(os.environ.get("COLUMNS") or 120)
    import shutil

    return shutil.get_terminal_size().columns


def exit_code_of(error: ForesailError) -> Exit:
    match error:
        case CallerError() | ImportError():
            return Exit.CALLER
        case HostError():
            return Exit.HOST
        case TrainingError():
            return Exit.FAILING
        case _:
            return Exit.BUG


def block(error: ForesailError) -> str:
    """What happened, what is allowed, what to do: a line each.

    >>> print(block(CallerError("workers = 0", allowed="a whole number from 1", do="raise it")))
    error:   workers = 0
    allowed: a whole number from 1
    do:      raise it
    """
    parts = (("error:", error.what), ("allowed:", error.allowed), ("do:", error.do))
    lines = [f"{title:<9}{_indented(text)}" for title, text in parts if text]
    if isinstance(error, InternalError):
        lines.append("this is a bug of Foresail: please report it together with this text")
    return "\n".join(lines)


def _indented(text: str) -> str:
    return text.replace("\n", "\n" + " " * 9)


def show_error(error: ForesailError, *, as_json: bool) -> None:
    if as_json:
        data: dict[str, Any] = {"what": error.what, "allowed": error.allowed, "do": error.do}
        code = exit_code_of(error)
        import json

        say(json.dumps({"error": data, "fault": code.name.lower(), "exit": int(code)}))
    else:
        say(block(error))
