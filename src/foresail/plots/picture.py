"""What the data of every plot can do: be drawn, be saved, be shown by its name in a notebook.

The only file that knows how Plotly is called. It is imported when something is drawn, never before.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from msgspec import Struct

from foresail.errors import CallerError, HostError, MissingExtraError, nearest
from foresail.plots.palette import FAINT, INK

IMAGES = ("png", "svg", "pdf", "jpeg", "webp")
ATTEMPTS, NOT_READY = 4, "kaleido_scopes is not defined"
"""On a busy machine Kaleido 1.5 may ask its page to draw before the page has read its scripts."""
NARROW = 4.0
"""Ratio of the largest to the smallest value under which an axis is linear."""
CONFIG = {"displaylogo": False, "responsive": True, "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"]}
"""Of Plotly's own buttons: no link to elsewhere, and none that does nothing here."""


class Picture(Struct, frozen=True):
    """Data with a picture of it."""

    def figure(self) -> Any:
        """A `plotly.graph_objects.Figure`.

        Raises:
            MissingExtraError: Plotly is not installed.
        """
        raise NotImplementedError

    def save(self, path: Path | str, *, width: int = 1000, height: int | None = None) -> None:
        """The figure as a file, by its ending: html (which asks nothing of the network), png, svg, pdf, jpeg, webp.

        Args:
            path: is replaced if it exists.
            width, height: of an image, in pixels of the screen; the height of the figure if not given.

        Raises:
            CallerError: another ending.
            MissingExtraError: Plotly, or for images Kaleido, is not installed.
            HostError: the image could not be made, for want of a browser for example.
        """
        save(self.figure(), Path(path), width=width, height=height)

    def _repr_mimebundle_(self, **_: Any) -> Any:
        try:
            return self.figure()._repr_mimebundle_()
        except MissingExtraError:
            return {"text/plain": repr(self)}


def graph_objects() -> Any:
    """Plotly.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import plotly.graph_objects
    except ImportError:
        raise MissingExtraError("Plotly", "plotly") from None
    return plotly.graph_objects


def plotly_script() -> str:
    """Plotly's own script, as its Python package carries it.

    Raises:
        MissingExtraError: it is not installed.
    """
    graph_objects()
    from plotly.offline import get_plotlyjs

    script: str = get_plotlyjs()
    return script


def drawn(traces: Iterable[Any], *, title: str, height: int = 420, **layout: Any) -> Any:
    """A figure in our looks."""
    figure = graph_objects().Figure(list(traces))
    axis = {"gridcolor": "#EEEEEE", "linecolor": INK, "zeroline": False, "ticks": "outside", "tickcolor": FAINT}
    figure.update_layout(
        template="none",
        title={"text": escape(title), "x": 0.0, "xref": "paper", "font": {"size": 15}},
        font={"family": "system-ui, -apple-system, Segoe UI, sans-serif", "size": 12, "color": INK},
        height=height,
        margin={"l": 64, "r": 24, "t": 64, "b": 60},
        paper_bgcolor="white",
        plot_bgcolor="white",
        hovermode="closest",
        legend={"orientation": "h", "x": 1.0, "xanchor": "right", "y": 1.02, "yanchor": "bottom"},
    )
    figure.update_xaxes(**axis)
    figure.update_yaxes(**axis)
    figure.update_layout(**layout)
    return figure


def save(figure: Any, path: Path, *, width: int = 1000, height: int | None = None) -> None:
    """As `Picture.save`."""
    form = path.suffix.lstrip(".").lower()
    if form == "html":
        html = figure.to_html(include_plotlyjs=True, full_html=True, config=CONFIG)
        path.write_text(html, encoding="utf-8")
    elif form in IMAGES:
        path.write_bytes(_image(figure, form, width, height or figure.layout.height or 420))
    else:
        raise CallerError(f"{path}: its ending tells no format", do=nearest(form, ("html", *IMAGES)))


def _image(figure: Any, form: str, width: int, height: int) -> bytes:
    try:
        import kaleido
    except ImportError:
        raise MissingExtraError("Kaleido", "image") from None
    options = {"format": form, "width": width, "height": height, "scale": 2}
    for attempts_left in reversed(range(ATTEMPTS)):
        try:  # another program draws it, a browser, and what it may fail with is not ours to list
            image: bytes = kaleido.calc_fig_sync(figure, opts=options, kopts={"mathjax": False})
            return image
        except Exception as error:
            if not (attempts_left and NOT_READY in str(error)):
                what = f"the image could not be drawn: {error}"[:300]
                raise HostError(what, do="install Chrome or Chromium, or save as .html") from error
    raise AssertionError("the last attempt returns or raises")


def overlaid(pattern: str) -> dict[str, Any]:
    """A bar pattern in white over the bar's colour."""
    return {"shape": pattern, "size": 6, "solidity": 0.2, "fgcolor": "white", "fillmode": "overlay"}


def log_axis(values: Sequence[float]) -> dict[str, Any]:
    """A logarithmic axis with round ticks: as many of 1, 2 and 5 of each decade as there is room for.

    Linear where the values lie so close together that a logarithm shows nothing.
    """
    positive = [value for value in values if value > 0.0 and math.isfinite(value)]
    if not positive:
        return {"type": "log"}
    if max(positive) < NARROW * min(positive):
        return {"type": "linear"}
    decades = range(math.floor(math.log10(min(positive))) - 1, math.ceil(math.log10(max(positive))) + 2)
    steps = (1.0,) if len(decades) > 9 else (1.0, 3.0) if len(decades) > 6 else (1.0, 2.0, 5.0)
    ticks = [float(f"{step}e{decade}") for decade in decades for step in steps]
    return {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]}


def shown(text: object) -> str:
    """A text as Plotly writes it, letter for letter: it takes some tags for its own."""
    return escape(str(text), quote=False)


def extent(values: Iterable[float], *, pad: float = 0.05) -> tuple[float, float] | None:
    """The range of an axis that holds all finite values with some room; None without any."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return None
    low, high = min(finite), max(finite)
    room = pad * (high - low) or 0.05 * abs(high) or 1.0
    return low - room, high + room


def core_of(values: Sequence[float], mode: str, share: float = 0.05) -> list[float]:
    """The finite values but the worst `share`, which would press all others together."""
    finite = sorted((v for v in values if math.isfinite(v)), reverse=mode == "min")
    return finite[int(share * len(finite)) :]


def rule(figure: Any, *, x: float | None = None, y: float | None = None, text: str = "") -> None:
    """A dashed line across the whole figure at `x` or `y`, with a word."""
    line = {"dash": "dash", "width": 1.2, "color": INK}
    note = {"annotation_text": shown(text), "annotation_font_size": 11} if text else {}
    at = {"annotation_position": "top left"} if text else {}
    if y is not None:
        figure.add_hline(y, line=line, **at, **note)
    if x is not None:
        figure.add_vline(x, line=line, **at, **note)
