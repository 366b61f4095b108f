"""`foresail replay`: which policy would have been best, on recorded curves."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from foresail.api.drive import controller_of
from foresail.cli.exits import Exit
from foresail.cli.output import emit, say, width
from foresail.core.events import StudyCreated
from foresail.engine.verify import verify as same_decisions
from foresail.errors import CallerError
from foresail.replay.compare import Batch, batches, compare
from foresail.replay.contenders import contenders
from foresail.replay.record import Record
from foresail.replay.scores import REFERENCE
from foresail.replay.session import Setting
from foresail.replay.source import events_of
from foresail.replay.tables import report
from foresail.replay.throughput import parse_speedup


@click.command(name="replay")
@click.argument("traces", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--policy", default="random,asha,pop", show_default=True, help="Policies, with options as asha:eta=4.")
@click.option("--search", default="random", show_default=True, help="Searches, each with each policy: random,tpe.")
@click.option("--workers", default=4, show_default=True, type=click.IntRange(1), help="Trials at a time.")
@click.option("--seeds", default=5, show_default=True, type=click.IntRange(1), help="Orders of the configurations.")
@click.option("--target", default="top1pct", show_default=True, help="top10pct, top1pct, best, or none: full budget.")
@click.option("--budget", default=0.2, show_default=True, help="Share of all configurations' time, over the workers.")
@click.option("--start", default=0.0, show_default=True, help="Seconds to launch a trial.")
@click.option("--restart", default=0.0, show_default=True, help="Seconds more to continue one.")
@click.option("--failures", default=0.0, show_default=True, help="An hour of training, of each attempt.")
@click.option("--stragglers", default=0.0, show_default=True, help="Share of attempts that take twice as long.")
@click.option("--checkpoint-steps", default=0, show_default=True, help="Points between checkpoints; 0: on suspend.")
@click.option("--speedup", help="Of a trial on more workers: an exponent as 0.8, or TABLE,column=value,...")
@click.option("--charge-deciding", is_flag=True, help="Add the time that decisions take to the virtual time.")
@click.option("--processes", default=os.cpu_count() or 1, show_default="cores", type=click.IntRange(1))
@click.option("--verify", is_flag=True, help="Check that recorded studies decide the same again; compare nothing.")
@click.option("--plot", type=click.Path(path_type=Path), help="Write the plots of the comparison there: FILE.html.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the records there; - for stdout.")
def command(
    traces: tuple[Path, ...],
    policy: str,
    search: str,
    workers: int,
    seeds: int,
    target: str,
    budget: float,
    start: float,
    restart: float,
    failures: float,
    stragglers: float,
    checkpoint_steps: int,
    speedup: str | None,
    charge_deciding: bool,
    processes: int,
    verify: bool,
    plot: Path | None,
    json_file: Path | None,
) -> Exit:
    """Play recorded TRACES under several policies and compare them.

    A trace is a folder with trace.json, a study of Foresail, or an Optuna storage (journal or SQLite). Ratios are
    against random, which is added where it is not named.
    """
    if verify:
        return _verify(traces)
    setting = Setting(
        workers=workers,
        target=None if target == "none" else target,
        budget_frac=budget,
        start_s=start,
        restart_s=restart,
        failures_per_hour=failures,
        straggler_frac=stragglers,
        checkpoint_steps=checkpoint_steps,
        speedup=None if speedup is None else parse_speedup(speedup),
        charge_deciding=charge_deciding,
    )
    if plot is not None:
        _check_plot(plot)
    records = _compare(_work(traces, policy, search, seeds, setting), processes)
    targets = (target, "top10pct") if target == "top1pct" else ("top1pct",) if target == "none" else (target,)
    if plot is not None:
        from foresail.api.comparison_html import comparison_html

        plot.write_text(comparison_html(records, reference=REFERENCE, targets=targets), encoding="utf-8")
        say(f"written: {plot}")
    if json_file is not None:
        _write(json_file, records)
    if json_file is None or str(json_file) != "-":
        Console(width=width()).print(report(records, reference=REFERENCE, targets=targets))
    return Exit.DONE


def _check_plot(plot: Path) -> None:
    """Before the replays, which may take long."""
    from foresail.plots.picture import graph_objects

    if plot.suffix != ".html":
        raise CallerError(f"{plot}: its ending tells no format", allowed=".html")
    graph_objects()


def _verify(paths: tuple[Path, ...]) -> Exit:
    """Exit.BUG where a log's decisions do not follow from its facts."""
    code = Exit.DONE
    for path in paths:
        events = list(events_of(path))
        spec = next((event.spec for event in events if isinstance(event, StudyCreated)), None)
        if spec is None:
            raise CallerError(
                f"{path} holds no study of Foresail", do="--verify reads the studies that Foresail records"
            )
        difference = same_decisions(events, controller_of(spec))
        if difference is None:
            emit(f"{path}: {len(events)} events, the same decisions, byte for byte")
        else:
            emit(f"{path}: event {difference.at} differs: recorded {difference.recorded}, decided {difference.decided}")
            code = Exit.BUG
    return code


def _work(traces: tuple[Path, ...], policy: str, search: str, seeds: int, setting: Setting) -> list[Batch]:
    named = contenders(policy, searches=search.split(","))
    if all(contender.name != REFERENCE for contender in named):
        named = [*contenders(REFERENCE), *named]
    return batches([str(trace) for trace in traces], named, range(seeds), setting)


def _compare(work: list[Batch], processes: int) -> list[Record]:
    total = sum(len(batch) for batch in work)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("replays", total=total)

        def done(count: int) -> None:
            progress.advance(task, count)
            if progress.disable:
                say(f"{progress.tasks[task].completed:.0f} of {total} replays")

        return compare(work, processes=processes, done=done)


def _write(file: Path, records: list[Record]) -> None:
    data = msgspec.json.format(msgspec.json.encode(records), indent=1)
    if str(file) == "-":
        click.echo(data)
    else:
        file.write_bytes(data)
