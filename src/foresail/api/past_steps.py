"""Steps that were measured on this machine before: a profile begins with what earlier jobs taught of its cores.

One file for each user, `foresail/steps.json` in the cache folder (`XDG_CACHE_HOME`, or `~/.cache`). It may be deleted
at any time; what a later release cannot read is begun anew.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np

from foresail.errors import CallerError
from foresail.perf.fitting import Fit
from foresail.perf.keeping import MOST_KEPT, dump_measurements, history_of, load_measurements
from foresail.perf.rows import Floats, Rows, join
from foresail.perf.step_time import STEP_TIME


def default_file() -> Path:
    """Where this user's measured steps are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "foresail" / "steps.json"


def job_name(target: str) -> str:
    """A name that changes with the script: what was measured before an edit is another job."""
    script = Path(target.rpartition(":")[0])
    if not (script.suffix == ".py" and script.is_file()):
        return target
    content = hashlib.blake2b(script.read_bytes(), digest_size=6).hexdigest()
    return f"{script.resolve()}:{target.rpartition(':')[2]}:{content}"


def past(file: Path, *, on_cpu: bool) -> Fit | None:
    """What earlier measurements on cores (or on accelerators) teach; None where there are none that can be read."""
    found = _read(file)
    if found is None:
        return None
    alike = found[0].on_cpu == on_cpu
    return history_of(STEP_TIME, found[0].take(alike), found[1][alike]) if alike.any() else None


def keep(file: Path, rows: Rows, seconds: Floats) -> None:
    """Add measured runs; the oldest leave.

    Raises:
        OSError: the file cannot be written.
    """
    before = _read(file)
    if before is not None:
        rows, seconds = join(before[0], rows), np.concatenate([before[1], seconds])
    last = np.arange(max(0, len(rows) - MOST_KEPT), len(rows))
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(f".{os.getpid()}")
    fresh.write_bytes(dump_measurements(rows.take(last), seconds[last]))
    fresh.replace(file)


def _read(file: Path) -> tuple[Rows, Floats] | None:
    try:
        return load_measurements(file.read_bytes())
    except (OSError, CallerError):
        return None
