"""What the README says, works: its study file loads, its Python names what exists, its links lead somewhere."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import foresail as fs
from foresail.api.study_file import load_study

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_the_study_file_of_the_readme_loads(tmp_path: Path) -> None:
    (text,) = blocks("toml")
    (tmp_path / "train.py").write_text("")
    (tmp_path / "study.toml").write_text(text)
    study = load_study(tmp_path / "study.toml")
    assert study.spec.goal.target == 0.985
    assert set(study.space.knobs) == {"lr", "optimizer"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_names_what_exists_and_its_goals_can_be_made(page: Path) -> None:
    for text in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "fs":
                assert hasattr(fs, node.attr), node.attr
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("fs.maximize", "fs.minimize"):
                assert eval(ast.unparse(node), {"fs": fs}).metric


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert missing == []


def test_the_makefile_has_the_commands_of_the_readme() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in re.findall(r"^make (\S+)", "\n".join(blocks("console")), flags=re.MULTILINE):
        assert re.search(rf"^{command}:", makefile, flags=re.MULTILINE)
