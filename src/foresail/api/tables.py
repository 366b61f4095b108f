"""Tables as plain text of a fixed width: the same in a terminal, a file and a test."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

LEAST = 24
"""The last column is never narrower than this."""


def table(
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    width: int = 120,
    left: Sequence[str] = (),
    wrap: bool = False,
) -> str:
    """Rows under their titles, two blanks between columns.

    Args:
        titles: of the columns; those in `left`, and the last, begin at the left, the others end at the right.
        rows: texts, one a column.
        width: columns of the whole, where the columns leave the last one that much.
        wrap: whether a last cell that is too long goes on in further lines; else it is cut.

    >>> print(table(("trial", "why"), [("3", "it learns"), ("12", "poor")]))
    trial  why
        3  it learns
       12  poor
    """
    texts = [list(titles), *([_one_line(cell) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in texts) for i in range(len(titles) - 1)]
    rest = max(LEAST, width - sum(widths) - 2 * len(widths))
    lefts = [title in left for title in titles]
    lines = []
    for row in texts:
        cells = zip(row[:-1], widths, lefts[:-1], strict=True)
        head = "".join((cell.ljust(w) if at_left else cell.rjust(w)) + "  " for cell, w, at_left in cells)
        for line in _last(row[-1], rest, wrap):
            lines.append((head + line).rstrip())
            head = " " * len(head)
    return "\n".join(lines)


def _last(text: str, width: int, wrap: bool) -> Iterator[str]:
    if wrap:
        yield from textwrap.wrap(text, width) or [""]
    else:
        yield text if len(text) <= width else text[: width - 3] + "..."


def _one_line(text: str) -> str:
    return " ".join(text.split())
