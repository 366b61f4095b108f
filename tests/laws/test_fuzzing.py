"""A short run of the fuzzers; the long ones are by command (`benchmarks/fuzz.py`)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import fuzz

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.mark.parametrize("name", sorted(fuzz.readers(Path())))
def test_a_reader_gives_a_value_or_a_clear_error(name: str, tmp_path: Path) -> None:
    reader = fuzz.readers(tmp_path)[name]
    read = sum(fuzz.try_one(name, reader, 1, number) for number in range(400))
    assert read < 400, "nothing was refused"
