"""Draws the README's picture from a recorded study: `python docs/images/make.py STORAGE [SHARE_OF_ITS_LOG]`."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from rich.console import Console

from foresail.api.progress import Progress
from foresail.api.recorded import load_events
from foresail.api.screen import picture
from foresail.core.view import fold


def main(storage: Path, share: float = 0.7) -> None:
    events = load_events(storage)
    seen = events[: int(share * len(events))]
    view = fold(seen)
    progress = Progress(lambda: view.now_s)
    progress.note(view, seen)
    console = Console(record=True, width=110, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(picture(view, progress))
    svg = re.sub(r"@font-face \{.*?\}", "", console.export_svg(title="foresail demo"), flags=re.DOTALL)
    Path(__file__).with_name("demo.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(float, sys.argv[2:]))
