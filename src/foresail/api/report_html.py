"""A report as one HTML file that asks nothing of the network: its style, its data and Plotly's script are in it.

The page forbids itself every request (Content-Security-Policy), so that this holds whatever a script would do.
"""

from __future__ import annotations

from collections.abc import Sequence

from foresail.api.markup import Html, table, tag
from foresail.api.report import Plot, Report, Table
from foresail.plots.picture import CONFIG, Picture, plotly_script

_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"

_STYLE = """
:root { --ink: #222; --soft: #666; --line: #ddd; --blue: #0072b2; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1040px; padding: 32px 24px 64px; color: var(--ink); background: white;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 28px; margin: 0 0 2px; overflow-wrap: anywhere; }
h2 { font-size: 19px; margin: 40px 0 8px; padding-bottom: 4px; border-bottom: 1px solid var(--line); }
p { margin: 6px 0; max-width: 78ch; }
.goal, .about { color: var(--soft); }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); gap: 12px; margin: 20px 0; }
.fact { border: 1px solid var(--line); border-top: 3px solid var(--blue); border-radius: 4px; padding: 8px 12px; }
.fact b { display: block; font-size: 20px; }
.fact span { color: var(--soft); font-size: 13px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: 10px 0; font-size: 13.5px; }
th { text-align: left; font-weight: 600; border-bottom: 2px solid var(--line); padding: 4px 14px 4px 0; }
td { border-bottom: 1px solid #eee; padding: 4px 14px 4px 0; vertical-align: top; }
table.trials td:nth-child(7) { font-family: ui-monospace, monospace; font-size: 12px; min-width: 220px; }
table.trials td:nth-child(8) { min-width: 260px; }
.sides { display: grid; grid-template-columns: repeat(auto-fit, minmax(300px, 1fr)); gap: 0 40px; }
figure { margin: 20px 0 8px; }
figcaption { margin-top: 4px; color: var(--soft); font-size: 13.5px; max-width: 90ch; }
footer { margin-top: 40px; color: var(--soft); font-size: 13.5px; }
@media print { body { max-width: none; padding: 0; } figure { break-inside: avoid; } }
"""


def html_of(report: Report) -> str:
    """The file's text.

    Raises:
        MissingExtraError: Plotly is not installed.
    """
    return document(f"{report.name}: {report.goal}", _body(report))


def document(title: str, body: Sequence[str]) -> str:
    """A page in our looks, with Plotly in it; errors as `html_of`."""
    head = tag(
        "head",
        Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        tag("title", title),
        tag("style", Html(_STYLE)),
        tag("script", Html(plotly_script())),
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', *body), lang='en')}\n"


def _body(report: Report) -> list[Html]:
    plots = {plot.name: plot for plot in report.plots}
    signature = [_plot(plots.pop("map"))] if "map" in plots else []
    return [
        tag("h1", report.name),
        tag("p", report.goal, class_="goal"),
        tag("p", report.outcome),
        tag(
            "div",
            *(tag("div", tag("b", n), tag("span", what), class_="fact") for n, what in report.facts),
            class_="facts",
        ),
        tag("h2", "Best configuration"),
        *_paragraphs(report.best),
        *([_table(report.configuration)] if report.configuration else []),
        *signature,
        tag("h2", "What was searched"),
        tag("div", _table(report.searched), _table(report.settings), class_="sides"),
        tag("h2", "What it cost, and what it saved"),
        *_paragraphs(report.costs),
        tag("h2", "Trials by class, with the reason of the last decision"),
        _table(report.classes, "trials"),
        *([tag("h2", "Diverged or failed"), _table(report.broken)] if report.broken else []),
        tag("h2", "How it went"),
        *(_plot(plot) for plot in plots.values()),
        tag("footer", tag("h2", "How these figures came about"), *_paragraphs(report.method)),
    ]


def _paragraphs(texts: tuple[str, ...]) -> list[Html]:
    return [tag("p", text) for text in texts]


def _table(data: Table, look: str = "") -> Html:
    return table(data.titles, data.rows, class_=look)


def _plot(plot: Plot) -> Html:
    return figure(plot.name, plot.picture, plot.about)


def figure(name: str, picture: Picture, about: str) -> Html:
    """A plot with its caption; errors as `html_of`."""
    drawn = picture.figure().to_html(full_html=False, include_plotlyjs=False, div_id=f"plot-{name}", config=CONFIG)
    return tag("figure", Html(drawn), tag("figcaption", about))
