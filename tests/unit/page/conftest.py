"""A stored study, its page, and somebody who asks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from visitor import HERE, TOKEN

from foresail.core import events as ev
from foresail.page.server import Served, application
from foresail.stores.sqlite import SqliteStore
from foresail.testing.page import one_study

Ask = Callable[..., Any]


@pytest.fixture(scope="session")
def log() -> list[ev.Event]:
    return one_study()


@pytest.fixture(scope="session")
def storage(tmp_path_factory: pytest.TempPathFactory, log: list[ev.Event]) -> Path:
    path = tmp_path_factory.mktemp("page") / "digits.db"
    with SqliteStore.open(path) as store:
        store.append(log)
    return path


@pytest.fixture(scope="session")
def served(storage: Path) -> Iterator[Served]:
    served = Served(storage)
    yield served
    served.close()


@pytest.fixture
def stranger(served: Served) -> TestClient:
    """Somebody without a token."""
    return TestClient(application(served, TOKEN), base_url=HERE, follow_redirects=False)


@pytest.fixture
def client(stranger: TestClient) -> TestClient:
    """Somebody who has opened the printed address."""
    assert stranger.get(f"/?token={TOKEN}").status_code == 303
    return stranger
