"""Options of any kind under names that a knob can have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from foresail.space.knobs import Value


def options_of(choices: Sequence[Any]) -> tuple[Value, ...]:
    """The options of a knob for these choices, in the same order.

    >>> options_of([None, "relu", 2]), options_of([1, True])
    (('None', 'relu', 2), ('0: 1', '1: True'))
    """
    plain = tuple(c if _is_plain(c) else repr(c) for c in choices)
    if len(set(plain)) == len(plain):
        return plain
    return tuple(f"{place}: {choice!r}" for place, choice in enumerate(choices))


def _is_plain(choice: object) -> bool:
    return isinstance(choice, str | int) or (isinstance(choice, float) and math.isfinite(choice))
