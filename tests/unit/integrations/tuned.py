"""Functions as people write them for Ray Tune."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from foresail import tune


def climbing(config: dict[str, Any]) -> None:
    start = 1
    if checkpoint := tune.get_checkpoint():
        with checkpoint.as_directory() as folder:
            start = json.loads(Path(folder, "state.json").read_text())["epoch"] + 1
    for epoch in range(start, config["epochs"] + 1):
        score = config["model"]["width"][0] * config["lr"] * epoch
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "state.json").write_text(json.dumps({"epoch": epoch}))
            tune.report({"score": score, "note": "text"}, checkpoint=tune.Checkpoint.from_directory(folder))


def once(config: dict[str, Any], offset: float = 0.0) -> dict[str, float]:
    return {"loss": (config["x"] - 2) ** 2 + config["y"] + offset}


def endless(config: dict[str, Any]) -> None:
    value = 0.0
    while True:
        value += config["lr"]
        tune.report({"score": value})
