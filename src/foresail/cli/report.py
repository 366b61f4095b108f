"""`foresail report STORAGE`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from foresail.cli.exits import Exit
from foresail.cli.output import emit_json, json_option, say
from foresail.cli.storage import storage_argument
from foresail.errors import CallerError

if TYPE_CHECKING:
    from foresail.api.report import Report


@click.command("report")
@storage_argument
@click.option("-o", "--output", type=click.Path(path_type=Path), help="FILE.html or FILE.md; by default STORAGE.html.")
@click.option("--images", is_flag=True, help="With FILE.md: the plots as images, in a folder beside it.")
@click.option("--force", is_flag=True, help="Replace what is there.")
@json_option
def command(storage: Path, output: Path | None, images: bool, force: bool, as_json: bool) -> Exit:
    """The study in STORAGE as one file to attach to a paper or a pull request.

    What was searched, what it cost and saved, the best configuration and how sure it is, every class with its reasons,
    and plots. The HTML holds all that it shows and asks nothing of the network. Needs the extra: pip install
    'foresail[plotly]'; Markdown without --images needs nothing.
    """
    from foresail.api.recorded import load_events
    from foresail.api.report import report_of

    output = output or storage.with_suffix(".html")
    if output.suffix not in (".html", ".md"):
        raise CallerError(f"{output}: its ending tells no format", allowed=".html, .md")
    if images and output.suffix != ".md":
        raise CallerError("--images goes with Markdown; an HTML report holds its plots", do="leave it out")
    if output.exists() and not force:
        raise CallerError(f"{output} is there already", do="choose another name with -o, or --force")
    report = report_of(load_events(storage), storage)
    _write(report, output, images=images)
    if as_json:
        emit_json({"storage": str(storage), "to": str(output)})
    else:
        say(f"written: {output}")
    return Exit.DONE


def _write(report: Report, output: Path, *, images: bool) -> None:
    """Written elsewhere, then moved: a file of that name is whole."""
    if output.suffix == ".html":
        from foresail.api.report_html import html_of

        text = html_of(report)
    else:
        from foresail.api.report_markdown import markdown_of

        text = markdown_of(report, _images(report, output.with_suffix(".plots")) if images else None)
    partial = output.with_name(f"{output.name}.part-{os.getpid()}")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(output)
    finally:
        partial.unlink(missing_ok=True)


def _images(report: Report, folder: Path) -> dict[str, str]:
    """The plots as PNG files in `folder`; links to them, relative to its parent."""
    folder.mkdir(exist_ok=True)
    links = {}
    for plot in report.plots:
        plot.picture.save(folder / f"{plot.name}.png")
        links[plot.name] = f"{folder.name}/{plot.name}.png".replace(" ", "%20")
    return links
