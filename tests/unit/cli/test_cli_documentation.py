"""docs/cli.md says what is so."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from foresail.api.study_file import _PARSERS, load_study
from foresail.cli.exits import MEANINGS
from foresail.cli.run import command

DOCS = Path(__file__).parents[3] / "docs" / "cli.md"


def test_every_exit_code_is_documented() -> None:
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", DOCS.read_text(), re.MULTILINE)
    assert [(int(code), meaning) for code, meaning in rows] == [(int(c), m) for c, m in MEANINGS.items()]


def test_every_key_of_a_study_file_is_documented() -> None:
    text = DOCS.read_text()
    table = text[text.index("| key of `[study]`") : text.index("| key of `[goal]`")]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == set(_PARSERS)


def test_every_option_of_run_is_documented() -> None:
    text = DOCS.read_text()
    options = {name for option in command.params for name in option.opts if name.startswith("--")}
    assert {name for name in options if f"`{name}`" in text} == options


def test_the_example_study_loads(tmp_path: Path) -> None:
    example = re.search(r"```toml\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert example is not None
    (tmp_path / "study.toml").write_text(example[1])
    assert list(load_study(tmp_path / "study.toml").space.knobs) == ["lr", "optimizer", "momentum", "layers"]


def test_help_reads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom foresail.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'scipy', 'torch', 'rich', 'msgspec', 'psutil', 'sqlite3', 'optuna'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
