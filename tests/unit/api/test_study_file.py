"""What a study file may hold, and one clear error for each way to get it wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from foresail.api.study_file import load_study, storage_of
from foresail.core.goal import Goal
from foresail.core.spec import Choice, Entry, Resources
from foresail.errors import CallerError

STUDY = """
[study]
command = ["python", "train.py", "--data", "two words"]
"""
FUNCTION = """
[study]
function = "train.py:train"
"""
REST = """
[goal]
maximize = "accuracy"
within = "20 min"
[space]
lr = {type = "float", low = 1e-4, high = 1.0, log = true}
"""
CODE = "import torch_that_is_nowhere\ndef train(run):\n    pass\ndef trial(run):\n    pass\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(CODE)
    (tmp_path / "broken.py").write_text("def train(:\n")
    (tmp_path / "folder").mkdir()
    return tmp_path / "study.toml"


def test_everything_that_may_be_said(file: Path) -> None:
    file.write_text(
        """
[study]
name = "digits"
storage = "logs/d.db"
policy = {name = "asha", eta = 4}
search = "sobol"
workers = 3
cores_per_trial = 2
seed = 7
max_steps = 81
retries = 0
grace = "1 min"
keep = "2.5 GB"
repeats = true
command = ["python", "train.py", "--data", "two words"]

[goal]
minimize = "loss"
target = 0.1
within = "20 min"

[space]
lr = {type = "float", low = 1e-4, high = 1.0, log = true}

