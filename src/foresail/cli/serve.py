"""`foresail serve [STORAGE]`."""

from __future__ import annotations

from pathlib import Path

import click

from foresail.cli.exits import Exit
from foresail.cli.output import emit, emit_json, json_option, say
from foresail.cli.storage import storage_argument
from foresail.errors import MissingExtraError


@click.command("serve")
@storage_argument
@click.option("--port", type=click.IntRange(1, 65535), help="Where; 8321 or, where that is taken, any other.")
@click.option("--open", "opened", is_flag=True, help="Open it in the browser.")
@json_option
def command(storage: Path, port: int | None, opened: bool, as_json: bool) -> Exit:
    """Look at the study in STORAGE in the browser, while it runs or afterwards. Ctrl-C ends the page, not the study.

    The page is for this machine alone, and for whoever has the address that is printed, for it holds a token. Nothing
    can be changed from it. From another machine: ssh -L 8321:localhost:8321 HOST, then the same address.
    """
    try:
        from foresail.page.server import serve
    except ModuleNotFoundError as error:
        raise MissingExtraError(str(error.name), "page") from None

    def ready(address: str) -> None:
        if as_json:
            emit_json({"address": address})
        else:
            emit(address)
            say("Ctrl-C ends the page, not the study")
        if opened:
            import webbrowser

            webbrowser.open(address)

    try:
        serve(storage, port=port, ready=ready)
    except KeyboardInterrupt:
        pass
    return Exit.DONE
