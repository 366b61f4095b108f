"""What `run`, `resume` and `demo` do alike: show, sum up, and leave with the code that tells how it ended."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from foresail.cli.exits import Exit
from foresail.cli.output import emit, emit_json, say, width

if TYPE_CHECKING:
    from foresail.api.display import Display
    from foresail.api.result import Result


def carry_out(run: Callable[[Display], Result], *, storage: Path, quiet: bool, as_json: bool) -> Exit:
    """Run with a display, then tell the result."""
    from foresail.api.display import showing
    from foresail.api.json_form import result_data
    from foresail.api.summary import summary

    try:
        with showing(quiet=quiet) as shown:
            result = run(shown)
    except KeyboardInterrupt:
        from foresail.api.wording import program, shell

        say(f"stopped at once; nothing that was recorded is lost\n  {program()} resume {shell(storage)}")
        return Exit.INTERRUPTED
    if as_json:
        emit_json(result_data(result))
    else:
        emit(summary(result, width=width()))
    return exit_of(result)


def exit_of(result: Result) -> Exit:
    """How the study ended, as an exit code."""
    if result.end == "stopped":
        return Exit.INTERRUPTED
    if result.end == "failing":
        return Exit.FAILING
    if result.best is None or (result.view.spec.goal.target is not None and not result.reached):
        return Exit.UNREACHED
    return Exit.DONE