[env]
DATA = "/data"
FOLD = 3
"""
    )
    study = load_study(file)
    spec = study.spec
    assert study.storage == file.parent / "logs" / "d.db"
    assert spec.name == "digits"
    assert spec.policy == Choice("asha", {"eta": 4})
    assert spec.search == Choice("sobol")
    assert spec.resources == Resources(3, 2)
    assert (spec.seed, spec.max_steps, spec.retries, spec.grace_s) == (7, 81, 0, 60.0)
    assert (spec.keep_bytes, spec.repeats) == (2_500_000_000, True)
    assert spec.goal == Goal("loss", "min", 0.1, 1200.0)
    command = ("python", "train.py", "--data", "two words")
    assert spec.entry == Entry(command=command, cwd=str(file.parent), env={"DATA": "/data", "FOLD": "3"})


def test_a_function_is_found_without_importing_its_file(file: Path) -> None:
    file.write_text(FUNCTION + REST)
    entry = load_study(file).spec.entry
    assert entry.function == f"{file.parent / 'train.py'}:train"
    assert entry.command == ()


def test_paths_are_those_of_the_file_wherever_it_is_called(file: Path, tmp_path_factory, monkeypatch) -> None:
    file.write_text(STUDY + 'storage = "s.db"\n' + REST)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(elsewhere)
    assert storage_of(file) == file.parent / "s.db"
    assert load_study(file, study={"storage": "mine.db"}).storage == elsewhere / "mine.db"


def test_two_study_files_in_one_folder_have_two_storages(file: Path) -> None:
    other = file.with_name("wide.toml")
    for path in (file, other):
        path.write_text(STUDY + REST)
    assert [storage_of(path).name for path in (file, other)] == ["study.db", "wide.db"]


def test_silence_is_a_duration(file: Path) -> None:
    file.write_text(STUDY + 'silence = "30 min"\n' + REST)
    assert load_study(file).spec.silence_limit_s == 1800.0


def test_a_storage_that_is_not_named_is_called_like_the_study(file: Path) -> None:
    file.write_text(STUDY + 'name = "digits"\n' + REST)
    assert storage_of(file) == file.parent / "digits.db"


def test_a_command_line_replaces_what_the_file_says(file: Path) -> None:
    file.write_text(STUDY + "seed = 1\n" + REST)
    spec = load_study(file, study={"seed": 2, "policy": "fifo"}, goal={"target": 0.9, "within": "5 s"}).spec
    assert (spec.seed, spec.policy.name) == (2, "fifo")
    assert (spec.goal.target, spec.goal.within_s) == (0.9, 5.0)


BAD = {
    "empty": ("", "there is no [study]"),
    "no goal": (STUDY, "there is no [goal]"),
    "no space": (STUDY + '[goal]\nmaximize = "a"\ntrials = 3', "there is no [space]"),
    "no TOML": ("[study\nname = 3", "is no TOML"),
    "bare word": ("[study]\nname = digits", "text needs quotation marks"),
    "table misspelt": (STUDY.replace("study", "studdy") + REST, "did you mean 'study'?"),
    "key misspelt": (STUDY + "worker = 2" + REST, "study.worker is unknown"),
    "key outside": ("seed = 3\n" + STUDY + REST, "put it under [study]"),
    "study no table": ("study = 3\ngoal = 1\nspace = 1", "study = 3"),
    "command a string": ('[study]\ncommand = "python train.py"' + REST, 'command = ["python", "train.py"]'),
    "command empty": ("[study]\ncommand = []" + REST, "a list of texts"),
    "command of numbers": ("[study]\ncommand = [1]" + REST, "a list of texts"),
    "command begins empty": ('[study]\ncommand = [""]' + REST, "the program first"),
    "both": (FUNCTION + 'command = ["a"]' + REST, "both command and function"),
    "neither": ("[study]\nseed = 1" + REST, "neither command nor function"),
    "no colon": ('[study]\nfunction = "train"' + REST, "train.py:train"),
    "no such file": ('[study]\nfunction = "tran.py:train"' + REST, "did you mean 'train.py'?"),
    "no such function": ('[study]\nfunction = "train.py:tria"' + REST, "did you mean 'trial'?"),
    "broken Python": ('[study]\nfunction = "broken.py:train"' + REST, "is no Python"),
    "no such module": ('[study]\nfunction = "nowhere_at_all:train"' + REST, "there is no module"),
    "policy unknown": (STUDY + 'policy = "popp"' + REST, "did you mean 'pop'?"),
    "policy option": (STUDY + 'policy = {name = "asha", etta = 3}' + REST, "did you mean 'eta'?"),
    "policy without a name": (STUDY + "policy = {eta = 3}" + REST, "has no name"),
    "policy a number": (STUDY + "policy = 3" + REST, "study.policy = 3"),
    "search unknown": (STUDY + 'search = "sobool"' + REST, "did you mean 'sobol'?"),
    "workers 0": (STUDY + "workers = 0" + REST, "study.workers = 0"),
    "workers a text": (STUDY + 'workers = "2"' + REST, "study.workers = '2'"),
    "cores a float": (STUDY + "cores_per_trial = 1.5" + REST, "study.cores_per_trial = 1.5"),
    "seed below 0": (STUDY + "seed = -1" + REST, "a whole number from 0"),
    "retries true": (STUDY + "retries = true" + REST, "study.retries = True"),
    "grace no time": (STUDY + 'grace = "soon"' + REST, "study.grace"),
    "grace in a bad unit": (STUDY + 'grace = "3 parsecs"' + REST, "unknown unit 'parsecs'"),
    "keep no size": (STUDY + 'keep = "much"' + REST, "'10 GB'"),
    "repeats a text": (STUDY + 'repeats = "yes"' + REST, "true or false"),
    "name empty": (STUDY + 'name = ""' + REST, "study.name = ''"),
    "storage a number": (STUDY + "storage = 3" + REST, "study.storage = 3"),
    "env a table": (STUDY + REST + "[env]\nA = {b = 1}", "env.A"),
    "env no table": ("env = 3\n" + STUDY + REST, "env = 3"),
    "goal misspelt": (STUDY + REST.replace("within", "whithin"), "goal.whithin is unknown"),
    "goal without direction": (STUDY + REST.replace('maximize = "accuracy"', ""), "no direction"),
    "goal without end": (STUDY + REST.replace('within = "20 min"', ""), "has no end"),
    "target a text": (STUDY + REST.replace("within", 'target = "high"\nwithin'), "[goal] target 'high'"),
    "knob upside down": (STUDY + REST.replace("high = 1.0", "high = 1e-5"), "low must be below high"),
    "knob misspelt": (STUDY + REST.replace("log =", "logg ="), "did you mean 'log'?"),
    "knob type": (STUDY + REST.replace('"float"', '"flaot"'), "did you mean 'float'?"),
    "space empty": (STUDY + REST.partition("lr")[0], "[space]"),
}


@pytest.mark.parametrize(("text", "says"), BAD.values(), ids=BAD)
def test_bad_files(file: Path, text: str, says: str) -> None:
    file.write_text(text)
    with pytest.raises(CallerError) as caught:
        load_study(file)
    assert says in str(caught.value)
    assert str(file) in caught.value.what
    assert not list(file.parent.glob("*.db*"))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "study.toml").touch()
    for name, says in (
        ("studi.toml", "did you mean 'study.toml'?"),
        ("no/where.toml", "there is no file"),
        ("", "cannot be read"),
    ):
        with pytest.raises(CallerError, match=r".") as caught:
            load_study(tmp_path / name)
        assert says in str(caught.value)
