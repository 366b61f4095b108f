"""Pictures of a study: each function gives plain data, whose `figure()` draws it.

    chronicle = Chronicle.load("digits.db")   # or Chronicle.of(events[:n]): the study as it stood then
    foreseen = foresee(chronicle.view)        # once, for all plots of that moment
    learning_curves(chronicle, foreseen)      # data: msgspec writes it as JSON
    learning_curves(chronicle, foreseen).figure().show()

Data needs nothing more than Foresail does; figures need the extra: pip install 'foresail[plotly]'.
"""

from foresail.plots.best import BestSoFar, best_so_far
from foresail.plots.chronicle import Chronicle
from foresail.plots.cluster import Gantt, gantt
from foresail.plots.coordinates import ParallelCoordinates, parallel_coordinates
from foresail.plots.curves import Curves, learning_curves
from foresail.plots.efficiency import PotentialMap, potential_map
from foresail.plots.foreseen import Foreseen, foresee
from foresail.plots.honesty import Calibration, calibration
from foresail.plots.influence import Importance, importance
from foresail.plots.savings import Saving, saving
from foresail.plots.timing import Speeds, step_speeds

__all__ = [
    "BestSoFar",
    "Calibration",
    "Chronicle",
    "Curves",
    "Foreseen",
    "Gantt",
    "Importance",
    "ParallelCoordinates",
    "PotentialMap",
    "Saving",
    "Speeds",
    "best_so_far",
    "calibration",
    "foresee",
    "gantt",
    "importance",
    "learning_curves",
    "parallel_coordinates",
    "potential_map",
    "saving",
    "step_speeds",
]
