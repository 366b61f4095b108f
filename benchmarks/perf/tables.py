"""Read folders of throughput tables (`table.json`, `table.csv` or `table.csv.gz`) into runs."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import json
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from foresail.errors import CallerError
from foresail.perf.hardware import Device, device, unknown_device
from foresail.perf.rows import Floats, Rows, row, stack
from foresail.perf.transformer import transformer, transformer_of_size
from foresail.perf.words import Job, Precision, Recompute, Sharding, SystemConfiguration

_SHARDINGS = {"full_shard": Sharding.FULL, "shard_grad_op": Sharding.GRADIENTS, "no_shard": Sharding.NONE}


@dataclasses.dataclass(frozen=True)
class Table:
    """One table: its name and its rows, each a mapping of column to text."""

    name: str
    rows: tuple[dict[str, str], ...]

    @property
    def columns(self) -> set[str]:
        """Names of the columns."""
        return set(self.rows[0]) if self.rows else set()


@dataclasses.dataclass(frozen=True)
class Runs:
    """The runs of a table: arrays, what was measured (NaN: not), and which job each is of."""

    name: str
    rows: Rows
    seconds: Floats
    memory_gib: Floats
    job: np.ndarray
    device: np.ndarray
    group: np.ndarray
    known: bool
    tensor_parallel: bool

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, index: object) -> Runs:
        """The runs at these positions."""
        picked = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        for name in ("seconds", "memory_gib", "job", "device", "group"):
            picked[name] = picked[name][index]
        picked["rows"] = self.rows.take(np.asarray(index))
        return Runs(**picked)


def find(folders: list[Path]) -> Iterator[Table]:
    """Every table in or under these folders."""
    for folder in folders:
        for meta in sorted({*folder.glob("table.json"), *folder.glob("*/table.json")}):
            yield _read(meta.parent)


def _read(folder: Path) -> Table:
    name = json.loads((folder / "table.json").read_text(encoding="utf-8")).get("name", folder.name)
    packed = folder / "table.csv.gz"
    raw = gzip.decompress(packed.read_bytes()) if packed.exists() else (folder / "table.csv").read_bytes()
    return Table(name, tuple(csv.DictReader(raw.decode().splitlines())))


def number(entry: dict[str, str], *names: str, default: float = math.nan) -> float:
    """The first of these columns that holds a number."""
    for name in names:
        text = entry.get(name, "")
        if text:
            try:
                return float(text)
            except ValueError:
                continue
    return default


def seconds_of(entry: dict[str, str]) -> float:
    """Seconds of one optimizer step, from its column or from the throughput."""
    seconds = number(entry, "step_seconds")
    if math.isnan(seconds):
        rate = number(entry, "samples_per_second", "tokens_per_second")
        batch = number(entry, "global_batch")
        if math.isnan(batch):
            batch = number(entry, "micro_batch") * number(entry, "dp", "devices", default=1)
        seconds = batch / rate if rate > 0 else math.nan
    return seconds


def runs_of(table: Table) -> Runs | None:
    """A table's runs; None where a row says too little to place it (no micro-batch anywhere)."""
    made, kept = [], []
    for entry in table.rows:
        try:
            entry_row = _row(entry)
        except CallerError:
            continue  # a row that no run can have: heads that do not divide, a degree of zero
        if entry_row is not None:
            made.append(entry_row)
            kept.append(entry)
    if not made:
        return None
    rows = stack(made)
    return Runs(
        name=table.name,
        rows=rows,
        seconds=np.array([seconds_of(e) for e in kept]),
        memory_gib=np.array([number(e, "memory_gib") for e in kept]),
        job=np.array([_job_key(e) for e in kept]),
        device=np.array([e.get("device", "") for e in kept]),
        group=np.array([_group_key(e) for e in kept]),
        known=bool(rows.known.all()),
        tensor_parallel=bool((rows.tp > 1).any() or (rows.pp > 1).any()),
    )


