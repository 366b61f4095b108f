from __future__ import annotations

import pytest

from foresail.policies import potential
from foresail.testing.foresight import plain


@pytest.fixture(autouse=True)
def plain_forecasts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tested here is what follows from a forecast."""
    monkeypatch.setattr(potential, "_forecast", plain)
