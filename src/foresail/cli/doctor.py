"""`foresail doctor [STORAGE]`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from foresail.cli.exits import Exit
from foresail.cli.output import emit, emit_json, json_option
from foresail.cli.storage import find_storage


@click.command("doctor")
@click.argument("storage", required=False)
@json_option
def command(storage: str | None, as_json: bool) -> Exit:
    """Whether this machine, this folder and, if it is given, a STORAGE are in order. Exit code 3 if a check fails."""
    from foresail.api.doctor import State, examine

    path = find_storage(storage) if storage else None
    findings = examine(path.parent if path else Path(), path)
    if as_json:
        emit_json([asdict(finding) for finding in findings])
    else:
        widest = max(len(finding.check) for finding in findings)
        for finding in findings:
            emit(f"{finding.state:<4}  {finding.check:<{widest}}  {finding.found}")
            if finding.do:
                emit(f"{'':<4}  {'':<{widest}}  -> {finding.do}")
    return Exit.HOST if any(finding.state is State.FAIL for finding in findings) else Exit.DONE
