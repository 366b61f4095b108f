"""The kernel ends trainings for memory, in a control group of their own: they are tried again, smaller."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from foresail.core import events as ev
from foresail.core.view import fold
from foresail.core.words import Outcome, Status
from foresail.stores.sqlite import SqliteStore

LIMIT_BYTES = 250 * 2**20
PLACES = (
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
    (Path("/sys/fs/cgroup"), "memory.max"),
)


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group with little memory, where one can be made."""
    for root, limit in PLACES:
        place = root / f"foresail-{uuid.uuid4().hex}"
        try:
            place.mkdir()
        except OSError:
            continue
        try:
            (place / limit).write_text(str(LIMIT_BYTES))
            yield place
            return
        except OSError:
            continue
        finally:
            place.rmdir()
    pytest.skip("no control group can be made here")


@pytest.mark.slow
def test_memory_that_runs_out_is_named_and_tried_again_with_smaller_micro_batches(tmp_path: Path, group: Path) -> None:
    storage = tmp_path / "study.db"
    script = Path(__file__).with_name("hungry_study.py")
    inside = f'echo $$ > {group / "cgroup.procs"} && exec "$0" "$@"'
    subprocess.run(["sh", "-c", inside, sys.executable, str(script), str(storage)], check=True, timeout=200)
    with SqliteStore.open(storage, write=False) as store:
        events = [event for _, event in store.read()]
    ends = [event for event in events if isinstance(event, ev.AttemptEnded)]
    short = [end for end in ends if end.outcome is Outcome.OUT_OF_MEMORY]
    assert short
    assert {end.detail for end in short} == {"the kernel killed it for memory"}
    view = fold(events)
    assert view.drivers == 1, "the driver was not chosen"
    assert [trial.ended for trial in view.trials] == [Status.COMPLETED] * 3
    assert all(value == 64.0 for trial in view.trials for value in trial.values), "the global batch stays"
    assert {event.metrics["micro"] for event in events if isinstance(event, ev.PointReported)} <= {32.0, 16.0, 8.0}
