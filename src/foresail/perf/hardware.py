"""Devices and clusters: figures that come from data sheets, in a file that anyone may edit."""

from __future__ import annotations

import math
import re
import tomllib
from functools import cache
from importlib import resources

import msgspec

from foresail.errors import CallerError, nearest
from foresail.perf.words import Precision


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """One accelerator (or one core of a processor) by its data sheet.

    `tflops` maps a precision to the dense peak rate. Bandwidths in GB/s: `bandwidth_gbps` to its own memory,
    `link_gbps` to a neighbour in the machine, `network_gbps` to another machine, each way and per device.
    `achievable_frac` is what large products reach of that rate, next to other devices.

    Raises:
        CallerError: a rate, a size or a bandwidth is not a positive number.
    """

    name: str
    tflops: dict[str, float]
    memory_gib: float
    bandwidth_gbps: float
    link_gbps: float
    network_gbps: float
    per_node: int = 8
    dollars_per_hour: float = 0.0
    achievable_frac: float = 1.0
    aliases: tuple[str, ...] = ()
    is_known: bool = True

    def __post_init__(self) -> None:
        figures = {
            "memory_gib": self.memory_gib,
            "bandwidth_gbps": self.bandwidth_gbps,
            "link_gbps": self.link_gbps,
            "network_gbps": self.network_gbps,
            "per_node": self.per_node,
            "achievable_frac": self.achievable_frac,
            **{f"tflops.{key}": value for key, value in self.tflops.items()},
        }
        for what, value in figures.items():
            if not (math.isfinite(value) and value > 0):
                raise CallerError(
                    f"device {self.name!r}: {what} is {value}",
                    allowed="positive numbers",
                    do="correct the device file",
                )
        if not self.tflops:
            raise CallerError(
                f"device {self.name!r}: no peak rate", do="give tflops for one precision at least"
            )

    def peak_flop_per_s(self, precision: Precision | str) -> float:
        """The dense peak rate at a precision; that of the next wider format where it has no own units."""
        order = ("fp8", "bf16", "fp16", "tf32", "fp32")
        asked = order.index(str(precision))
        for name in order[asked:]:
            if name in self.tflops:
                return self.tflops[name] * 1e12
        return max(self.tflops.values()) * 1e12


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """Equal machines of equal devices.

    Raises:
        CallerError: there is no node, or no device in it.
    """

    device: Device
    nodes: int = 1
    per_node: int | None = None

    def __post_init__(self) -> None:
        if self.nodes < 1 or (self.per_node is not None and self.per_node < 1):
            raise CallerError(
                f"a cluster of {self.nodes} nodes with {self.devices_per_node} devices",
                allowed="one at least",
            )

    @property
    def devices_per_node(self) -> int:
        """Devices in one machine."""
        return self.device.per_node if self.per_node is None else self.per_node

    @property
    def devices(self) -> int:
        """Devices in all."""
        return self.nodes * self.devices_per_node


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


@cache
def devices() -> dict[str, Device]:
    """Every device of the file by its name."""
    text = resources.files("foresail.perf").joinpath("devices.toml").read_text(encoding="utf-8")
    return {name: msgspec.convert({"name": name, **entry}, Device) for name, entry in tomllib.loads(text).items()}


def device(name: str) -> Device:
    """The device of that name or alias, whatever its case and punctuation.

    Raises:
        CallerError: there is none; the nearest names are given.

    >>> device("a100_40gb").memory_gib
    40.0
    """
    known = {_plain(alias): entry for entry in devices().values() for alias in (entry.name, *entry.aliases)}
    found = known.get(_plain(name))
    if found is None:
        raise CallerError(f"no device {name!r} in the file", allowed=nearest(name, devices()))
    return found


def unknown_device(name: str) -> Device:
    """A stand-in for a device that no file describes: the figures of a mid-size accelerator, marked so."""
    return msgspec.structs.replace(device("V100"), name=name, aliases=(), is_known=False)
