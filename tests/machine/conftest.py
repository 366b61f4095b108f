from __future__ import annotations

import pytest

from foresail.policies.potential import Potential
from foresail.testing.foresight import plain


@pytest.fixture
def learnt() -> None:
    """Asks for the learnt forecasts."""


@pytest.fixture(autouse=True)
def plain_forecasts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tested here is what follows from a forecast, unless a test asks for the learnt ones."""
    if "learnt" not in request.fixturenames:
        monkeypatch.setattr(Potential, "observe", lambda self, view, event: None)
        monkeypatch.setattr(Potential, "foresee", plain)
