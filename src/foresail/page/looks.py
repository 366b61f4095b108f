"""The palette of all plots, as the page's script and style sheet read it."""

from __future__ import annotations

import json

from foresail.plots.palette import BLUE, LOOKS, SKY, UNCLASSIFIED, VERMILLION, Look

_DARK_VERMILLION = "#EF7A2C"


def script() -> str:
    """`LOOKS` as a module: of each class its symbol, and the symbol in a text."""
    looks = {_key(look): {"symbol": look.symbol, "glyph": look.glyph} for look in LOOKS}
    return f"export const LOOKS = {json.dumps(looks, ensure_ascii=False)};\n"


def style() -> str:
    """The colours of both themes as custom properties."""
    light = {_key(look): look.colour for look in LOOKS} | {"accent": BLUE, "bad": VERMILLION}
    dark = {_key(look): look.dark for look in LOOKS} | {"accent": SKY, "bad": _DARK_VERMILLION}
    return f':root {{ {_properties(light)} }}\n:root[data-theme="dark"] {{ {_properties(dark)} }}\n'


def _key(look: Look) -> str:
    return "none" if look is UNCLASSIFIED else look.name


def _properties(colours: dict[str, str]) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())
