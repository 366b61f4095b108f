"""Tables as plain text of a fixed width: the same in a terminal, a file and a test."""

from __future__ import annotations

from collections.abc import Sequence

LEAST = 12
"""The last column is never cut below so many columns."""


def table(titles: Sequence[str], rows: Sequence[Sequence[str]], *, width: int = 120, left: Sequence[str] = ()) -> str:
    """Rows under their titles, two blanks between columns; the last column is cut where the width ends.

    Args:
        titles: of the columns; those in `left`, and the last, begin at the left, the others end at the right.
        rows: texts, one a column.
        width: columns of the whole, at least what all columns but the last need.

    >>> print(table(("trial", "why"), [("3", "it learns"), ("12", "poor")]))
    trial  why
        3  it learns
       12  poor
    """
    texts = [[_one_line(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [list(titles), *texts]) for i in range(len(titles) - 1)]
    rest = max(LEAST, width - sum(widths) - 2 * len(widths))
    lefts = [title in left for title in titles]
    lines = []
    for row in [list(titles), *texts]:
        cells = [
            cell.ljust(w) if at_left else cell.rjust(w) for cell, w, at_left in zip(row, widths, lefts, strict=False)
        ]
        last = row[-1] if len(row[-1]) <= rest else row[-1][: rest - 3] + "..."
        lines.append("  ".join([*cells, last]).rstrip())
    return "\n".join(lines)


def _one_line(text: str) -> str:
    return " ".join(text.split())
