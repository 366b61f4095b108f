"""Small traces, written as folders."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ABOUT: dict[str, Any] = {
    "name": "tiny",
    "metric": "accuracy (fraction)",
    "mode": "max",
    "step_unit": "epoch",
    "max_step": 3,
    "seconds": "measured",
    "hyperparameters": {
        "lr": {"type": "float", "low": 0.001, "high": 1.0, "log": True},
        "depth": {"type": "int", "low": 1, "high": 4, "log": False},
        "opt": {"type": "categorical", "choices": ["sgd", "adam"]},
    },
    "system": {},
    "targets": {"top10pct": 0.9, "top1pct": 0.9, "best": 0.9},
}
CONFIGS = ("config,lr,depth,opt", "0,0.01,1,sgd", "1,0.1,2,adam", "2,1,4,adam")
CURVES = (
    "config,step,value,seconds",
    "0,1,0.1,1.0",
    "0,2,0.5,2.0",
    "0,3,0.9,3.0",
    "1,1,0.2,2.0",
    "1,2,0.3,4.0",
    "1,3,0.4,6.0",
    "2,1,0.3,1.0",
    "2,2,nan,2.5",
)


def write_folder(
    folder: Path,
    *,
    about: dict[str, Any] | str | None = None,
    configs: Sequence[str] = CONFIGS,
    curves: Sequence[str] = CURVES,
) -> Path:
    """A trace folder; `about` is merged into the usual one, or is the text of the file."""
    folder.mkdir(parents=True, exist_ok=True)
    text = about if isinstance(about, str) else json.dumps({**ABOUT, **(about or {})}, indent=1)
    (folder / "trace.json").write_text(text)
    for name, lines in (("configs", configs), ("curves", curves)):
        with gzip.open(folder / f"{name}.csv.gz", "wt") as file:
            file.write("".join(f"{line}\n" for line in lines))
    return folder
