"""References to functions, there and back."""

from __future__ import annotations

import functools
import importlib.machinery
import sys

import pytest
import trainings

from foresail.errors import CallerError
from foresail.worker.entry import load, refer


def decorated(function):
    @functools.wraps(function)
    def inner(run):
        return function(run)

    return inner


@decorated
def wrapped(run):
    """Captures a variable, and yet can be found by its name."""


class Group:
    @staticmethod
    def train(run):
        pass


@pytest.mark.parametrize("function", [trainings.counts, wrapped, Group.train], ids=lambda f: f.__qualname__)
def test_a_function_at_the_top_of_a_module_comes_back(function):
    assert load(refer(function)) is function


def test_a_file_is_imported_once_with_its_neighbours_in_reach(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "neighbour_of_entry.py").write_text("value = 3\n")
    script = tmp_path / "script_of_entry.py"
    script.write_text("from neighbour_of_entry import value\ndef train(run): return value\nother = 1\n")
    train = load(f"{script}:train")
    assert train(None) == 3
    assert load(f"{script}:train") is train
    with pytest.raises(CallerError, match="is a int"):
        load(f"{script}:other")
    for name in ("neighbour_of_entry", "_foresail_entry_script_of_entry"):
        del sys.modules[name]


def test_what_cannot_be_referred_to_is_told_why():
    captured = 1
    with pytest.raises(CallerError, match="uses captured of the function around it"):
        refer(lambda run: captured)
    with pytest.raises(CallerError, match="made where no other process finds it"):
        refer(lambda run: None)
    with pytest.raises(CallerError, match="is a partial"):
        refer(functools.partial(trainings.counts))


def test_a_function_of_the_main_module_depends_on_how_that_was_started(monkeypatch):
    namespace = {"__name__": "__main__"}
    exec("def train(run): pass", namespace)
    main = sys.modules["__main__"]
    monkeypatch.setattr(main, "train", namespace["train"], raising=False)
    monkeypatch.setattr(main, "__spec__", None)
    monkeypatch.delattr(main, "__file__", raising=False)
    with pytest.raises(CallerError, match="typed at a prompt"):
        refer(namespace["train"])
    monkeypatch.setattr(main, "__file__", "/some/where/script.py", raising=False)
    assert refer(namespace["train"]) == "/some/where/script.py:train"
    monkeypatch.setattr(main, "__spec__", importlib.machinery.ModuleSpec("package.module", None))
    assert refer(namespace["train"]) == "package.module:train"


@pytest.mark.parametrize("reference", ["", "train", ":train", "module:"])
def test_what_is_no_reference(reference):
    with pytest.raises(CallerError, match="is no reference"):
        load(reference)
