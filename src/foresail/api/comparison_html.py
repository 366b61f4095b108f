"""A comparison of policies by replay, as one HTML file that asks nothing of the network."""

from __future__ import annotations

from collections.abc import Sequence

from foresail.api import wording
from foresail.api.markup import tag
from foresail.api.report_html import document, figure
from foresail.plots.comparison import reached, regret, resources, time_to_target
from foresail.replay.record import Record


def comparison_html(records: Sequence[Record], *, reference: str, targets: Sequence[str]) -> str:
    """The file's text; ratios are against `reference`.

    Raises:
        MissingExtraError: Plotly is not installed.
    """
    traces = list(dict.fromkeys(record.trace for record in records))
    seeds, workers = {record.seed for record in records}, {record.workers for record in records}
    what = (
        f"{wording.count(len(records), 'replay')} of {wording.count(len(traces), 'trace')} with "
        f"{wording.count(len(seeds), 'seed')}, on {' or '.join(map(str, sorted(workers)))} workers."
    )
    figures = [figure("regret", regret(records), _ABOUT["regret"])]
    for target in targets:
        figures.append(figure(f"time-{target}", time_to_target(records, target, reference=reference), _ABOUT["time"]))
        figures.append(figure(f"reached-{target}", reached(records, target), _ABOUT["reached"]))
    figures.append(figure("resources", resources(records), _ABOUT["resources"]))
    head = [tag("h1", "Policies compared"), tag("p", what), tag("p", "Traces: " + ", ".join(traces), class_="about")]
    return document("Policies compared", [*head, *figures])


_ABOUT = {
    "regret": "What is left of the way from the median configuration to the top 1 %: mean over runs, with its 90 % "
    "bootstrap interval. The sooner a line falls, the better.",
    "time": "How many times as fast as the reference: geometric mean over seeds, then traces, with its 90 % bootstrap "
    "interval. A run that does not get there counts with its whole budget.",
    "reached": "Share of the runs that are there after a share of the budget.",
    "resources": "Means of a run. Starts are launches and restarts; deciding is the time of engine and policy on the "
    "machine that replayed, as a share of the virtual time.",
}
