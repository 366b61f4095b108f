"""Knobs, conditions and forbidden combinations; configurations to the unit cube and back."""

from foresail.space.knobs import Choice, Flag, Float, Int, Knob, Touches, Value, When
from foresail.space.space import Config, Space

__all__ = ["Choice", "Config", "Flag", "Float", "Int", "Knob", "Space", "Touches", "Value", "When"]
