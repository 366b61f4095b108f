"""HTML put together from parts that are escaped unless they say that they are HTML already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


class Html(str):
    """Text that is HTML. Everything else is text, and escaped when it is put into HTML."""

    __slots__ = ()


def tag(name: str, *parts: str, **attributes: str) -> Html:
    """An element. In the name of an attribute, a `_` at the end is dropped and one inside is a dash.

    >>> tag("p", "<script>", class_="note")
    '<p class="note">&lt;script&gt;</p>'
    """
    given = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items())
    return Html(f"<{name}{given}>{join(parts)}</{name}>")


def join(parts: Iterable[str]) -> Html:
    """Parts one after the other."""
    return Html("".join(part if isinstance(part, Html) else escape(part) for part in parts))


def table(titles: Sequence[str], rows: Iterable[Sequence[str]], **attributes: str) -> Html:
    """A table with a row of titles."""
    head = tag("thead", tag("tr", *(tag("th", title) for title in titles)))
    body = tag("tbody", *(tag("tr", *(tag("td", cell) for cell in row)) for row in rows))
    return tag("div", tag("table", head, body, **attributes), class_="wide")