def _job_key(entry: dict[str, str]) -> str:
    """What makes a row another job: the workload and its dimensions, not how it runs."""
    if entry.get("layers"):
        return "/".join(entry.get(c, "") for c in ("workload", "layers", "hidden", "heads", "seq_len"))
    if entry.get("params"):
        return entry["workload"]
    return "/".join(entry.get(c, "") for c in ("workload", "variant", "unit", "precision"))


def _group_key(entry: dict[str, str]) -> str:
    """Rows among which a configuration is chosen: same job, devices and global batch."""
    return "/".join((_job_key(entry), entry.get("devices", ""), entry.get("global_batch", "")))


def job_of(entry: dict[str, str]) -> Job:
    """The job's features, as far as the table gives them."""
    name = _job_key(entry)
    seq_len = number(entry, "seq_len")
    if entry.get("layers") and entry.get("hidden"):
        return transformer(
            name,
            layers=int(number(entry, "layers")),
            hidden=int(number(entry, "hidden")),
            heads=int(number(entry, "heads", default=1)),
            seq_len=int(seq_len),
            vocab=_vocab(entry),
        )
    if entry.get("params") and not math.isnan(seq_len):
        return transformer_of_size(name, number(entry, "params"), seq_len=int(seq_len))
    return Job(name=name)


def _vocab(entry: dict[str, str]) -> int:
    """The column; else what an exact parameter count leaves for the embedding; else GPT-2's, padded."""
    layers, hidden, params = (number(entry, c) for c in ("layers", "hidden", "params"))
    left = (params - layers * (12 * hidden**2 + 13 * hidden)) / hidden - number(entry, "seq_len")
    is_exact = params == params and params % 1e7 != 0
    inferred = left if is_exact and 1e3 < left < 1e6 else 51_200.0
    return int(number(entry, "vocab", default=inferred))


def device_of(entry: dict[str, str]) -> Device:
    """The device by its name, or a stand-in marked as unknown."""
    name = entry.get("device") or "unknown"
    for candidate in (name, name.split()[0].split("_")[0]):
        try:
            return device(candidate)
        except CallerError:
            continue
    return unknown_device(name)


def _precision(entry: dict[str, str]) -> Precision:
    text = entry.get("precision", "").lower()
    for word, precision in (
        ("fp8", "fp8"),
        ("bf16", "bf16"),
        ("fp16", "fp16"),
        ("mixed", "fp16"),
        ("tf32", "tf32"),
    ):
        if word in text:
            return Precision(precision)
    return Precision.FP32


def _row(entry: dict[str, str]) -> dict[str, float] | None:
    tp, pp = (int(number(entry, name, default=1)) for name in ("tp", "pp"))
    devices = number(entry, "devices", default=1)
    dp = int(number(entry, "dp", default=max(1.0, devices / (tp * pp))))
    batch, micro = number(entry, "global_batch"), number(entry, "micro_batch")
    if math.isnan(micro):
        return None
    accumulation = number(entry, "accumulation", default=batch / (dp * micro) if batch > 0 else 1.0)
    sharding = entry.get("sharding", "").lower()
    recompute = entry.get("recompute", "").lower()
    system = SystemConfiguration(
        dp=dp,
        tp=tp,
        pp=pp,
        micro_batch=max(1, int(micro)),
        accumulation=max(1, int(accumulation)),
        sharding=_SHARDINGS.get(sharding) or (Sharding(sharding) if sharding in list(Sharding) else Sharding.NONE),
        recompute=Recompute(recompute) if recompute in list(Recompute) else Recompute.NONE,
        precision=_precision(entry),
    )
    kind = device_of(entry)
    spread = entry.get("placement", "") not in ("", "consolidated") and dp > 1
    fewest = max(1, -(-int(devices) // kind.per_node))
    nodes = number(entry, "nodes", default=max(fewest, 2) if spread else 1)
    return row(job_of(entry), system, kind, nodes=int(nodes))
