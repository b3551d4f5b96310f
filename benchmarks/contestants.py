"""The ways to grade that are compared: each is given the same files, and says which commands grade them.

Each peer is run as its own documentation says. None but ours keeps students' code apart from the
tests.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat

from autograder.course.notebook import to_notebook
from autograder.gradebook.journal import FILE_NAME, Reading
from benchmarks.plain_suite import NAME, ROOT, Suite
from tests.autograder.nbgrader.classroom import Classroom, real_classroom

PYTHON = sys.executable
BIN = Path(sys.executable).parent
OTTER_TEST = """\
import sys
sys.path.insert(0, {root!r})
from benchmarks.plain_suite import Suite
from otter.test_files import test_case

OK_FORMAT = False
name, points = {name!r}, 1


@test_case(points=1)
def the_test(env):
    Suite.once().take({name!r}, env)
"""
CONFTEST = """\
import os
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, {root!r})
from benchmarks.plain_suite import ROOT, NAME, SEED, STEM, load


def pytest_configure(config):
    for marker in ("part(name)", "points(number)", "needs(*names)", "forbids(*names)"):
        config.addinivalue_line("markers", marker)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(SEED)


@pytest.fixture
def seed():
    return SEED


@pytest.fixture(scope="session")
def student():
    return load(Path(os.environ["STUDENT_FILE"]), STEM)


@pytest.fixture(scope="session")
def reference():
    return load(ROOT / "solutions" / NAME / f"{{STEM}}.py", "reference")
"""
OWN_EXECUTOR = """
from nbconvert.exporters import NotebookExporter
c.Autograde.exporter_class = NotebookExporter
c.Autograde.autograde_preprocessors = ["nbgrader.preprocessors.Execute", "nbgrader.preprocessors.SaveAutoGrades"]
"""
# Otherwise the checks in the notebook would leave it to our executor.
UNPROTECTED = "import os\nos.environ.pop('NBGRADER_EXECUTION', None)"
Commands = Sequence[Sequence[str]]


def nothing_to_say(folder: Path, files: list[Path]) -> bool:
    """The commands' exit codes have said it."""
    return True


@dataclass(frozen=True)
class Contestant:
    """`prepare` lays out files in an empty folder and answers with the commands that grade them
    there; where their exit code does not say it, `full_marks` tells afterwards whether every file
    got all its points. `program` is the one of this environment that it starts.
    """

    name: str
    prepare: Callable[[Path, list[Path]], Commands]
    full_marks: Callable[[Path, list[Path]], bool] = nothing_to_say
    slow: bool = False
    program: str = PYTHON

    @property
    def is_installed(self) -> bool:
        return (BIN / self.program).exists()


def ours(folder: Path, files: list[Path]) -> Commands:
    for file in files:
        place = folder / "submitted" / file.parent.name / NAME / file.name
        place.parent.mkdir(parents=True)
        shutil.copy(file, place)
    grades = folder / "grades"
    course = [str(BIN / "autograder"), "grade", str(folder / "submitted"), "--output", str(grades)]
    return [[*course, "--assignment", NAME]]


def ours_right(folder: Path, files: list[Path]) -> bool:
    grades = list(Reading(folder / "grades" / FILE_NAME))
    return len(grades) == len(files) and all(grade.score == grade.max_score for grade in grades)


def floor(folder: Path, files: list[Path]) -> Commands:
    return [[PYTHON, "-m", "benchmarks.plain_suite", *map(str, files)]]


def fresh_pytest(folder: Path, files: list[Path]) -> Commands:
    (folder / "conftest.py").write_text(CONFTEST.format(root=str(ROOT)))
    (folder / "pytest.ini").write_text("[pytest]\n")
    for kind in ("visible", "hidden"):
        shutil.copy(ROOT / "tests" / "assignments" / NAME / f"test_{kind}.py", folder)
    pytest = [
        PYTHON,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:autograder",
        "--rootdir",
        str(folder),
        str(folder),
    ]
    return [["env", f"STUDENT_FILE={file}", *pytest] for file in files]


def otter(folder: Path, files: list[Path]) -> Commands:
    (folder / "tests").mkdir()
    for name in Suite().tests:
        (folder / "tests" / f"{name}.py").write_text(OTTER_TEST.format(root=str(ROOT), name=name))
    (folder / "otter_config.json").write_text(json.dumps({"show_stdout": True}))
    command = [
        str(BIN / "otter"),
        "generate",
        "-t",
        "tests",
        "-c",
        "otter_config.json",
        "--no-environment",
    ]
    subprocess.run([*command, "-o", "autograder.zip"], cwd=folder, check=True, capture_output=True)
    archive = str(folder / "autograder.zip")
    return [
        [str(BIN / "otter"), "run", "-a", archive, "-o", str(file.parent), str(file)]
        for file in files
    ]


def otter_right(folder: Path, files: list[Path]) -> bool:
    results = [json.loads((file.parent / "results.json").read_text()) for file in files]
    tests = [test for result in results for test in result["tests"] if "max_score" in test]
    return bool(tests) and all(test["score"] == test["max_score"] for test in tests)


def nbgrader(folder: Path, files: list[Path]) -> Commands:
    """With nbgrader's own executor: the visible tests only, each part's in its test cell."""
    name = assignment_of(files)
    (folder / "course").mkdir()
    room = real_classroom(folder / "course", name)
    room.nbgrader("generate_assignment", name)
    for file in files:
        hand_in_unprotected(room, file.parent.name, file.read_text("utf-8"))
    use_own_executor(room)
    return [["env", "-C", str(room.folder), str(BIN / "nbgrader"), "autograde", name]]


def assignment_of(files: list[Path]) -> str:
    """The assignment that files with this name are handed in for."""
    return next(
        each.parent.name for each in (ROOT / "solutions").glob(f"*_{files[0].name[:-3]}/*.py")
    )


def hand_in_unprotected(room: Classroom, student: str, text: str) -> None:
    """A notebook, and beside it the visible tests that nbgrader's own kernel runs in its test cells."""
    notebook = to_notebook(room.assignment, text)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(UNPROTECTED))
    place = room.hand_in(student, notebook).parent
    for beside in room.course.release_folder(room.assignment).glob("*.*"):
        if beside.suffix != ".ipynb" and beside.stem != room.stem:
            shutil.copy(beside, place)


def use_own_executor(room: Classroom) -> None:
    config = room.folder / "nbgrader_config.py"
    config.write_text(config.read_text() + OWN_EXECUTOR)


def nbgrader_right(folder: Path, files: list[Path]) -> bool:
    room = Classroom(folder / "course", assignment_of(files))
    points = {part.name: part.points for part in room.assignment.parts}
    return bool(room.gradebook_scores() == {file.parent.name: points for file in files})


NBGRADER = Contestant("nbgrader autograde, its own executor", nbgrader, nbgrader_right, slow=True)
CONTESTANTS = [
    Contestant("the suite in one process, no walls (the floor)", floor),
    Contestant("autograder grade", ours, ours_right),
    Contestant("a fresh pytest each", fresh_pytest, slow=True),
    Contestant("otter run", otter, otter_right, slow=True, program="otter"),
    NBGRADER,
]
