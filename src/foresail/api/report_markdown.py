"""A report as Markdown, as pull requests show it (GitHub's tables). Nothing of a study is read as markup."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from foresail.api.report import Report, Table

_MARKS = re.compile(r"([\\`*_{}\[\]<>#|~$!&@])")


def markdown_of(report: Report, images: Mapping[str, str] | None = None) -> str:
    """The file's text; `images`: links to the plots by name, those that are not there are left out."""
    return "\n\n".join(_parts(report, images or {})) + "\n"


def _parts(report: Report, images: Mapping[str, str]) -> Iterator[str]:
    shown = {
        plot.name: f"![{plot.name}]({images[plot.name]})\n\n{_text(plot.about)}"
        for plot in report.plots
        if plot.name in images
    }
    yield f"# {_text(report.name)}"
    yield f"{_text(report.goal)}. {_text(report.outcome)}"
    yield _table(Table(tuple(what for _, what in report.facts), (tuple(n for n, _ in report.facts),)))
    yield "## Best configuration"
    yield from map(_text, report.best)
    if report.configuration:
        yield _table(report.configuration)
    if "map" in shown:
        yield shown.pop("map")
    yield "## What was searched"
    yield _table(report.searched)
    yield _table(report.settings)
    yield "## What it cost, and what it saved"
    yield from map(_text, report.costs)
    yield "## Trials by class, with the reason of the last decision"
    yield _table(report.classes)
    if report.broken:
        yield "## Diverged or failed"
        yield _table(report.broken)
    if shown:
        yield "## How it went"
        yield from shown.values()
    yield "## How these figures came about"
    yield from map(_text, report.method)


def _table(data: Table) -> str:
    lines = [data.titles, ("---",) * len(data.titles), *data.rows]
    escaped = [line if at == 1 else tuple(map(_text, line)) for at, line in enumerate(lines)]
    return "\n".join(f"| {' | '.join(line)} |" for line in escaped)


def _text(text: str) -> str:
    """Text that Markdown shows letter for letter, on one line.

    >>> _text("<script> a|b")
    '\\\\<script\\\\> a\\\\|b'
    """
    return _MARKS.sub(r"\\\1", " ".join(text.split()))
