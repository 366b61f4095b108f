"""`foresail`: the commands by name. Each lives in its own file, which is read when it is called."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NoReturn, TextIO

import click

from foresail import __version__
from foresail.cli.exits import MEANINGS, Exit
from foresail.cli.output import exit_code_of, say, show_error
from foresail.errors import CallerError, ForesailError, HostError, nearest

COMMANDS: dict[str, str] = {
    "demo": "Tune a real network on real digits, here, in minutes.",
    "init": "Write a study file for a script, from its options.",
    "run": "Start the study of a file, or continue it.",
    "resume": "Continue a study after Ctrl-C, a crash or a reboot.",
    "status": "Where a study stands: its goal, its best, its trials.",
    "watch": "Follow a running study from another terminal.",
    "best": "The best trial: step, value, configuration, checkpoint.",
    "explain": "The story of a trial: every decision with its numbers.",
    "export": "A study as CSV, as JSON lines, or as a trace.",
    "report": "A study as one page to attach to a paper or a pull request.",
    "track": "Tell TensorBoard, MLflow, Weights & Biases or a table of it.",
    "replay": "Decide a recorded study again, with this or another policy.",
    "profile": "Measure how fast a training runs, and on what.",
    "plan": "Which resources a training should get.",
    "slurm": "A script for sbatch that runs a study.",
    "serve": "Look at a study in the browser.",
    "doctor": "Whether this machine and a storage are in order.",
}
"""In the order of the help. A command whose file is not there is not listed."""

EPILOG = "\b\nExit codes:\n" + "\n".join(f"  {code:>3}  {meaning}" for code, meaning in MEANINGS.items())


class Commands(click.Group):
    """Commands by the names of their files: `foresail.cli.<name>.command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name in COMMANDS if find_spec(f"foresail.cli.{name}") is not None]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = import_module(f"foresail.cli.{cmd_name}")
        found = getattr(module, "command", None) or getattr(module, cmd_name)
        assert isinstance(found, click.Command)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in self.list_commands(ctx) and not name.startswith("-"):
            raise CallerError(
                f"there is no command {name!r}", do=nearest(name, self.list_commands(ctx)) + "; see foresail --help"
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> NoReturn:
        """Run a command and leave with its exit code; an error is one block, never a traceback."""
        given = list(sys.argv[1:] if args is None else args)
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _note
                code = super().main(given, prog_name or "foresail", complete_var, standalone_mode=False, **extra)
        except Exception as error:
            code = _failed(error, as_json="--json" in given)
        except (KeyboardInterrupt, click.exceptions.Abort):
            code = Exit.INTERRUPTED
        sys.exit(int(code) if isinstance(code, int) else 0)


def _note(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A warning as a person reads it: without the line of our code that gave it."""
    say(f"note:    {message}")


def _failed(error: Exception, *, as_json: bool) -> int:
    match error:
        case click.exceptions.Abort():
            return Exit.INTERRUPTED
        case ForesailError():
            known = error
        case click.UsageError():
            where = error.ctx.command_path if error.ctx else "foresail"
            known = CallerError(error.format_message(), do=f"see {where} --help")
        case click.ClickException():
            known = CallerError(error.format_message())
        case BrokenPipeError():
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return Exit.PIPE_CLOSED
        case OSError():
            known = HostError(str(error))
        case _:
            import traceback

            say(traceback.format_exc() + "this is a bug of Foresail: please report it together with this text")
            return Exit.BUG
    show_error(known, as_json=as_json)
    return exit_code_of(known)


@click.command(
    cls=Commands,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    no_args_is_help=False,
    invoke_without_command=True,
)
@click.version_option(__version__, message="foresail %(version)s")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Foresail tunes deep-learning training: it foresees how each run will end and how fast it can go, and gives the
    resources to the best.

    \b
      foresail run study.toml       start a study; Ctrl-C stops it in good order
      foresail resume digits.db     continue it
      foresail best digits.db       the best trial and its checkpoint
      foresail explain 12           why trial 12 got what it got

    A STORAGE is the file of a study's log, or the study file that names it. Where it is left out, the only *.db file of
    the folder is meant. Data goes to stdout, talk to stderr; --json is understood by every command.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
