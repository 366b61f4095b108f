"""`foresail plan`: rank the layouts of a model on a cluster, without any hardware."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table

from foresail.api.step_process import model_of
from foresail.errors import CallerError
from foresail.perf.characterize import characterize
from foresail.perf.hardware import Cluster, device
from foresail.perf.plan import Option
from foresail.perf.plan import plan as ranked
from foresail.perf.transformer import transformer
from foresail.perf.words import Job, Precision

_DIMENSIONS = ("layers", "hidden", "heads", "seq_len")


@click.command()
@click.option("--layers", type=click.IntRange(min=1), help="Transformer layers.")
@click.option("--hidden", type=click.IntRange(min=1), help="Hidden size.")
@click.option("--heads", type=click.IntRange(min=1), help="Attention heads.")
@click.option("--seq-len", type=click.IntRange(min=1), help="Tokens of a sample.")
@click.option("--vocab", type=click.IntRange(min=1), default=51_200, show_default=True, help="Vocabulary.")
@click.option("--flash/--no-flash", default=True, show_default=True, help="Attention keeps no score matrix.")
@click.option(
    "--module", "target", help="A PyTorch model instead of dimensions: PACKAGE.MODULE:FUNCTION or FILE.py:FUNCTION."
)
@click.option("--device", "device_name", required=True, help="A device of the file, such as A100 or H100.")
@click.option("--devices", type=click.IntRange(min=1), required=True, help="How many of them.")
@click.option("--per-node", type=click.IntRange(min=1), help="Devices in a machine (default: the file's).")
@click.option("--global-batch", type=click.IntRange(min=1), required=True, help="Samples in an optimizer step.")
@click.option("--precision", type=click.Choice([p.value for p in Precision]), default="bf16", show_default=True)
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="Layouts to show.")
@click.option("--json", "as_json", is_flag=True, help="Data on standard output, talk on standard error.")
def plan(
    device_name: str,
    devices: int,
    per_node: int | None,
    global_batch: int,
    precision: str,
    top: int,
    as_json: bool,
    target: str | None,
    **dimensions: Any,
) -> None:
    """Rank (dp, tp, pp, sharding, micro-batch, recomputation) for a model on a cluster.

    Step time, memory, MFU and price with the 90 % interval; nothing is run. Layouts that may run out of
    memory (95 % bound) come last.

    The model is a transformer of the given dimensions, or what the function of --module builds: it takes nothing and
    returns a torch.nn.Module and one batch, the tuple of tensors that the module is called with. Only shapes are
    looked at, so it may build both on the meta device.
    """
    job = _from_module(target, dimensions) if target else _from_dimensions(dimensions)
    kind = device(device_name)
    width = min(per_node or kind.per_node, devices)
    cluster = Cluster(device=kind, nodes=math.ceil(devices / width), per_node=width)
    options = ranked(job, cluster, global_batch=global_batch, precision=Precision(precision))
    talk = Console(stderr=True)
    safe = sum(o.fits for o in options)
    talk.print(f"{_counted(job.params or 0.0)} parameters; {len(options)} layouts, {safe} fit in memory")
    if not safe:
        talk.print("none of them fits: ask for more devices, or for ones with more memory")
    if as_json:
        click.echo(json.dumps([_plain(o) for o in options[:top]], indent=1))
    else:
        Console(width=None if sys.stdout.isatty() else 120).print(_table(options[:top]))


def _from_dimensions(dimensions: dict[str, Any]) -> Job:
    missing = [name for name in _DIMENSIONS if dimensions[name] is None]
    if missing:
        wanted = ", ".join("--" + name.replace("_", "-") for name in missing)
        raise CallerError(f"plan: no {wanted}", do="give the dimensions of a transformer, or a model with --module")
    return transformer("plan", **dimensions)


def _from_module(target: str, dimensions: dict[str, Any]) -> Job:
    given = [name for name in _DIMENSIONS if dimensions[name] is not None]
    if given:
        raise CallerError(f"plan: both --module and --{given[0].replace('_', '-')}", do="give one of them")
    model, inputs = model_of(target)
    return characterize(model, inputs, name=target)


def _counted(count: float) -> str:
    """A count of parameters in the unit that fits."""
    for size, word in ((1e9, "billion"), (1e6, "million"), (1e3, "thousand")):
        if count >= size:
            return f"{count / size:.3g} {word}"
    return f"{count:.0f}"


def _plain(option: Option) -> dict[str, object]:
    fields = {name: getattr(option, name) for name in option.__dataclass_fields__ if name != "system"}
    return fields | {"system": msgspec.to_builtins(option.system)}


def _table(options: tuple[Option, ...]) -> Table:
    table = Table(title="layouts, fastest first", box=None)
    for title in (
        "dp.tp.pp",
        "sharding",
        "batch",
        "recompute",
        "step s",
        "90 %",
        "MFU",
        "GiB (95 %)",
        "$/M tok",
    ):
        table.add_column(title, justify="right", no_wrap=True)
    for o in options:
        s = o.system
        table.add_row(
            f"{s.dp}.{s.tp}.{s.pp}",
            str(s.sharding),
            f"{s.micro_batch} x {s.accumulation}",
            str(s.recompute),
            f"{o.step_s:.3g}",
            f"{o.step_low_s:.2g}-{o.step_high_s:.2g}",
            f"{o.mfu_frac:.0%}",
            f"{o.memory_bytes / 2**30:.0f} ({o.memory_bound_bytes / 2**30:.0f}{'' if o.fits else ' !'})",
            f"{o.dollars_per_million_tokens:.2f}" if o.dollars_per_million_tokens else "",
        )
    return table
