"""Every example of docs/frameworks.md with its real library: suspended and resumed, it gives the same curve."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("KERAS_BACKEND", "torch")
PAGE = Path(__file__).parents[3] / "docs" / "frameworks.md"
# By section: what it needs, the metric of its goal, how equal its curves are.
SECTIONS = {
    "Plain PyTorch": (("torch",), "val_accuracy", 0.0),
    "Lightning": (("lightning",), "val_accuracy", 0.0),
    "Hugging Face Trainer": (("transformers", "accelerate"), "eval_accuracy", 0.0),
    "Accelerate": (("accelerate",), "val_accuracy", 0.0),
    "Keras 3": (("keras", "torch"), "val_accuracy", 0.0),
    "JAX, Flax and Orbax": (("jax", "flax", "optax", "orbax"), "val_accuracy", 0.0),
    "scikit-learn, `partial_fit`": (("sklearn",), "val_accuracy", 0.0),
    "XGBoost": (("xgboost",), "val-auc", 1e-6),
    "LightGBM": (("lightgbm",), "valid_0-auc", 1e-6),
}
UNEQUAL = {"eval_runtime", "eval_samples_per_second", "eval_steps_per_second"}
"""What a framework tells of the time that it took."""


def examples() -> dict[str, str]:
    """The code of each section, after the data that all share."""
    head, *parts = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    shared = code(head)
    return {title: f"{shared}\n{code(part)}" for part in parts if (title := part.splitlines()[0]) in SECTIONS}


def code(text: str) -> str:
    return "\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the frameworks among themselves
@pytest.mark.parametrize("section", SECTIONS)
def test_the_example_suspends_and_resumes(
    section: str, suspended: Callable[..., tuple[dict[int, Any], dict[int, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    needs, metric, within = SECTIONS[section]
    for library in needs:
        if find_spec(library) is None:
            pytest.skip(f"{library} is not installed")
    monkeypatch.setenv("WANDB_DISABLED", "true")
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(examples()[section], f"docs/frameworks.md, {section}", "exec"), names)
    whole, parts = suspended(names["train"], metric, steps=5)
    for step, metrics in whole.items():
        assert set(metrics) == set(parts[step])
        equal = {name: value for name, value in metrics.items() if name not in UNEQUAL}
        assert {name: parts[step][name] for name in equal} == pytest.approx(equal, rel=0.0, abs=within), step
    assert whole[5] != whole[1], "it learns"


def test_every_section_has_a_test() -> None:
    assert set(examples()) == set(SECTIONS)
