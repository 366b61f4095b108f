"""Colours and symbols, the same in every picture.

Okabe and Ito's palette, which people with any of the common kinds of colour blindness tell apart (Okabe and Ito 2008,
"Color Universal Design"). Classes are told by symbol and by pattern as well, so that a print in grey serves.
"""

from __future__ import annotations

from typing import NamedTuple

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILLION, PURPLE, GREY = "#F0E442", "#0072B2", "#D55E00", "#CC79A7", "#999999"
INK, FAINT = "#333333", "#DDDDDD"
CYCLE = (BLUE, ORANGE, GREEN, VERMILLION, SKY, PURPLE, BLACK, YELLOW)


class Look(NamedTuple):
    """How a class looks: Plotly's names for symbol and bar pattern; `glyph` is the symbol in a text.

    `dark`: the colour on a dark ground, where the other has too little contrast or too much.
    """

    name: str
    colour: str
    dark: str
    symbol: str
    glyph: str
    pattern: str


PROMISING = Look("promising", GREEN, "#20B98C", "triangle-up", "▲", "")
OPPORTUNISTIC = Look("opportunistic", ORANGE, "#F0B429", "circle", "●", "/")
POOR = Look("poor", "#8A94A0", "#7B8794", "triangle-down", "▼", ".")
UNCLASSIFIED = Look("not classified", SKY, SKY, "diamond", "◆", "-")
LOOKS = (PROMISING, OPPORTUNISTIC, POOR, UNCLASSIFIED)


def look_of(label: str | None) -> Look:
    """The look of a class; of None, that of what has no class."""
    return next((look for look in LOOKS if look.name == label), UNCLASSIFIED)
