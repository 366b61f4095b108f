"""`foresail init SCRIPT`."""

from __future__ import annotations

from pathlib import Path

import click

from foresail.cli.exits import Exit
from foresail.cli.output import emit, emit_json, json_option, say
from foresail.errors import CallerError


@click.command("init")
@click.argument("script", type=click.Path(path_type=Path))
@click.option("-o", "--out", default="study.toml", show_default=True, help="The file to write; - for stdout.")
@click.option("--force", is_flag=True, help="Replace what is there.")
@json_option
def command(script: Path, out: str, force: bool, as_json: bool) -> Exit:
    """Write a study file for SCRIPT, from its options.

    \b
    The options are read from its text, which is never run:
      argparse       parser.add_argument("--lr", type=float, default=0.1)
      click          @click.option("--lr", default=0.1)
      Hydra          @hydra.main(config_path="conf", config_name="config")
      a dataclass    parsed by HfArgumentParser, simple-parsing, tyro and their like

    Ranges are guesses around the defaults, with a comment each; options that are no hyperparameters are listed at the
    end. Read the file, then: foresail run study.toml
    """
    from foresail.api.script_options import read_script
    from foresail.api.starter import starter
    from foresail.api.study_file import load_study

    to = None if out == "-" else Path(out)
    if to is not None and to.exists() and not force:
        raise CallerError(f"{to} is there already", do="choose another name by --out, or --force")
    read = read_script(script)
    made = starter(read, to or Path("study.toml"))
    if to is not None:
        to.write_text(made.text, encoding="utf-8")
        if made.knobs:
            load_study(to)
    if as_json:
        knobs = {guess.name: guess.toml for guess in made.knobs}
        told = {"script": str(script), "style": read.style, "to": out, "metric": made.metric, "reports": made.reports}
        emit_json({**told, "knobs": knobs, "left_out": made.left_out, "needed": made.needed})
        return Exit.DONE
    if to is None:
        emit(made.text.rstrip("\n"))
        return Exit.DONE
    say(f"written: {to}: {len(made.knobs)} knobs from {read.style}, {len(made.left_out)} options left as they are")
    if not made.reports:
        say(f"next:    let {script.name} report once an epoch: foresail.report({made.metric}=...)")
    if made.needed:
        say(f"next:    {script.name} does not run without {', '.join(made.needed)}: see {to}")
    say(f"then:    read its ranges, and foresail run {to}")
    return Exit.DONE
