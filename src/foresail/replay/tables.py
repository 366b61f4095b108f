"""A comparison as tables for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from foresail.replay.record import Record
from foresail.replay.scores import by_policy, regret_at, speedup, use

MOMENTS = (0.05, 0.1, 0.25, 0.5, 1.0)
"""Shares of the budget at which regret is shown."""


def report(records: Sequence[Record], *, reference: str, targets: Sequence[str]) -> Group:
    """All tables of a comparison; ratios are against `reference`."""
    policies = by_policy(records)
    base = policies[reference]
    parts: list[RenderableType] = []
    for target in targets:
        parts += [
            _title(f"Speed-up over {reference} to {target}: mean, share that never got there; [90 % interval] over all")
        ]
        parts += [_times(policies, base, target)]
    parts += [_title("Regret at a share of the budget: what is left of the way from the median to the top 1 %")]
    parts += [_regret(policies), _title("Use of resources, mean of a run"), _use(policies)]
    return Group(*parts)


def _title(text: str) -> Text:
    return Text(f"\n{text}", style="bold", no_wrap=True)


def _times(policies: Mapping[str, Sequence[Record]], base: Sequence[Record], target: str) -> Table:
    families = sorted({family(record.trace) for record in base})
    shown = [*families, "all"] if len(families) > 1 else ["all"]
    table = Table(box=None)
    table.add_column("policy", no_wrap=True)
    for name in shown:
        traces = {r.trace for r in base if name in ("all", family(r.trace))}
        table.add_column(f"{name} ({len(traces)})", justify="right", no_wrap=True)
    for policy, records in policies.items():
        table.add_row(policy, *(_speedup(records, base, target, name, whole=name == "all") for name in shown))
    return table


def _speedup(records: Sequence[Record], base: Sequence[Record], target: str, name: str, *, whole: bool) -> str:
    found = speedup([r for r in records if name in ("all", family(r.trace))], base, target)
    if found is None:
        return "-"
    interval = f" [{found.low:.2f}, {found.high:.2f}]" if whole else ""
    return f"{found.mean:.2f}{interval} {found.censored_frac:>4.0%}"


def family(trace: str) -> str:
    """The first word of a trace's name."""
    return trace.split("-", maxsplit=1)[0]


def _regret(policies: Mapping[str, Sequence[Record]]) -> Table:
    table = Table(box=None)
    table.add_column("policy")
    for moment in MOMENTS:
        table.add_column(f"at {moment:.0%}", justify="right")
    for policy, records in policies.items():
        table.add_row(policy, *(f"{fmean(regret_at(r, moment) for r in records):.3f}" for moment in MOMENTS))
    return table


def _use(policies: Mapping[str, Sequence[Record]]) -> Table:
    table = Table(box=None)
    for name in ("policy", "training", "starts", "deciding", "us a point", "points", "configurations"):
        table.add_column(name, justify="left" if name == "policy" else "right")
    for policy, records in policies.items():
        found = use(records)
        table.add_row(
            policy,
            f"{found.used_frac:.1%}",
            f"{found.restart_frac:.1%}",
            f"{found.deciding_frac:.2%}",
            f"{found.deciding_us_a_point:.0f}",
            f"{found.steps:.0f}",
            f"{found.configs:.0f}",
        )
    return table
