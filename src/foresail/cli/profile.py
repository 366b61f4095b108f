"""`foresail profile`: measure a few system configurations of a real job here, and say which to use."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.table import Table

from foresail.api import past_steps
from foresail.api import profile as profiling
from foresail.perf.cpu import cpu_configurations
from foresail.perf.hardware import device
from foresail.perf.words import Job, SystemConfiguration


@click.command()
@click.argument("target")
@click.option("--global-batch", type=click.IntRange(min=1), required=True, help="Samples in an optimizer step.")
@click.option("--threads", multiple=True, type=int, help="Thread counts to consider (default: 1, 2, 4, ...).")
@click.option("--replicas", multiple=True, type=int, help="Replica counts to consider (default: 1, 2, 4, ...).")
@click.option("--micro-batch", multiple=True, type=int, help="Micro-batches to consider.")
@click.option("--workers", multiple=True, type=int, default=(0,), help="Loader workers to consider.")
@click.option("--cores", type=int, help="Cores to use at most (default: all that this process may use).")
@click.option("--device", "device_name", help="The accelerator that each replica uses, such as A100 (default: cores).")
@click.option("--devices", type=click.IntRange(min=1), default=1, show_default=True, help="How many, with --device.")
@click.option("--probes", type=click.IntRange(min=1), default=6, show_default=True, help="Runs at most.")
@click.option("--seconds", type=float, default=2.0, show_default=True, help="Of measured steps in a run.")
@click.option("--steps", type=float, default=10_000, show_default=True, help="That the job still has to do.")
@click.option("--history", type=click.Path(dir_okay=False, path_type=Path), help="Steps measured here before.")
@click.option("--forget", is_flag=True, help="Neither use nor keep such steps.")
@click.option("--json", "as_json", is_flag=True, help="Data on standard output, talk on standard error.")
def profile(
    target: str,
    global_batch: int,
    threads: tuple[int, ...],
    replicas: tuple[int, ...],
    micro_batch: tuple[int, ...],
    workers: tuple[int, ...],
    cores: int | None,
    device_name: str | None,
    devices: int,
    probes: int,
    seconds: float,
    steps: float,
    history: Path | None,
    forget: bool,
    as_json: bool,
) -> None:
    """Profile TARGET: FILE.py:FUNCTION, which builds a step for a system configuration.

    FUNCTION(system) returns a function that runs one optimizer step of the global batch. Everything that
    competes keeps that batch, so the advice does not change what is learned. What is measured is kept for the next
    profile on this machine (by default in the user's cache folder), which then needs fewer runs.
    """
    kind = device(device_name) if device_name else None
    systems = cpu_configurations(
        global_batch=global_batch,
        cores=devices if kind else cores or profiling.usable_cores(),
        threads=(1,) if kind else threads or None,
        replicas=replicas or None,
        micro_batches=micro_batch or None,
        loader_workers=workers,
    )
    talk = Console(stderr=True)
    talk.print(f"{len(systems)} configurations of a global batch of {global_batch}; at most {probes} runs")
    file = None if forget else history or past_steps.default_file()
    with talk.status("measuring"):
        found = profiling.profile(
            target,
            systems,
            job=Job(name=past_steps.job_name(target)),
            device=kind,
            probes=probes,
            seconds=seconds,
            remaining_steps=steps,
            prior=past_steps.past(file, on_cpu=kind is None) if file else None,
        )
    if file is not None:
        try:
            past_steps.keep(file, found.rows, found.seconds)
        except OSError as error:
            talk.print(f"what was measured is not kept for later: {error}")
    if as_json:
        click.echo(json.dumps(_plain(found), indent=1))
    else:
        Console(width=None if sys.stdout.isatty() else 120).print(_table(found))
    talk.print(_advice(found))


def _plain(found: profiling.Profile) -> dict[str, object]:
    """The profile as JSON: what is not known is null."""
    lines = [
        {name: getattr(line, name) for name in line.__dataclass_fields__ if name != "system"}
        | {"system": msgspec.to_builtins(line.system)}
        for line in found.lines
    ]
    gain = found.gain_frac if found.gain_frac == found.gain_frac else None
    return {
        "lines": lines,
        "advised": msgspec.to_builtins(found.advised),
        "base": msgspec.to_builtins(found.base),
        "gain_frac": gain,
        "probes": found.probes,
        "spent_s": found.spent_s,
        "stopped": found.stopped,
    }


def _table(found: profiling.Profile) -> Table:
    table = Table(title="system configurations, fastest first", box=None)
    for title in ("threads", "replicas", "batch", "workers", "predicted", "90 %", "measured", "samples/s"):
        table.add_column(title, justify="right", no_wrap=True)
    for title in ("MiB", "$/M"):
        table.add_column(title, justify="right", no_wrap=True)
    for line in found.lines:
        s = line.system
        measured = "" if line.measured_s is None else f"{1e3 * line.measured_s:.3g} ms"
        table.add_row(
            str(s.threads),
            str(s.dp),
            f"{s.micro_batch} x {s.accumulation}",
            str(s.loader_workers),
            f"{1e3 * line.predicted_s:.3g} ms",
            f"{1e3 * line.low_s:.2g}-{1e3 * line.high_s:.2g}",
            measured,
            f"{line.samples_per_s:.3g}",
            f"{line.memory_bytes / 2**20:.0f}",
            f"{line.dollars_per_million_samples:.2g}",
            style="bold" if s == found.advised else "",
        )
    return table


def _advice(found: profiling.Profile) -> str:
    if found.advised == found.base:
        return f"keep {words(found.base)}: none of {found.probes} runs was faster ({found.stopped})"
    return (
        f"use {words(found.advised)}: saves {found.gain_frac:.0%} of each step against {words(found.base)}; "
        f"{found.probes} runs, {found.spent_s:.1f} s of steps; {found.stopped}"
    )


def words(system: SystemConfiguration) -> str:
    """A system configuration of a CPU job in a few words."""
    parts = [f"{system.threads} thread(s)", f"{system.dp} replica(s)", f"micro-batch {system.micro_batch}"]
    parts += [f"x {system.accumulation}"] if system.accumulation > 1 else []
    parts += [f"{system.loader_workers} loader worker(s)"] if system.loader_workers else []
    return ", ".join(parts)
