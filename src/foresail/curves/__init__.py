"""Accuracy potential: where learning curves will go, for all trials of a study at once.

The theory: `docs/curves.md`. What the shipped posterior was trained on and reaches: `docs/curves-model.md`.
"""

from foresail.curves import score
from foresail.curves.earlier import Earlier, summarise
from foresail.curves.forecasts import Forecast
from foresail.curves.study import Layers, StudyState, forecast

__all__ = ["Earlier", "Forecast", "Layers", "StudyState", "forecast", "score", "summarise"]
